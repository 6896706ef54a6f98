#pragma once
// How fast and with how much power one GPU does its work, against its power limit.

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "curve/monotone_cubic.h"

namespace flyball::curve {

/// What was measured at one limit. `time` is per unit of work (an epoch, a step, whatever the source timed): only
/// ratios of times of one curve mean anything elsewhere. `power` is the mean of one GPU while it works; it may exceed
/// the limit, for some boards cannot go as low as they are asked to.
struct Point {
  Milliwatts limit;
  Seconds time;
  Watts power;
};

/// A curve through knots: monotone cubic in log time and in power. At limits outside the knots the end values hold.
class Curve {
 public:
  /// Through the points as they are, in any order of limits; each limit once, all values positive and finite.
  static Result<Curve> through(std::span<const Point> points);
  /// The "truth curve": more limit is never slower and never draws less (pool adjacent violators, time in logs), then
  /// as above. Raw curves are mostly not monotone, and a choice made on their bumps would harvest noise.
  static Result<Curve> monotone(std::span<const Point> points);

  Seconds time(Watts limit) const;
  Watts power(Watts limit) const;
  /// Per unit of work.
  Joules energy(Watts limit) const { return power(limit) * time(limit); }
  /// time(highest) / time(limit): 1 at the highest limit, less below it.
  double speed_fraction(Watts limit) const { return time(highest()) / time(limit); }

  Watts lowest() const { return knots_.front().limit.watts(); }
  Watts highest() const { return knots_.back().limit.watts(); }
  /// Ascending in the limit.
  const std::vector<Point>& knots() const { return knots_; }

 private:
  std::vector<Point> knots_;
  MonotoneCubic log_time_;
  MonotoneCubic power_;
};

}  // namespace flyball::curve
