#pragma once
// The usable part of a series: good points in strictly rising time, as plain numbers. Every formula of this room starts
// here, so that a point which is not `ok`, runs backwards or repeats a stamp reaches none of them.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "series/series.h"

namespace flyball::series {

/// Half-open: [start, stop).
struct Interval {
  WallTime start;
  WallTime stop;
  Seconds length() const { return stop - start; }
  bool operator==(const Interval&) const = default;
};

/// What was set aside, and why.
struct Skipped {
  std::uint64_t not_ok = 0;      ///< status was not `ok`, or the value was not finite
  std::uint64_t duplicate = 0;   ///< same stamp as a point that was kept
  std::uint64_t disordered = 0;  ///< the fewest points whose removal puts the stamps in order
  std::uint64_t total() const { return not_ok + duplicate + disordered; }
};

struct Samples {
  WallTime origin;          ///< instant of t_s = 0: the first kept point
  std::vector<double> t_s;  ///< strictly rising
  std::vector<double> value;
  Skipped skipped;
  Seconds period;  ///< median distance of neighbours; 0 for fewer than two points

  std::size_t size() const { return t_s.size(); }
  double seconds_of(WallTime at) const { return (at - origin).value(); }
  WallTime instant_of(double seconds) const { return origin + Seconds(seconds); }
};

Samples usable_samples(std::span<const Point> points);

/// When a distance between neighbours is a hole. Default: three lost samples in a row (real loggers jitter by a quarter
/// of their period, so a factor of 3.5 never cuts between two lost ones and three).
struct GapRule {
  double periods = 3.5;  ///< a distance above this many median periods is a hole
  bool bridge = false;   ///< integrate across holes all the same; the seconds so bridged are stated
  /// The longest distance that is not a hole.
  Seconds longest(Seconds period) const { return period * periods; }
};

/// The part of `points` inside the interval (by stamp), without copying. Points must be in order of time.
std::span<const Point> points_within(std::span<const Point> points, Interval interval);

}  // namespace flyball::series
