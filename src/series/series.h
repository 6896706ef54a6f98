#pragma once
// The shape of measured time series. A recording's times are monotonic times anchored once to UTC, so that
// differences are true durations; files of other tools carry wall times and are checked for jumps when read.

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/device.h"
#include "core/reading.h"

namespace flyball::series {

struct Point {
  WallTime at;       ///< the time of measurement, not of arrival
  double value = 0;  ///< in unit_of(signal); meaningless unless status is ok
  Status status = Status::ok;
};

/// What one series measures. Two series with different signal, scope or source are never mixed into one.
struct SeriesKey {
  DeviceId device;
  Signal signal = Signal::power_average;
  Scope scope = Scope::unknown;
  std::string source;  ///< "nvml", "nvidia-smi csv", "redfish /Chassis/1/Power", …
  bool operator==(const SeriesKey&) const = default;
};

struct Series {
  SeriesKey key;
  std::vector<Point> points;  ///< in order of time
};

/// Something that happened: a phase boundary, a write, a wall-clock step, the start of a run.
struct Event {
  WallTime at;
  std::string kind;  ///< "run_start", "eval_stop", "step", "limit_write", "wall_step", …
  DeviceId device;   ///< empty = the whole job
  std::string run;   ///< which run or job it belongs to; empty if there is one
  double value = 0;
  std::string detail;
};

/// A piece of input that was set aside instead of being guessed at.
struct Quarantined {
  std::uint64_t line = 0;
  std::string reason;
  std::string text;  ///< the first 120 bytes
};

/// Where readers put what they read, in the order of the input; so that a file need not fit in memory.
/// `series` is the number that `begin_series` gave.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual std::uint32_t begin_series(const SeriesKey& key) = 0;
  virtual void point(std::uint32_t series, const Point& point) = 0;
  virtual void event(const Event& event) = 0;
  virtual void quarantine(const Quarantined& row) = 0;
};

/// A whole recording in memory.
struct Recording {
  std::vector<Series> series;
  std::vector<Event> events;
  std::vector<Quarantined> quarantined;  ///< the first 1,000
  std::uint64_t quarantined_count = 0;
};

}  // namespace flyball::series
