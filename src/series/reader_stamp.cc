#include "series/reader_stamp.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <type_traits>

#include "base/decimal.h"
#include "base/text.h"

namespace flyball::series {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
// No telemetry of this kind is older, and no clock that is right is ahead of this.
constexpr std::int64_t kYear2000Seconds = 946'684'800;
constexpr std::int64_t kYear2100Seconds = 4'102'444'800;
constexpr const char* kNotAStamp =
    "the stamp cannot be read (write 2024-05-17T15:00:00Z, or seconds or milliseconds since 1970)";
constexpr const char* kDayOrMonth =
    "the stamp's day and month cannot be told apart (write 2024-05-17 15:00:00 or 17.05.2024 15:00:00)";
constexpr const char* kImpossibleYear = "the stamp is not between 2000 and 2100";

bool digits(std::string_view text, std::size_t from, std::size_t count, int& value) {
  value = 0;
  if (text.size() < from + count) return false;
  for (std::size_t i = from; i < from + count; ++i) {
    const auto digit = static_cast<unsigned char>(text[i] - '0');
    if (digit > 9) return false;
    value = value * 10 + digit;
  }
  return true;
}

/// Decimals behind a point or comma at `at`, as nanoseconds; moves `at` past them.
bool fraction(std::string_view text, std::size_t& at, std::int64_t& ns) {
  static constexpr std::int64_t kNsPerUnit[] = {1'000'000'000, 100'000'000, 10'000'000, 1'000'000, 100'000,
                                                10'000,        1'000,       100,        10,        1};
  ns = 0;
  if (at == text.size() || (text[at] != '.' && text[at] != ',')) return true;
  std::size_t count = 0;
  for (++at; at < text.size(); ++at) {
    const auto digit = static_cast<unsigned char>(text[at] - '0');
    if (digit > 9) break;
    if (count < 9) ns = ns * 10 + digit, ++count;
  }
  ns *= kNsPerUnit[count];
  return count > 0;
}

/// The two stamps that fill most files, without a branch for each digit: ten digits of seconds with one to eight
/// decimals, and thirteen digits of milliseconds. False for anything else, right or wrong.
bool usual_number(std::string_view cell, std::uint64_t& whole, std::uint64_t& ns) {
  static constexpr std::uint64_t kNsPerUnit[] = {0,      100'000'000, 10'000'000, 1'000'000, 100'000,
                                                 10'000, 1'000,       100,        10};
  std::uint64_t first = 0, last = 0;
  if (cell.size() == 13) {
    if (!eight_digits(cell.data(), first) || !eight_digits(cell.data() + 5, last)) return false;
    whole = first * 100'000 + last % 100'000;
    ns = 0;
    return true;
  }
  if (cell.size() < 12 || cell.size() > 19 || cell[10] != '.') return false;
  const std::size_t decimals = cell.size() - 11;
  if (!eight_digits(cell.data(), first) || !eight_digits(cell.data() + 2, last)) return false;
  whole = first * 100 + last % 100;
  // The last eight bytes, of which those in front of the decimals become zeros.
  std::uint64_t word = 0;
  std::memcpy(&word, cell.data() + cell.size() - 8, sizeof word);
  if constexpr (std::endian::native != std::endian::little) return false;
  const std::size_t front = 8 * (8 - decimals);
  if (front > 0) word = (word >> front << front) | (0x3030303030303030U & ((1ULL << front) - 1));
  char tail[8];
  std::memcpy(tail, &word, sizeof word);
  if (!eight_digits(tail, ns)) return false;
  ns *= kNsPerUnit[decimals];
  return true;
}

/// "Z" or ±hh[:mm]; false if `text` is something else.
bool offset_of(std::string_view text, std::int64_t& seconds) {
  seconds = 0;
  if (text == "Z" || text == "z" || text == "UTC") return true;
  if (text.size() < 3 || (text[0] != '+' && text[0] != '-')) return false;
  int hours = 0;
  int minutes = 0;
  if (!digits(text, 1, 2, hours)) return false;
  if (text.size() > 3 && !digits(text, text[3] == ':' ? 4 : 3, 2, minutes)) return false;
  if (text.size() > 6 || hours > 14 || minutes > 59) return false;
  seconds = (hours * 60 + minutes) * 60;
  if (text[0] == '-') seconds = -seconds;
  return true;
}

}  // namespace

StampUnit stamp_unit_of(std::string_view name) {
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  if (ends("_ms") || ends("(ms)") || ends("[ms]")) return StampUnit::ms;
  if (ends("_us") || ends("(us)") || ends("[us]")) return StampUnit::us;
  if (ends("_ns") || ends("(ns)") || ends("[ns]")) return StampUnit::ns;
  if (ends("_s") || ends("(s)") || ends("[s]")) return StampUnit::s;
  return StampUnit::by_size;
}

Result<StampReader> StampReader::make(const ReadOptions& options) {
  StampReader reader;
  reader.fold_ = options.fold;
  if (!options.zone.empty()) {
    FLYBALL_ASSIGN(reader.zone_, Zone::find(options.zone));
  }
  return reader;
}

const char* StampReader::read(std::string_view cell, StampUnit unit, WallTime& at) {
  while (!cell.empty() && cell.front() == ' ') cell.remove_prefix(1);
  while (!cell.empty() && cell.back() == ' ') cell.remove_suffix(1);
  const bool date = cell.size() >= 16 && (cell[4] == '-' || cell[4] == '/');
  if (cell.size() >= 16 && cell.size() <= 40 && cell[2] == '.' && cell[5] == '.') {
    // 17.05.2024 15:00:00, whose points say that the day comes first.
    std::array<char, 40> turned{};
    cell.substr(6, 4).copy(turned.data(), 4);
    turned[4] = turned[7] = '-';
    cell.substr(3, 2).copy(turned.data() + 5, 2);
    cell.substr(0, 2).copy(turned.data() + 8, 2);
    cell.substr(10).copy(turned.data() + 10, cell.size() - 10);
    return read_date({turned.data(), cell.size()}, at);
  }
  if (!date && cell.size() >= 8 && std::count(cell.begin(), cell.end(), '/') == 2) return kDayOrMonth;
  return date ? read_date(cell, at) : read_number(cell, unit, at);
}

const char* StampReader::read_number(std::string_view cell, StampUnit unit, WallTime& at) const {
  if (std::uint64_t whole = 0, ns = 0; usual_number(cell, whole, ns))
    return from_count(whole, static_cast<std::int64_t>(ns), unit, at);
  std::size_t point = 0;
  std::uint64_t count = 0;
  while (point < cell.size() && static_cast<unsigned char>(cell[point] - '0') < 10) {
    if (point == 19) return kImpossibleYear;
    count = count * 10 + static_cast<unsigned>(cell[point] - '0');
    ++point;
  }
  if (point == 0) return cell.empty() ? "the row has no stamp" : kNotAStamp;
  std::int64_t part = 0;
  std::size_t rest = point;
  if (!fraction(cell, rest, part)) return kNotAStamp;
  if (rest != cell.size()) {  // 1.7159603e9 and the like
    double value = 0;
    if (!parse_decimal(cell, value) || !(value >= 0 && value < 4e18)) return kNotAStamp;
    count = static_cast<std::uint64_t>(value);
    part = static_cast<std::int64_t>((value - std::floor(value)) * 1e9);
  }
  return from_count(count, part, unit, at);
}

const char* StampReader::from_count(std::uint64_t count, std::int64_t part, StampUnit unit, WallTime& at) {
  if (count > INT64_MAX) return kImpossibleYear;
  const auto whole = static_cast<std::int64_t>(count);
  if (unit == StampUnit::by_size) {
    unit = whole < 100'000'000'000           ? StampUnit::s
           : whole < 100'000'000'000'000     ? StampUnit::ms
           : whole < 100'000'000'000'000'000 ? StampUnit::us
                                             : StampUnit::ns;
  }
  // Divisions by constants: this stands in the way of every row.
  const auto count_of = [&](auto per_second) -> const char* {
    const std::int64_t seconds = whole / per_second();
    if (seconds < kYear2000Seconds || seconds >= kYear2100Seconds) return kImpossibleYear;
    at = WallTime(whole * (kNsPerSecond / per_second()) + part / per_second());
    return nullptr;
  };
  switch (unit) {
    case StampUnit::ms:
      return count_of(std::integral_constant<std::int64_t, 1'000>());
    case StampUnit::us:
      return count_of(std::integral_constant<std::int64_t, 1'000'000>());
    case StampUnit::ns:
      return count_of(std::integral_constant<std::int64_t, kNsPerSecond>());
    case StampUnit::s:
    case StampUnit::by_size:
      break;
  }
  return count_of(std::integral_constant<std::int64_t, 1>());
}

const char* StampReader::read_date(std::string_view cell, WallTime& at) {
  if (std::memcmp(cell.data(), day_text_, sizeof day_text_) != 0) {
    int year = 0;
    int month = 0;
    int day = 0;
    if (!digits(cell, 0, 4, year) || !digits(cell, 5, 2, month) || !digits(cell, 8, 2, day) || cell[7] != cell[4]) {
      return kNotAStamp;
    }
    const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (!date.ok()) return kNotAStamp;
    if (year < 2000 || year >= 2100) return kImpossibleYear;
    const auto start = std::chrono::sys_days(date).time_since_epoch();
    day_start_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(start).count();
    cell.copy(day_text_, sizeof day_text_);
  }
  int hour = 0;
  int minute = 0;
  int second = 0;
  if ((cell[10] != ' ' && cell[10] != 'T' && cell[10] != 't') || cell[13] != ':') return kNotAStamp;
  if (!digits(cell, 11, 2, hour) || !digits(cell, 14, 2, minute) || hour > 23 || minute > 59) return kNotAStamp;
  std::size_t next = 16;
  std::int64_t part = 0;
  if (next < cell.size() && cell[next] == ':') {
    if (!digits(cell, 17, 2, second) || second > 60) return kNotAStamp;
    next = 19;
    if (!fraction(cell, next, part)) return kNotAStamp;
  }
  const std::int64_t local = day_start_ns_ + ((hour * 60 + minute) * 60 + second) * kNsPerSecond + part;
  std::string_view zone = cell.substr(next);
  while (!zone.empty() && zone.front() == ' ') zone.remove_prefix(1);
  if (!zone.empty()) {
    std::int64_t offset = 0;
    if (!offset_of(zone, offset)) return kNotAStamp;
    at = WallTime(local - offset * kNsPerSecond);
    return nullptr;
  }
  if (!zone_) {
    assumed_utc_ = true;
    at = WallTime(local);
    return nullptr;
  }
  switch (zone_->to_utc(local, fold_, at)) {
    case LocalTime::ok:
      return nullptr;
    case LocalTime::ambiguous:
      if (fold_ == Fold::in_order) return read_folded(local, at), nullptr;
      return "the stamp lies in the hour that the zone repeats, and no rule says which of the two is meant";
    case LocalTime::skipped:
      return "the stamp lies in the hour that the zone leaves out";
  }
  return kNotAStamp;
}

void StampReader::read_folded(std::int64_t local_ns, WallTime& at) {
  // A row that stands twice or in the wrong place goes back by less; an hour less the time between two rows by more.
  constexpr Seconds kGoesBack(1800);
  WallTime first, second;
  zone_->to_utc(local_ns, Fold::earlier, first);
  zone_->to_utc(local_ns, Fold::later, second);
  const bool between = before_ && first <= *before_ && *before_ < second;
  const bool again = between && first + kGoesBack <= *before_;
  if (between && !again) ++unsure_;
  at = again ? second : first;
  before_ = at;
}

void StampReader::report(Intake& intake) const {
  if (assumed_utc_) intake.warn("the stamps carry no zone and were read as UTC; name the zone if they are local time");
}

}  // namespace flyball::series
