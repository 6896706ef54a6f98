#pragma once
// The period of a training step, from power alone.

#include <string>

#include "base/units.h"
#include "series/samples.h"

namespace flyball::series {

struct StepPeriod {
  bool found = false;
  Seconds period;
  double confidence_fraction = 0;  ///< autocorrelation at the period, noise subtracted
  std::string note;                ///< why not found, or which other periods would look the same through this sampling
};

/// Looks between twice the sampling period and `longest` (and at most a tenth of the recording). The candidate is the
/// shortest lag whose autocorrelation stands out of the noise as a peak and reaches 0.4 of the highest such peak; it is
/// refined over four periods. Shorter periods than two samples fold: they are not found, and
/// a found period is stated together with its aliases.
StepPeriod find_step_period(const Samples& power, Seconds longest = Seconds(300), const GapRule& gap = {});

/// Autocorrelation at lags 0, step, 2 step, … of values on a uniform grid; pairs across holes are not formed.
std::vector<double> autocorrelation(const Samples& samples, Seconds step, std::size_t lags, const GapRule& gap = {});

}  // namespace flyball::series
