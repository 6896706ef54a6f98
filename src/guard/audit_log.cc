#include "guard/audit_log.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/checksum.h"
#include "base/log.h"
#include "base/text.h"

namespace flyball::guard {
namespace {

using nlohmann::json;

constexpr std::size_t kFullFile = 16u << 20;     // about a day of eight boards that are written every 10 s
constexpr std::size_t kLargestFile = 64u << 20;  // one that could not be turned over for a while
constexpr std::size_t kMostSegments = 60;
constexpr std::size_t kLongestLine = 8192;

/// Every line begins with its own hash, which covers everything behind it: {"hash":"<64>",…}
constexpr std::string_view kPrefix = "{\"hash\":\"";
constexpr std::size_t kBodyAt = kPrefix.size() + 64 + 2;  // behind the quote and the comma

std::string hash_of(std::string_view body) { return sha256_hex(body); }

std::string encode(const AuditEvent& event, const AuditHead& head) {
  nlohmann::ordered_json line;
  line["previous"] = head.hash;
  line["number"] = head.count + 1;
  line["at"] = format_rfc3339(event.at);
  line["kind"] = event.kind;
  line["device"] = event.device.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(event.device.text());
  line["lease"] = event.lease == 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(event.lease);
  line["outcome"] = event.outcome;
  line["detail"] = event.detail.substr(0, 2048);
  const std::string object = line.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
  return object.substr(1);  // without the brace: the hash goes before it
}

std::string head_text(const AuditHead& head) {
  nlohmann::ordered_json text;
  text["schema"] = "flyball.audit_head/1";
  text["count"] = head.count;
  text["hash"] = head.hash;
  return text.dump() + "\n";
}

std::optional<AuditHead> parse_head(std::string_view text) {
  const json head = text.size() > 1024 ? json() : json::parse(text, nullptr, false);
  if (!head.is_object() || !head.contains("count") || !head.contains("hash")) return std::nullopt;
  if (!head["count"].is_number_unsigned() || !head["hash"].is_string()) return std::nullopt;
  return AuditHead{head["count"].get<std::uint64_t>(), head["hash"].get<std::string>()};
}

struct Line {
  std::string hash;
  std::string previous;
  std::uint64_t number = 0;
};

/// Empty when the line is not one of ours.
std::optional<Line> parse_line(std::string_view text) {
  if (text.size() > kLongestLine || text.size() <= kBodyAt || !text.starts_with(kPrefix)) return std::nullopt;
  const json line = json::parse(text, nullptr, false);
  if (!line.is_object() || !line.contains("previous") || !line.contains("number")) return std::nullopt;
  if (!line["previous"].is_string() || !line["number"].is_number_unsigned()) return std::nullopt;
  return Line{std::string(text.substr(kPrefix.size(), 64)), line["previous"].get<std::string>(),
              line["number"].get<std::uint64_t>()};
}

std::string_view body_of(std::string_view text) { return text.substr(kBodyAt); }

std::string segment_name(const std::string& path, std::uint64_t first) { return fmt::format("{}.{:012}", path, first); }

/// First line's number and path of each segment, oldest first.
std::map<std::uint64_t, std::string> segments_of(Filesystem& files, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
  const std::string prefix = path.substr(slash == std::string::npos ? 0 : slash + 1) + ".";
  std::map<std::uint64_t, std::string> segments;
  const auto names = files.list(folder);
  if (!names) return segments;
  for (const std::string& name : *names) {
    if (!name.starts_with(prefix) || name.size() != prefix.size() + 12) continue;
    const auto first = parse_int(name.substr(prefix.size()));
    if (first && *first > 0) segments[static_cast<std::uint64_t>(*first)] = path + name.substr(prefix.size() - 1);
  }
  return segments;
}

}  // namespace

std::string_view to_string(AuditFault fault) {
  switch (fault) {
    case AuditFault::edited:
      return "edited";
    case AuditFault::missing_or_moved:
      return "missing_or_moved";
    case AuditFault::cut:
      return "cut";
    case AuditFault::unreadable:
      return "unreadable";
  }
  return "unknown";
}

Result<std::unique_ptr<AuditLog>> AuditLog::open(Filesystem& files, std::string path) {
  std::unique_ptr<AuditLog> log(new AuditLog(files, std::move(path)));
  auto bytes = files.read(log->path_, kLargestFile);
  if (!bytes && bytes.error().code != ErrorCode::unsupported) return fail(bytes.error());
  std::string content = bytes ? *std::move(bytes) : std::string();
  const std::size_t end = content.rfind('\n') == std::string::npos ? 0 : content.rfind('\n') + 1;
  if (end < content.size()) {
    FLYBALL_TRY(files.write_atomically(log->path_ + ".torn", std::string_view(content).substr(end)));
    content.resize(end);
    FLYBALL_TRY(files.write_atomically(log->path_, content));
  }
  FLYBALL_TRY(log->go_on(content));
  log->sealed_ = log->head_;
  log->size_ = content.size();
  FLYBALL_ASSIGN(log->file_, files.open_append(log->path_));
  return log;
}

/// Finds the last line, in the file or else in the newest segment.
Result<> AuditLog::go_on(const std::string& content) {
  std::string last_file = content;
  const auto segments = segments_of(files_, path_);
  if (content.empty() && !segments.empty()) {
    FLYBALL_ASSIGN(last_file, files_.read(segments.rbegin()->second, kLargestFile));
  }
  if (last_file.empty()) return {};
  const auto first = parse_line(std::string_view(last_file).substr(0, last_file.find('\n')));
  const std::size_t start = last_file.size() < 2 ? std::string::npos : last_file.rfind('\n', last_file.size() - 2);
  const std::size_t from = start == std::string::npos ? 0 : start + 1;
  const auto last = parse_line(std::string_view(last_file).substr(from, last_file.size() - 1 - from));
  if (first && last) {
    head_ = {last->number, last->hash};
    first_ = content.empty() ? last->number + 1 : first->number;
  } else {
    // Go on with a new chain: verification names the place, and the guard is not stopped by an old log.
    log::error("guard", "{}: its lines are not readable; the chain starts anew", path_);
  }
  return {};
}

Result<> AuditLog::record(const AuditEvent& event) {
  const std::string body = encode(event, head_);
  const std::string hash = hash_of(body);
  std::string line = torn_ ? "\n" : "";  // what is left of the failed line stays a line of its own, and is reported
  line += std::string(kPrefix) + hash + "\"," + body + "\n";
  torn_ = true;
  FLYBALL_TRY(file_->append(line));
  torn_ = false;
  size_ += line.size();
  head_ = {head_.count + 1, hash};
  return {};
}

Result<> AuditLog::seal() {
  if (head_ == sealed_) return {};
  FLYBALL_TRY(file_->sync());
  FLYBALL_TRY(files_.write_atomically(path_ + ".head", head_text(head_)));
  sealed_ = head_;
  return size_ > kFullFile ? turn_over() : Result<>();
}

Result<> AuditLog::turn_over() {
  FLYBALL_ASSIGN(const std::string content, files_.read(path_, kLargestFile));
  FLYBALL_TRY(files_.write_atomically(segment_name(path_, first_), content));
  file_.reset();
  const auto emptied = files_.write_atomically(path_, "");
  FLYBALL_ASSIGN(file_, files_.open_append(path_));
  FLYBALL_TRY(emptied);
  first_ = head_.count + 1;
  size_ = 0;
  auto segments = segments_of(files_, path_);
  for (; segments.size() > kMostSegments; segments.erase(segments.begin())) {
    FLYBALL_TRY(files_.remove(segments.begin()->second));
  }
  return {};
}

void AuditVerifier::problem(AuditFault fault, std::string text) {
  constexpr std::size_t kMost = 100;  // one damage may make thousands of lines disagree
  if (verdict_.problems.size() < kMost) verdict_.problems.push_back({fault, first_ - 1 + number_, std::move(text)});
}

void AuditVerifier::feed(std::string_view file) {
  while (!file.empty()) {
    const std::size_t end = file.find('\n');
    ++number_;
    if (end == std::string_view::npos) {
      problem(AuditFault::cut, "the last line does not end");
      return;
    }
    check(file.substr(0, end));
    file.remove_prefix(end + 1);
  }
}

void AuditVerifier::check(std::string_view text) {
  constexpr std::size_t kRecent = 65'536;  // the head is written within a second of its line
  const auto line = parse_line(text);
  if (!line) {
    problem(AuditFault::unreadable, "not a line of this log");
    return;
  }
  if (verdict_.first == 0) verdict_.first = line->number;
  const bool starts = number_ == 1 && line->number == first_ && (first_ > 1 || line->previous.empty());
  const bool follows = number_ > 1 && line->previous == last_.hash && line->number == last_.count + 1;
  if (hash_of(body_of(text)) != line->hash || text.substr(kBodyAt - 2, 2) != "\",") {
    problem(AuditFault::edited, "its content does not fit its own hash");
  } else if (!starts && !follows) {
    problem(AuditFault::missing_or_moved,
            fmt::format("it says it is number {}, behind a line that is not the one before it", line->number));
  } else {
    ++verdict_.lines;
  }
  last_ = {line->number, line->hash};
  if (kept_ && last_ == *kept_) kept_seen_ = true;
  recent_[line->number] = line->hash;
  if (recent_.size() > kRecent) recent_.erase(recent_.begin());
}

void AuditVerifier::check_head(std::string_view text) {
  const auto head = parse_head(text);
  if (!head) {
    if (number_ > 0) problem(AuditFault::cut, "the head file is missing or unreadable: a cut end would not show");
    return;
  }
  if (head->count == 0) return;
  const auto line = recent_.find(head->count);
  if (line == recent_.end() || line->second != head->hash) {
    problem(AuditFault::cut, fmt::format("the head file names line {} with hash {}…; it is not there", head->count,
                                         head->hash.substr(0, 12)));
    return;
  }
  verdict_.unsealed = last_.count > head->count ? last_.count - head->count : 0;
}

AuditVerdict AuditVerifier::finish(std::string_view head) {
  check_head(head);
  if (kept_ && !kept_seen_) {
    problem(AuditFault::cut, fmt::format("line {} is not the one whose hash was kept elsewhere", kept_->count));
  }
  verdict_.head = last_;
  return std::move(verdict_);
}

Result<AuditHead> parse_audit_head(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto number = parse_int(text.substr(0, colon));
  if (colon == std::string_view::npos || !number || *number < 1) {
    return fail(ErrorCode::input, "'" + std::string(text.substr(0, 80)) + "' is not NUMBER:HASH");
  }
  return AuditHead{static_cast<std::uint64_t>(*number), std::string(text.substr(colon + 1))};
}

Result<AuditVerdict> verify_audit_files(Filesystem& files, const std::string& path,
                                        const std::optional<AuditHead>& kept) {
  const auto segments = segments_of(files, path);
  AuditVerifier verifier(segments.empty() ? 1 : segments.begin()->first);
  if (kept) verifier.expect(*kept);
  for (const auto& [first, segment] : segments) {
    FLYBALL_ASSIGN(const std::string content, files.read(segment, kLargestFile));
    verifier.feed(content);
  }
  FLYBALL_ASSIGN(const std::string content, files.read(path, kLargestFile));
  verifier.feed(content);
  const auto head = files.read(path + ".head", 4096);
  return verifier.finish(head ? *head : std::string());
}

}  // namespace flyball::guard
