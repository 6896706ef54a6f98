#pragma once
// How long a facility takes to answer its load: a dead time and up to two first-order lags, found in the data, or the
// reason why the data cannot tell.

#include <span>
#include <string>
#include <vector>

#include "base/stats.h"
#include "base/units.h"

namespace flyball::facility {

struct LagOptions {
  Seconds longest = Seconds(3600);  ///< dead time and lags together
  double level = 0.95;
  /// Wider than so much of the time itself, half an interval is no knowledge.
  double widest_fraction = 0.25;
  /// The same for the interval that holds what parts of the data differ by.
  double widest_apart_fraction = 0.5;
  /// A part of the output follows the input at once (losses, say, beside cooling): its gain is fitted too.
  bool at_once = false;
  /// Samples are means since the one before, as meters give them, and not the state at their stamp.
  bool means = false;
};

struct Lags {
  bool identifiable = false;
  std::string note;  ///< why not; or that only the total is sure
  Estimate dead_time_s;
  Estimate first_lag_s;           ///< the longer one; 0: none
  Estimate second_lag_s;          ///< 0: one lag explains as much
  Estimate total_s;               ///< mean time until the answer: the three together
  double gain = 0;                ///< change of the output for a lasting change of 1 in the input, through the lags
  double gain_at_once = 0;        ///< beside it (`LagOptions::at_once`)
  double explained_fraction = 0;  ///< of the output's variance
};

/// Both sampled at the same times, `step` apart; an input holds until the next sample; NaN in the output is left out,
/// in the input refused. At most 100,000 samples are looked at.
///
/// Output = offset + gain × input passed through exp(−s·dead) / ((1 + s·first)(1 + s·second)), plus errors that may
/// each be like the last (whitened by their first autocorrelation; Cochrane and Orcutt, 1949). Least squares by Nelder
/// and Mead (1965) from several starts; as many lags as Schwarz's criterion asks for. Intervals from the curvature at
/// the optimum, widened by those of another number of lags that does nearly as well, and by as much as quarters of the
/// data differ more than their own intervals allow.
Lags find_lags(std::span<const double> input, std::span<const double> output, Seconds step,
               const LagOptions& options = {});

/// What a plant with these times makes of an input: for simulations and forecasts. Starts in rest at the first value.
std::vector<double> respond(std::span<const double> input, Seconds step, Seconds dead_time, Seconds first_lag,
                            Seconds second_lag);

}  // namespace flyball::facility
