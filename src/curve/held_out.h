#pragma once
// How well a fit tells what was not measured: limits ascending, train on the first, third, fifth …, ask for those
// between them.

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stats.h"
#include "curve/table.h"

namespace flyball::curve {

struct ErrorSummary {
  std::size_t points = 0;
  double median_fraction = 0;
  double p95_fraction = 0;
};

struct HeldOut {
  ErrorSummary time, power;
  double time_coverage_fraction = 0;  ///< of the held-out times, inside their 90 % interval
  /// Median error of time against that of the reference; the interval by bootstrap over networks.
  Estimate time_ratio;
  /// The same split, interpolated through the training points as they are.
  ErrorSummary reference_time, reference_power;
  std::size_t curves = 0;     ///< that had a limit to hold out
  std::size_t too_short = 0;  ///< fewer than three limits
};

/// Time by TimePosterior, power by monotone cubic in log power. The priors were fitted to other boards (family.cc), and
/// nothing at the limits left out is used. Errors are |predicted / measured − 1| at single points, pooled over the
/// curves.
Result<HeldOut> held_out_error(std::span<const MeasuredCurve> curves);

}  // namespace flyball::curve
