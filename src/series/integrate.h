#pragma once
// Energy from power: the trapezoid rule on measured times, clipped at given instants with the value interpolated there.
// A hole (see GapRule) adds nothing and lowers the coverage; it is never filled with the last value.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/units.h"
#include "series/samples.h"
#include "series/series.h"

namespace flyball::series {

struct Integral {
  Joules energy;    ///< over `covered` + `bridged` + `edges`
  Seconds asked;    ///< length of the clip, or from the first to the last good point
  Seconds covered;  ///< between neighbouring good points
  Seconds bridged;  ///< of holes, only if the rule says bridge
  Seconds edges;    ///< between a clip and a first or last point nearer than one period: that point's value
  Seconds period;   ///< median distance of good points
  std::uint64_t used = 0;
  std::uint64_t holes = 0;
  Seconds longest_hole;
  bool begins_in_hole = false;  ///< the clip
  bool ends_in_hole = false;
  Skipped skipped;

  /// The stretch behind this one: a hole across the seam is one hole. `skipped` is not added: the two may have been
  /// cut from the same points.
  Integral& operator+=(const Integral& next);

  /// Share of the asked time that was measured; bridged holes do not count.
  double coverage_fraction() const { return asked > Seconds(0) ? std::min(1.0, (covered + edges) / asked) : 0; }
  /// Over the measured time only, so that a hole does not look like rest.
  Watts mean_power() const {
    const Seconds known = covered + bridged + edges;
    return known > Seconds(0) ? energy / known : Watts(0);
  }
};

/// `power` in W. Without a clip: from the first to the last good point.
Integral integrate_power(std::span<const Point> power, std::optional<Interval> clip = {}, const GapRule& rule = {});
/// The same on samples that are at hand.
Integral integrate_power(const Samples& power, std::optional<Interval> clip = {}, const GapRule& rule = {});

/// One pass, constant memory, for a source whose period is known. It looks one point ahead: a stamp that the next point
/// contradicts is dropped instead of making all that follow look late.
class PowerIntegrator {
 public:
  explicit PowerIntegrator(Seconds period, std::optional<Interval> clip = {}, const GapRule& rule = {})
      : period_(period), clip_(clip), rule_(rule) {}

  void add(const Point& point);
  /// The result so far; counts the point that is still looked at as good.
  Integral result() const;

 private:
  struct State {
    Integral sum;
    std::optional<Point> first, last;
  };
  void accept(State& state, const Point& point) const;

  Seconds period_;
  std::optional<Interval> clip_;
  GapRule rule_;
  State state_;
  std::optional<Point> pending_;
};

/// Running integral of power as a function of time, for means over any interval: E(t) and covered time C(t), both
/// continuous and piecewise (quadratic, linear). Holes have no area.
class Cumulative {
 public:
  explicit Cumulative(const Samples& power, const GapRule& rule = {});
  struct Area {
    double energy_j = 0;
    double covered_s = 0;
  };
  /// Over [from, to] in seconds after the samples' origin; `hint` is moved along for rising calls.
  Area between(double from_s, double to_s, std::size_t& hint) const;

 private:
  Area upto(double t_s, std::size_t& hint) const;
  const Samples& samples_;
  double longest_s_;
  std::vector<Area> area_;
};

}  // namespace flyball::series
