#pragma once
// How well a baseline tells what a meter showed. ASHRAE Guideline 14-2014, section 5.3, and annex D for the counting of
// autocorrelation.

#include <cstddef>
#include <span>

#include "base/stats.h"
#include "base/units.h"

namespace flyball::facility {

struct Accuracy {
  std::size_t intervals = 0;
  double mape_fraction = 0;    ///< mean of |predicted − measured| / measured
  double p95_fraction = 0;     ///< 95th percentile of the same
  double nmbe_fraction = 0;    ///< sum of (predicted − measured) / sum of measured
  double cvrmse_fraction = 0;  ///< root of the mean square error / mean of measured
};

/// Of two series of one length. Intervals whose measured value is not positive are left out. NaN where nothing is left.
Accuracy accuracy(std::span<const Watts> measured, std::span<const Watts> predicted);

/// Autocorrelation of the first order, bounded to [0, 0.99]; 0 for fewer than three values.
double lag_one_correlation(std::span<const double> values);
/// n (1 − ρ) / (1 + ρ): how many independent values say as much about a mean (ASHRAE 14, equation D-9).
double effective_count(double count, double lag_one);

}  // namespace flyball::facility
