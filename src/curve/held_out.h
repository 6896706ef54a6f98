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

/// What the curves of one board say together of how they bend beside the shape of all boards: posterior means.
struct BoardFit {
  std::string gpu;
  double bump_fraction = 0;  ///< sd of such bumps in time
  double bump_length = 0;    ///< their extent in ln(limit)
};

struct HeldOut {
  ErrorSummary time, power;
  double time_coverage_fraction = 0;  ///< of the held-out times, inside their 90 % interval
  /// Median error of time against that of the reference; the interval by bootstrap over networks.
  Estimate time_ratio;
  /// The same split, interpolated through the training points as they are.
  ErrorSummary reference_time, reference_power;
  std::vector<BoardFit> boards;
  std::size_t curves = 0;     ///< that had a limit to hold out
  std::size_t too_short = 0;  ///< fewer than three limits
};

/// Time by TimePosterior, power by monotone cubic in log power. The priors were fitted to other boards (family.cc);
/// what is common to a board is learnt from the training limits of all its curves, and from `more`, curves of the same
/// board measured elsewhere. Nothing at the limits left out is used. Errors are |predicted / measured − 1| at single
/// points, pooled over the curves.
Result<HeldOut> held_out_error(std::span<const MeasuredCurve> curves, std::span<const MeasuredCurve> more = {});

}  // namespace flyball::curve
