#pragma once
// What a board does under a power limit: the clock it settles at and the power it then draws. One table serves the
// parametric model and measured curves.

#include <array>
#include <cstddef>

#include "base/units.h"
#include "curve/curve.h"
#include "twin/parameters.h"

namespace flyball::twin {

/// At activity 1 and reference temperature.
struct OperatingPoint {
  double clock_fraction = 1;  ///< of the highest clock
  Watts power;
  bool limited = false;  ///< the limit, not the ceiling of the clock, decides
};

/// Speed at a clock, relative to the highest: 1 / ((1 − c) + c / x), c = share of time that follows the clock.
inline double rate_at(double clock_fraction, double compute_share) {
  return clock_fraction / ((1 - compute_share) * clock_fraction + compute_share);
}

class PowerCurve {
 public:
  /// From the formula at GpuParameters.
  static PowerCurve parametric(const GpuParameters& parameters);
  /// From a measured curve. `compute_share` turns its speeds into clocks, so that a job with that share and activity 1
  /// runs at the curve's speed and power. Locked clocks follow the same points.
  static PowerCurve measured(const curve::Curve& curve, double compute_share, const GpuParameters& parameters);

  /// Below the lowest clock the limit is not reached: power > limit.
  OperatingPoint at_limit(Watts limit) const;
  OperatingPoint at_clock(double clock_fraction) const;

 private:
  static constexpr std::size_t kCells = 512;
  struct Row {
    double clock = 0;
    double power = 0;
  };
  void fill_by_clock(const GpuParameters& parameters);

  double lowest_ = 0;  // W, limit of the first row
  double rows_per_watt_ = 0;
  double lowest_clock_ = 0;
  double rows_per_clock_ = 0;
  double unlimited_ = 0;  // W, from this limit on it does not bind
  std::array<Row, kCells + 1> by_limit_{};
  std::array<double, kCells + 1> power_by_clock_{};
};

}  // namespace flyball::twin
