#pragma once
// How well a fit tells what was not measured: limits ascending, train on the first, third, fifth …, ask for those
// between them.

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "curve/table.h"

namespace flyball::curve {

struct ErrorSummary {
  std::size_t points = 0;
  double median_fraction = 0;
  double p95_fraction = 0;
};

struct HeldOut {
  ErrorSummary time, power;
  /// The same split, interpolated through the training points as they are.
  ErrorSummary reference_time, reference_power;
  std::size_t curves = 0;     ///< that had a limit to hold out
  std::size_t too_short = 0;  ///< fewer than three limits
};

/// Errors are |predicted / measured − 1| at single points, pooled over the curves.
Result<HeldOut> held_out_error(std::span<const MeasuredCurve> curves);

}  // namespace flyball::curve
