#pragma once
// What a board does under a power limit: the clock it settles at and the power it then draws. One table serves the
// parametric model and measured curves.

#include <array>
#include <cstddef>
#include <span>

#include "base/units.h"
#include "curve/curve.h"
#include "twin/clock_preset.h"
#include "twin/parameters.h"

namespace flyball::twin {

/// At activity 1 and reference temperature.
struct OperatingPoint {
  double clock_fraction = 1;  ///< of the highest clock
  Watts power;
  bool limited = false;  ///< the limit, not the ceiling of the clock, decides
  /// What `rate_at` takes: the clock itself, unless a measured curve says that time does not go with it so.
  double pace_fraction = 1;
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
  /// From measured clocks: under a locked clock a job with that share and activity 1 takes the measured time and draws
  /// the measured power; under a limit the board runs at the highest clock that stays below it. Below the lowest
  /// measured clock nothing is known: speed goes with the clock and power on a line to idle.
  static PowerCurve clocked(std::span<const ClockPoint> points, double compute_share, const GpuParameters& parameters);

  /// Below the lowest clock the limit is not reached: power > limit.
  OperatingPoint at_limit(Watts limit) const;
  OperatingPoint at_clock(double clock_fraction) const;

 private:
  static constexpr std::size_t kCells = 512;
  struct Row {
    double clock = 0;
    double power = 0;
    double pace = 0;
  };
  using Table = std::array<Row, kCells + 1>;
  static OperatingPoint between(const Table& table, double position);
  void fill_by_clock(const GpuParameters& parameters);
  /// From the table by clock that by limit, for power that rises with the clock.
  void invert();

  double lowest_ = 0;  // W, limit of the first row
  double rows_per_watt_ = 0;
  double lowest_clock_ = 0;
  double rows_per_clock_ = 0;
  double unlimited_ = 0;  // W, from this limit on it does not bind
  Table by_limit_{};
  Table by_clock_{};
};

}  // namespace flyball::twin
