#include "base/clock.h"

#include <fmt/format.h>
#include <time.h>

#include <cerrno>
#include <charconv>
#include <chrono>

namespace flyball {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

std::int64_t read_clock(clockid_t id) {
  timespec t{};
  ::clock_gettime(id, &t);
  return static_cast<std::int64_t>(t.tv_sec) * kNanosecondsPerSecond + t.tv_nsec;
}

/// Reads exactly `digits` decimal digits and moves `text` past them; -1 if they are not there.
int take_digits(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return -1;
  int value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + digits, value);
  if (ec != std::errc() || end != text.data() + digits || text.front() == '-') return -1;
  text.remove_prefix(digits);
  return value;
}

bool take_char(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

/// Up to nine decimals behind a dot, as nanoseconds; -1 if malformed.
std::int64_t take_fraction(std::string_view& text) {
  if (!take_char(text, '.')) return 0;
  std::int64_t ns = 0;
  std::size_t n = 0;
  for (; n < text.size() && text[n] >= '0' && text[n] <= '9'; ++n) {
    if (n < 9) ns = ns * 10 + (text[n] - '0');
  }
  if (n == 0) return -1;
  for (std::size_t i = n; i < 9; ++i) ns *= 10;
  text.remove_prefix(n);
  return ns;
}

/// Minutes east of UTC, or a value beyond ±24 h if malformed.
int take_zone(std::string_view& text) {
  constexpr int kBad = 100'000;
  if (take_char(text, 'Z') || take_char(text, 'z')) return 0;
  const int sign = take_char(text, '+') ? 1 : take_char(text, '-') ? -1 : 0;
  if (sign == 0) return kBad;
  const int hours = take_digits(text, 2);
  take_char(text, ':');
  const int minutes = take_digits(text, 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return kBad;
  return sign * (hours * 60 + minutes);
}

}  // namespace

std::string format_rfc3339(WallTime t) {
  using namespace std::chrono;
  const sys_time<nanoseconds> instant{nanoseconds(t.nanoseconds())};
  const auto day = floor<days>(instant);
  const year_month_day date(day);
  const hh_mm_ss time(floor<milliseconds>(instant - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), time.hours().count(),
                     time.minutes().count(), time.seconds().count(), time.subseconds().count());
}

Result<WallTime> parse_rfc3339(std::string_view text) {
  using namespace std::chrono;
  const std::string original(text.substr(0, 64));
  const auto bad = [&] {
    return fail(ErrorCode::input, fmt::format("'{}' is not a time", original), {},
                "write it as 2026-12-01T13:54:05Z or with a zone such as +01:00");
  };
  const int y = take_digits(text, 4);
  if (y < 1678 || y > 2261 || !take_char(text, '-')) return bad();  // the range of 64-bit nanoseconds
  const int mo = take_digits(text, 2);
  if (!take_char(text, '-')) return bad();
  const int d = take_digits(text, 2);
  if (!take_char(text, 'T') && !take_char(text, 't') && !take_char(text, ' ')) return bad();
  const int h = take_digits(text, 2);
  if (!take_char(text, ':')) return bad();
  const int mi = take_digits(text, 2);
  if (!take_char(text, ':')) return bad();
  const int s = take_digits(text, 2);
  const std::int64_t fraction = take_fraction(text);
  const int zone = take_zone(text);
  if (mo < 1 || d < 1 || h < 0 || h > 23 || mi < 0 || mi > 59 || s < 0 || s > 60 || fraction < 0) return bad();
  if (std::abs(zone) >= 24 * 60 || !text.empty()) return bad();
  const year_month_day date(year(y), month(static_cast<unsigned>(mo)), day(static_cast<unsigned>(d)));
  if (!date.ok()) return bad();
  const auto seconds_since = sys_days(date).time_since_epoch() + hours(h) + minutes(mi - zone) + seconds(s);
  return WallTime(duration_cast<nanoseconds>(seconds_since).count() + fraction);
}

MonoTime SystemClock::now() const { return MonoTime(read_clock(CLOCK_BOOTTIME)); }
WallTime SystemClock::wall() const { return WallTime(read_clock(CLOCK_REALTIME)); }

void SystemClock::sleep_until(MonoTime t) {
  timespec until{};
  until.tv_sec = t.nanoseconds() / kNanosecondsPerSecond;
  until.tv_nsec = t.nanoseconds() % kNanosecondsPerSecond;
  while (::clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace flyball
