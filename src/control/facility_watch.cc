#include "control/facility_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <span>
#include <utility>

#include "base/checksum.h"
#include "base/csv.h"
#include "base/text.h"
#include "control/watch_folder.h"
#include "control/watch_input.h"
#include "series/rows_in_time.h"

namespace flyball::control {
namespace {

constexpr std::string_view kSchema = "flyball.facility_watch/2";
constexpr std::size_t kMostLog = std::size_t{1} << 30;
/// Half a year; then the newest are learned from anew.
constexpr std::size_t kMostBlocks = 26'000, kKeptBlocks = 3'000;
constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr std::size_t kMostNotices = 20;

/// The lines of a file that are whole; what follows the last of them was torn.
std::vector<std::string> whole_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t from = 0;;) {
    const std::size_t end = text.find('\n', from);
    if (end == text.npos) return lines;
    lines.emplace_back(text.substr(from, end - from));
    from = end + 1;
  }
}

std::string sealed(const std::string& line) { return fmt::format("{} {:08x}\n", line, crc32(line)); }

/// Nothing: damaged.
std::optional<std::string> opened(const std::string& line) {
  const std::size_t at = line.rfind(' ');
  if (at == line.npos) return std::nullopt;
  std::string content = line.substr(0, at);
  if (fmt::format("{:08x}", crc32(content)) != line.substr(at + 1)) return std::nullopt;
  return content;
}

/// The options without which the same rows would have other findings.
std::vector<std::pair<std::string, std::string>> meaning_of(const FacilityWatchOptions& options) {
  std::string columns;
  for (const auto& [ours, theirs] : options.map.columns)
    columns += fmt::format("{}={} {} {}\n", ours, theirs.name, format_exact(theirs.scale), format_exact(theirs.offset));
  const std::string map = columns.empty() && options.map.zone.empty()
                              ? "none"
                              : fmt::format("one of checksum {:08x}", crc32(columns + options.map.zone));
  return {{"--reference", format_exact(options.causes.reference_time.value()) + " s"}, {"--map", map}};
}

}  // namespace

std::string_view to_string(FacilityEvent::Kind kind) {
  switch (kind) {
    case FacilityEvent::Kind::found:
      return "found";
    case FacilityEvent::Kind::revised:
      return "revised";
    case FacilityEvent::Kind::over:
      return "over";
  }
  return "unknown";
}

struct FacilityWatch::State {
  State(FacilityWatchOptions given, Filesystem& on, Format by)
      : options(std::move(given)), files(on), format(std::move(by)), causes(options.causes) {}

  Result<> load();
  Result<> load_blocks(std::uint64_t& place, std::string& print);
  Result<> load_events();
  Result<> begin_input(std::uint64_t place);
  Result<> follow_rotation();
  Result<bool> go_back_to(const std::string& fingerprint, std::uint64_t from);
  Result<> begin_next();
  Result<> read_rows();
  Result<> take_line(std::string_view line, std::uint64_t at);
  Result<> take_rows(std::span<series::FacilityRow> ready);
  void tell_rows();
  Result<> finish_block(const facility::SampleBlock& block, std::uint64_t place);
  void take_block(const facility::SampleBlock& block);
  void compare(WallTime at);
  Result<> learn_anew();
  Result<> tell(std::vector<std::string>& lines);
  void notice(std::string text) {
    if (notices.size() < kMostNotices) notices.push_back(std::move(text));
  }
  std::string blocks_path() const { return options.folder + "/blocks.log"; }
  std::string events_path() const { return options.folder + "/events.ndjson"; }
  std::string head_line() const { return sealed(fmt::format("{} {} {}", kSchema, first_event, options.input)); }

  FacilityWatchOptions options;
  Filesystem& files;
  Format format;
  LockFile lock;
  facility::CauseWatch causes;
  facility::BlockBuilder builder;
  std::optional<series::FacilityRows> rows;
  std::optional<series::RowsInTime> in_time;  ///< there with `rows`, and over a rotation
  char separator = ',';
  WatchInput input;
  std::deque<std::string> rotated;     ///< to be read before the input itself, oldest first
  std::string print;                   ///< the fingerprint of what is read
  std::uint64_t place = 0;             ///< in the input: behind the last row that was taken
  std::uint64_t line_number = 0;       ///< for messages
  std::optional<WallTime> newest_row;  ///< of all rows taken: what is read again, or once more, is not later
  bool more = false;
  bool zone_told = false;
  bool shut = false;  ///< the next file could not be opened
  std::optional<WallTime> last_start;
  std::uint64_t block_count = 0;
  std::vector<std::string> log_tail;  ///< the newest lines of the log
  std::unique_ptr<AppendFile> blocks_file, events_file;
  std::uint64_t first_event = 0;                   ///< told before the log begins
  std::uint64_t events_made = 0, events_told = 0;  ///< numbers
  std::vector<FacilityEvent> untold;
  struct Told {
    Cause cause = Cause::not_identifiable;
    bool over = false;
  };
  std::map<std::uint64_t, Told> told;
  std::vector<std::string> notices;
};

Result<> FacilityWatch::State::load() {
  FLYBALL_TRY(files.make_folders(options.folder));
  // A file system that is only in memory is this process's alone.
  if (&files == &system_filesystem()) {
    FLYBALL_ASSIGN(lock, lock_watch_folder(options.folder));
  }
  FLYBALL_TRY(keep_watch_options(options.folder, meaning_of(options), files));
  FLYBALL_TRY(load_events());
  std::uint64_t from = 0;
  std::string before;
  FLYBALL_TRY(load_blocks(from, before));
  FLYBALL_ASSIGN(blocks_file, files.open_append(blocks_path()));
  FLYBALL_ASSIGN(events_file, files.open_append(events_path()));
  FLYBALL_TRY(input.open(options.input));
  FLYBALL_ASSIGN(const std::string now, input.fingerprint());
  if (before.empty() || (before == now && input.size() >= from)) return begin_input(from);
  FLYBALL_ASSIGN(const bool found, go_back_to(before, from));
  if (found) return {};
  notice(options.input +
         ": not the file that was read before; it is read from its beginning, older rows are skipped. If it was "
         "rotated, what the old one held behind the last look is not seen: leave that beside it until the watch runs");
  return begin_input(0);
}

/// To what the input was rotated or copied to, where that lies beside it: its rest is read first.
Result<bool> FacilityWatch::State::go_back_to(const std::string& fingerprint, std::uint64_t from) {
  const std::vector<std::string> since = rotated_from(options.input, fingerprint, from);
  if (since.empty() || !input.open(since.front())) return false;
  rotated.assign(since.begin() + 1, since.end());
  notice(fmt::format("{}: rotated since the last look; {} is read to its end first", options.input, since.front()));
  FLYBALL_TRY(begin_input(from));
  return true;
}

Result<> FacilityWatch::State::load_events() {
  if (!files.exists(events_path())) return {};
  FLYBALL_ASSIGN(const std::string text, files.read(events_path(), kMostLog));
  const std::vector<std::string> lines = whole_lines(text);
  events_told = lines.size();
  std::string sound;
  for (const std::string& line : lines) sound += line + '\n';
  if (sound.size() != text.size()) FLYBALL_TRY(files.write_atomically(events_path(), sound));
  return {};
}

Result<> FacilityWatch::State::load_blocks(std::uint64_t& from, std::string& before) {
  if (!files.exists(blocks_path())) return files.write_atomically(blocks_path(), head_line());
  FLYBALL_ASSIGN(const std::string text, files.read(blocks_path(), kMostLog));
  const std::vector<std::string> lines = whole_lines(text);
  const auto wrong = [&](std::string what) {
    return fail(ErrorCode::failed, std::move(what), blocks_path(),
                "move this folder away to begin anew, or name another with --state-dir");
  };
  const std::optional<std::string> head = lines.empty() ? std::nullopt : opened(lines.front());
  if (!head) return wrong("this is no log of a watch");
  const std::size_t schema = head->find(' ');
  const std::size_t number = head->find(' ', schema + 1);
  if (head->substr(0, schema) != kSchema || number == head->npos) return wrong("a log of another kind or version");
  if (head->substr(number + 1) != options.input)
    return wrong(fmt::format("this log is of '{}'", head->substr(number + 1)));
  FLYBALL_ASSIGN(const std::int64_t first, parse_int(head->substr(schema + 1, number - schema - 1)));
  first_event = events_made = static_cast<std::uint64_t>(first);
  std::string sound = lines.front() + '\n';
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::optional<std::string> line = opened(lines[i]);
    if (!line) break;  // torn, or damaged: what follows is read again
    const std::size_t a = line->find(' '), b = line->find(' ', a + 1);
    if (b == line->npos) break;
    const auto at = parse_int(line->substr(0, a));
    auto block = facility::block_from_line(std::string_view(*line).substr(b + 1));
    if (!at || !block) break;
    from = static_cast<std::uint64_t>(*at);
    before = line->substr(a + 1, b - a - 1);
    sound += lines[i] + '\n';
    log_tail.push_back(lines[i]);
    take_block(*block);
  }
  if (sound.size() != text.size()) FLYBALL_TRY(files.write_atomically(blocks_path(), sound));
  return {};
}

/// Binds the header, and goes on behind what was read before.
Result<> FacilityWatch::State::begin_input(std::uint64_t from) {
  rows.reset();
  place = 0;
  line_number = 0;
  FLYBALL_ASSIGN(print, input.fingerprint());
  FLYBALL_ASSIGN(const std::string head, input.read(0, LineReader::kDefaultMaxLine));
  const std::size_t end = head.find('\n');
  if (end == head.npos) return {};  // its header is not there yet
  std::string_view line = std::string_view(head).substr(0, end);
  if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  separator = guess_separator(line);
  const auto source = bytes_in_memory(line);
  CsvReader csv(*source, {.separator = separator});
  CsvRow row;
  FLYBALL_TRY(csv.next(row));
  FLYBALL_ASSIGN(series::FacilityRows bound,
                 series::FacilityRows::bind(row.cells, options.map, input.path(), separator));
  rows.emplace(std::move(bound));
  if (newest_row) rows->resume_after(*newest_row);
  if (!in_time) {
    in_time.emplace(options.input, rows->time_column());
    if (newest_row) in_time->resume_after(*newest_row);
  }
  FLYBALL_ASSIGN(const std::vector<std::string> lost, lost_columns(options.folder, rows->known(), files));
  if (!lost.empty())
    notice(
        fmt::format("{}:1: columns that were there before are not any more: {}; what they tell is not seen, add them "
                    "to the file again",
                    input.path(), fmt::join(lost, ", ")));
  place = std::max<std::uint64_t>(end + 1, from);
  FLYBALL_ASSIGN(line_number, input.lines_before(place));
  return {};
}

Result<> FacilityWatch::State::follow_rotation() {
  FLYBALL_ASSIGN(const std::string now, input.fingerprint());
  if (print == kNoFingerprint) print = now;
  if (input.size() < place || now != print) {
    FLYBALL_ASSIGN(const bool found, go_back_to(print, place));
    if (found) return {};
    notice(input.path() + ": cut or written anew; it is read from its beginning, older rows are skipped");
    return begin_next();
  }
  if (rotated.empty() && !input.replaced_by(options.input)) return {};
  // What came since the last look is in the old file, which nobody writes any more.
  FLYBALL_TRY(read_rows());
  if (more) return {};
  const std::string next = rotated.empty() ? options.input : rotated.front();
  if (!rotated.empty()) rotated.pop_front();
  if (input.size() > place)
    notice(fmt::format("{}:{}: the last line has no end, and the file was rotated: it is left out", input.path(),
                       line_number + 1));
  const auto opened = input.open(next);
  shut = !opened.has_value();
  if (shut) {
    notice(opened.error().message());
    return {};
  }
  notice(next + (next == options.input ? ": another file has this name now; it is read from its beginning"
                                       : ": rotated after that one, and read next"));
  return begin_next();
}

/// Rows that wait for others go on waiting; should this end before they are used, all of the next file is read again.
Result<> FacilityWatch::State::begin_next() {
  if (in_time) in_time->forget_places();
  return begin_input(0);
}

Result<> FacilityWatch::State::read_rows() {
  if (!rows) FLYBALL_TRY(begin_input(0));
  if (!rows) return {};
  FLYBALL_ASSIGN(const std::string chunk, input.read(place, kChunk));
  more = chunk.size() == kChunk;
  std::size_t from = 0;
  for (std::size_t end = chunk.find('\n'); end != chunk.npos; end = chunk.find('\n', from)) {
    const std::uint64_t at = place + from;
    ++line_number;
    FLYBALL_TRY(take_line(std::string_view(chunk).substr(from, end - from), at));
    from = end + 1;
  }
  if (from == 0 && more) {
    notice(fmt::format("{}: a line of more than {} bytes is skipped", input.path(), kChunk));
    from = chunk.size();
  }
  place += from;
  if (!more) tell_rows();
  return {};
}

Result<> FacilityWatch::State::take_line(std::string_view line, std::uint64_t at) {
  const auto source = bytes_in_memory(line);
  CsvReader csv(*source, {.separator = separator});
  CsvRow row;
  const auto there = csv.next(row);
  if (!there || !*there) return {};
  auto read = rows->read(row.cells, line_number, at);
  if (!read) {
    // A live watch does not end for one row.
    notice(read.error().message());
    return {};
  }
  return *read ? take_rows(in_time->take(**std::move(read))) : Result<>();
}

Result<> FacilityWatch::State::take_rows(std::span<series::FacilityRow> ready) {
  for (series::FacilityRow& row : ready) {
    newest_row = row.sample.at;
    if (const auto block = builder.take(row.sample)) FLYBALL_TRY(finish_block(*block, row.place));
  }
  return {};
}

/// Once for all that was there to be read.
void FacilityWatch::State::tell_rows() {
  const series::RowOrderCounts seen = in_time->take_counts();
  if (rows->zone_assumed() && !std::exchange(zone_told, true))
    notice(input.path() + ": the stamps carry no zone and are read as UTC; a map can name it (zone)");
  const series::FacilityRowCounts cells = rows->take_counts();
  if (cells.hours_back > 0) notice(cells.first_hour_back);
  if (seen.ahead > 0)
    notice(fmt::format("{}: {} rows are more than a day ahead of those around them and set aside; mend that clock",
                       seen.first_ahead, seen.ahead));
  if (seen.out_of_order == 0) return;
  if (newest_row && seen.rows == 0 && seen.far_back == seen.out_of_order)
    return notice(
        fmt::format("{}: all {} new rows lie more than a day before the last that was taken, {}; if a clock "
                    "was ahead then, move {} away to begin anew, or name another with --state-dir",
                    seen.first_back, seen.out_of_order, format_rfc3339(*newest_row), options.folder));
  const bool newest_first = cells.falling > 1 && cells.falling > seen.rows;
  notice(fmt::format("{}: {} rows are not later than the one before and left out{}", seen.first_back, seen.out_of_order,
                     newest_first ? "; most stand before an earlier one: a watch follows a file whose newest row comes "
                                    "last, turn it round (tac), or read it once with flyball calibrate explain"
                                  : ""));
}

Result<> FacilityWatch::State::finish_block(const facility::SampleBlock& block, std::uint64_t behind) {
  if (print == kNoFingerprint) {
    FLYBALL_ASSIGN(print, input.fingerprint());
  }
  const std::string line = sealed(fmt::format("{} {} {}", behind, print, facility::to_line(block)));
  FLYBALL_TRY(blocks_file->append(line));
  FLYBALL_TRY(blocks_file->sync());
  log_tail.push_back(line.substr(0, line.size() - 1));
  take_block(block);
  return block_count >= kMostBlocks ? learn_anew() : Result<>();
}

void FacilityWatch::State::take_block(const facility::SampleBlock& block) {
  if (log_tail.size() > 2 * kKeptBlocks)
    log_tail.erase(log_tail.begin(), log_tail.end() - static_cast<std::ptrdiff_t>(kKeptBlocks));
  ++block_count;
  last_start = block.start;
  const WallTime end = block.start + block.length;
  // After a restart: the last row of this block was before its end, and the next is taken.
  newest_row = std::max(newest_row.value_or(block.start), WallTime(end.nanoseconds() - 1));
  causes.take(block);
  compare(end);
}

/// What the block changed in what is found.
void FacilityWatch::State::compare(WallTime at) {
  for (const facility::CauseFinding& finding : causes.findings()) {
    const auto [entry, fresh] = told.try_emplace(finding.number);
    Told& before = entry->second;
    std::optional<FacilityEvent::Kind> kind;
    if (fresh) kind = FacilityEvent::Kind::found;
    if (!fresh && (before.cause != finding.cause || (before.over && !finding.until)))
      kind = FacilityEvent::Kind::revised;
    if (!fresh && !before.over && finding.until) kind = FacilityEvent::Kind::over;
    before = {finding.cause, finding.until.has_value()};
    if (!kind) continue;
    ++events_made;
    if (events_made > events_told) untold.push_back({events_made, *kind, at, finding});
  }
}

/// The log is bounded: the newest weeks are what is learned from next.
Result<> FacilityWatch::State::learn_anew() {
  std::vector<std::string> lines;
  FLYBALL_TRY(tell(lines));
  first_event = events_made;
  const std::size_t kept = std::min(kKeptBlocks, log_tail.size());
  const std::vector<std::string> newest(log_tail.end() - static_cast<std::ptrdiff_t>(kept), log_tail.end());
  std::string text = head_line();
  for (const std::string& line : newest) text += line + '\n';
  FLYBALL_TRY(files.write_atomically(blocks_path(), text));
  FLYBALL_ASSIGN(blocks_file, files.open_append(blocks_path()));
  notice("half a year has passed: what is usual is learned anew from the newest weeks");
  causes = facility::CauseWatch(options.causes);
  told.clear();
  log_tail.clear();
  block_count = 0;
  std::uint64_t from = 0;
  std::string before;
  return load_blocks(from, before);
}

Result<> FacilityWatch::State::tell(std::vector<std::string>& lines) {
  std::string text;
  for (const FacilityEvent& event : untold) {
    lines.push_back(format(event));
    text += lines.back();
  }
  if (text.empty()) return {};
  FLYBALL_TRY(events_file->append(text));
  FLYBALL_TRY(events_file->sync());
  events_told = untold.back().number;
  untold.clear();
  return {};
}

FacilityWatch::FacilityWatch(std::unique_ptr<State> state) : state_(std::move(state)) {}
FacilityWatch::FacilityWatch(FacilityWatch&&) noexcept = default;
FacilityWatch& FacilityWatch::operator=(FacilityWatch&&) noexcept = default;
FacilityWatch::~FacilityWatch() = default;

Result<FacilityWatch> FacilityWatch::open(FacilityWatchOptions options, Filesystem& files, Format format) {
  auto state = std::make_unique<State>(std::move(options), files, std::move(format));
  FLYBALL_TRY(state->load());
  return FacilityWatch(std::move(state));
}

Result<std::vector<std::string>> FacilityWatch::poll() {
  std::vector<std::string> lines;
  FLYBALL_TRY(state_->tell(lines));
  FLYBALL_TRY(state_->follow_rotation());
  FLYBALL_TRY(state_->read_rows());
  FLYBALL_TRY(state_->tell(lines));
  return lines;
}

bool FacilityWatch::behind() const {
  const State& s = *state_;
  // A file that is rotated again while an older one is read, but not one that cannot be opened.
  const bool aside = s.input.path() != s.options.input && s.input.replaced_by(s.options.input);
  return s.more || (!s.shut && (!s.rotated.empty() || aside));
}
std::vector<std::string> FacilityWatch::notices() { return std::exchange(state_->notices, {}); }
const facility::CauseWatch& FacilityWatch::causes() const { return state_->causes; }
std::uint64_t FacilityWatch::blocks() const { return state_->block_count; }
std::optional<WallTime> FacilityWatch::last_block() const { return state_->last_start; }

}  // namespace flyball::control
