#pragma once
// What a board does under a power limit: the clock it settles at and the power it then draws. One table serves the
// parametric model and measured curves.

#include <array>
#include <span>

#include "base/result.h"
#include "base/units.h"
#include "twin/parameters.h"

namespace flyball::twin {

/// At activity 1 and reference temperature.
struct OperatingPoint {
  double clock_fraction = 1;  ///< of the highest clock
  Watts power;
  bool limited = false;  ///< the limit, not the ceiling of the clock, decides
};

/// A measured point of a curve: what was set, what was drawn, and how fast work went (1 = fastest).
struct CurvePoint {
  Watts limit;
  Watts power;
  double relative_rate = 1;
};

/// Speed at a clock, relative to the highest: 1 / ((1 − c) + c / x), c = share of time that follows the clock.
inline double rate_at(double clock_fraction, double compute_share) {
  return clock_fraction / ((1 - compute_share) * clock_fraction + compute_share);
}

class PowerCurve {
 public:
  /// From the formula at GpuParameters.
  static PowerCurve parametric(const GpuParameters& parameters);
  /// From measured points (at least two, any order; made monotone). `compute_share` turns rates into clocks, so that a
  /// job with that share runs at exactly the measured rates.
  static Result<PowerCurve> measured(std::span<const CurvePoint> points, double compute_share,
                                     const GpuParameters& parameters);

  /// Below the lowest clock the limit is not reached: power > limit.
  OperatingPoint at_limit(Watts limit) const;
  OperatingPoint at_clock(double clock_fraction) const;

 private:
  static constexpr std::size_t kCells = 512;
  struct Row {
    double clock = 0;
    double power = 0;
  };
  void fill_by_clock();

  double lowest_ = 0;  // W, limit of the first row
  double rows_per_watt_ = 0;
  double lowest_clock_ = 0;
  double rows_per_clock_ = 0;
  double unlimited_ = 0;  // W, from this limit on it does not bind
  std::array<Row, kCells + 1> by_limit_{};
  std::array<double, kCells + 1> power_by_clock_{};
};

}  // namespace flyball::twin
