#include "guard/audit_log.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/checksum.h"
#include "base/log.h"
#include "base/text.h"

namespace flyball::guard {
namespace {

using nlohmann::json;

constexpr std::size_t kLargestLog = 256u << 20;
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

std::string body_of(std::string_view text) { return std::string(text.substr(kBodyAt)); }

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
  auto bytes = files.read(log->path_, kLargestLog);
  if (!bytes && bytes.error().code != ErrorCode::unsupported) return fail(bytes.error());
  std::string content = bytes ? *std::move(bytes) : std::string();
  const std::size_t end = content.rfind('\n') == std::string::npos ? 0 : content.rfind('\n') + 1;
  if (end < content.size()) {
    FLYBALL_TRY(files.write_atomically(log->path_ + ".torn", std::string_view(content).substr(end)));
    content.resize(end);
    FLYBALL_TRY(files.write_atomically(log->path_, content));
  }
  if (!content.empty()) {
    const std::size_t start = content.size() < 2 ? std::string::npos : content.rfind('\n', content.size() - 2);
    const std::size_t from = start == std::string::npos ? 0 : start + 1;
    const auto last = parse_line(std::string_view(content).substr(from, content.size() - 1 - from));
    if (last) {
      log->head_ = {last->number, last->hash};
    } else {
      // Go on with a new chain: verification names the place, and the guard is not stopped by an old log.
      log::error("guard", "{}: the last line is not readable; the chain starts anew", log->path_);
      log->head_ = {0, ""};
    }
  }
  log->sealed_ = log->head_;
  FLYBALL_ASSIGN(log->file_, files.open_append(log->path_));
  return log;
}

Result<> AuditLog::record(const AuditEvent& event) {
  const std::string body = encode(event, head_);
  const std::string hash = hash_of(body);
  std::string line = torn_ ? "\n" : "";  // what is left of the failed line stays a line of its own, and is reported
  line += std::string(kPrefix) + hash + "\"," + body + "\n";
  torn_ = true;
  FLYBALL_TRY(file_->append(line));
  torn_ = false;
  head_ = {head_.count + 1, hash};
  return {};
}

Result<> AuditLog::seal() {
  if (head_ == sealed_) return {};
  FLYBALL_TRY(file_->sync());
  FLYBALL_TRY(files_.write_atomically(path_ + ".head", head_text(head_)));
  sealed_ = head_;
  return {};
}

namespace {

class Verifier {
 public:
  Verifier(std::string_view log, std::string_view head) : log_(log), head_text_(head) {}

  AuditVerdict run() {
    std::uint64_t number = 0;
    while (!log_.empty()) {
      const std::size_t end = log_.find('\n');
      ++number;
      if (end == std::string_view::npos) {
        problem(AuditFault::cut, number, "the last line does not end");
        break;
      }
      check(log_.substr(0, end), number);
      log_.remove_prefix(end + 1);
    }
    check_head(number);
    verdict_.head = last_;
    return std::move(verdict_);
  }

 private:
  void problem(AuditFault fault, std::uint64_t line, std::string text) {
    constexpr std::size_t kMost = 100;  // one damage may make thousands of lines disagree
    if (verdict_.problems.size() < kMost) verdict_.problems.push_back({fault, line, std::move(text)});
  }

  void check(std::string_view text, std::uint64_t number) {
    const auto line = parse_line(text);
    if (!line) {
      problem(AuditFault::unreadable, number, "not a line of this log");
      return;
    }
    const std::string computed = hash_of(body_of(text));
    if (computed != line->hash || text.substr(kBodyAt - 2, 2) != "\",") {
      problem(AuditFault::edited, number, "its content does not fit its own hash");
    } else if (line->previous != last_.hash || line->number != last_.count + 1) {
      problem(AuditFault::missing_or_moved, number,
              fmt::format("it says it is number {}, behind a line that is not the one before it", line->number));
    } else {
      ++verdict_.lines;
      verdict_.hashes.push_back(line->hash);
    }
    last_ = {line->number, line->hash};
    if (anchor() && line->number == anchor_->count && line->hash == anchor_->hash) anchored_ = true;
  }

  bool anchor() {
    if (!parsed_) anchor_ = parse_head(head_text_);
    parsed_ = true;
    return anchor_.has_value();
  }

  void check_head(std::uint64_t lines) {
    if (!anchor()) {
      if (lines > 0)
        problem(AuditFault::cut, lines, "the head file is missing or unreadable: a cut end would not show");
      return;
    }
    if (anchor_->count == 0) return;
    if (!anchored_) {
      problem(AuditFault::cut, lines,
              fmt::format("the head says line {} with hash {}…; it is not there", anchor_->count,
                          anchor_->hash.substr(0, 12)));
      return;
    }
    verdict_.unsealed = last_.count > anchor_->count ? last_.count - anchor_->count : 0;
  }

  std::string_view log_;
  std::string_view head_text_;
  AuditVerdict verdict_;
  AuditHead last_;
  std::optional<AuditHead> anchor_;
  bool parsed_ = false;
  bool anchored_ = false;
};

}  // namespace

AuditVerdict verify_audit(std::string_view log, std::string_view head) { return Verifier(log, head).run(); }

Result<> compare_head(AuditVerdict& verdict, std::string_view head) {
  const std::size_t colon = head.find(':');
  const auto number = parse_int(head.substr(0, colon));
  if (colon == std::string_view::npos || !number || *number < 1) {
    return fail(ErrorCode::input, "'" + std::string(head.substr(0, 80)) + "' is not NUMBER:HASH", "--head");
  }
  const auto line = static_cast<std::uint64_t>(*number);
  const bool there = line <= verdict.hashes.size() && verdict.hashes[line - 1] == head.substr(colon + 1);
  if (!there) verdict.problems.push_back({AuditFault::cut, line, "it is not the line that the given head names"});
  return {};
}

Result<AuditVerdict> verify_audit_files(Filesystem& files, const std::string& path) {
  FLYBALL_ASSIGN(const std::string log, files.read(path, kLargestLog));
  const auto head = files.read(path + ".head", 4096);
  return verify_audit(log, head ? *head : std::string());
}

}  // namespace flyball::guard
