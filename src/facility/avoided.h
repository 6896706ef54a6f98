#pragma once
// Energy that was not used: what a baseline of the time before a change says the time after it would have used, less
// what was measured (IPMVP option C), with its interval and the reasons for which it must not be claimed.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/stats.h"
#include "base/units.h"

namespace flyball::facility {

/// One day of a meter, with the outdoor air of each of its hours.
struct MeterDay {
  WallTime start;
  Joules energy;
  std::vector<Celsius> air;  ///< one an hour, 23 to 25
};

/// Base use, heating below one balance point and cooling above another, each by the hours' degrees: ASHRAE Guideline
/// 14-2014, five-parameter change-point model, on hourly instead of daily air.
struct DegreeModel {
  Joules base;              ///< a day
  Joules heating, cooling;  ///< a day, for each kelvin that its air was below or above on average
  Celsius heating_balance, cooling_balance;
  bool heats = true, cools = true;  ///< a slope that would be negative is left out

  Joules day(const MeterDay& day) const;
};

struct Disqualification {
  std::string code;  ///< stable: "too_few_days", "poor_fit", "meter_reads_zero", …
  std::string what;
};

struct AvoidedEnergy {
  DegreeModel model;
  std::size_t baseline_days = 0, reporting_days = 0;
  double cvrmse_fraction = 0, nmbe_fraction = 0;  ///< of the baseline, with its degrees of freedom
  double r_squared = 0;
  double lag_one = 0;          ///< autocorrelation of the baseline's errors
  double effective_days = 0;   ///< of the baseline, as independent ones
  Joules predicted, measured;  ///< of the reporting days
  Estimate avoided_j;
  Estimate saved_fraction;                     ///< of what was predicted
  std::vector<Disqualification> disqualified;  ///< empty: it may be claimed
};

struct AvoidedOptions {
  double level = 0.9;  ///< IPMVP's usual confidence
};

/// Days in order of time. An error where no model can be made at all: fewer than 30 days, or air that does not vary.
/// The interval counts doubt of all coefficients and balance points, and the days' own scatter, each widened by the
/// autocorrelation of the errors (ASHRAE 14, annex B).
Result<AvoidedEnergy> avoided_energy(std::span<const MeterDay> baseline, std::span<const MeterDay> reporting,
                                     const AvoidedOptions& options = {});

}  // namespace flyball::facility
