#pragma once
// Two kinds of time. MonoTime orders and measures (never jumps, counts while suspended); WallTime is what a person or
// another machine calls the time (UTC, may jump) and is only ever stored or shown, never subtracted to get power.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace flyball {

/// A point in time in whole nanoseconds. Differences are Seconds.
template <class Tag>
class TimePoint {
 public:
  constexpr TimePoint() = default;
  constexpr explicit TimePoint(std::int64_t nanoseconds) : ns_(nanoseconds) {}
  constexpr std::int64_t nanoseconds() const { return ns_; }
  constexpr double seconds() const { return static_cast<double>(ns_) * 1e-9; }
  constexpr auto operator<=>(const TimePoint&) const = default;
  friend constexpr Seconds operator-(TimePoint a, TimePoint b) {
    return Seconds(static_cast<double>(a.ns_ - b.ns_) * 1e-9);
  }
  friend TimePoint operator+(TimePoint a, Seconds d) { return TimePoint(a.ns_ + std::llround(d.value() * 1e9)); }
  friend TimePoint operator-(TimePoint a, Seconds d) { return a + (-d); }

 private:
  std::int64_t ns_ = 0;
};

/// CLOCK_BOOTTIME on a real machine; seconds since the start of the run in a simulation.
using MonoTime = TimePoint<struct MonoTag>;
/// Nanoseconds since 1970-01-01T00:00:00Z.
using WallTime = TimePoint<struct WallTag>;

/// "2026-12-01T13:54:05.250Z": milliseconds, always UTC.
std::string format_rfc3339(WallTime t);
/// Accepts a zone 'Z' or ±hh:mm and up to nine decimals. A stamp without zone is an error, for it names no instant.
Result<WallTime> parse_rfc3339(std::string_view text);

class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonoTime now() const = 0;
  virtual WallTime wall() const = 0;
  /// Returns at `t` or later. In a simulation this is what moves time.
  virtual void sleep_until(MonoTime t) = 0;
};

class SystemClock final : public Clock {
 public:
  MonoTime now() const override;
  WallTime wall() const override;
  void sleep_until(MonoTime t) override;
};

/// Time that moves only when told to. Not for threads.
class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(WallTime start = WallTime(1'767'225'600'000'000'000)) : wall_offset_(start.nanoseconds()) {}
  MonoTime now() const override { return now_; }
  WallTime wall() const override { return WallTime(wall_offset_ + now_.nanoseconds()); }
  void sleep_until(MonoTime t) override {
    if (t > now_) now_ = t;
  }
  void advance(Seconds d) { now_ = now_ + d; }
  /// A wall-clock step (NTP, an operator): wall time jumps, monotonic time does not.
  void step_wall(Seconds d) { wall_offset_ += std::llround(d.value() * 1e9); }

 private:
  MonoTime now_;
  std::int64_t wall_offset_;
};

}  // namespace flyball
