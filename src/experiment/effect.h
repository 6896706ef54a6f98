#pragma once
// The estimator: generalised least squares under a random walk, with an interval by inverting a randomisation test.

#include <cstdint>
#include <optional>
#include <vector>

#include "experiment/analysis.h"

namespace flyball::experiment {

/// One value a block, in order, equally spaced in time.
struct Values {
  std::vector<double> x;       ///< log of the quantity; anything where the weight is 0
  std::vector<double> weight;  ///< measured time, 0 = no measurement
  std::vector<bool> rare;
  std::uint64_t group = 2;        ///< blocks of a group
  std::uint64_t first_index = 0;  ///< of the first block: says where groups begin
};

/// The effect of the rare arm on x, additive in the log. Nothing where an arm has no measurement.
struct LogEffect {
  double value = 0, low = 0, high = 0;
  double p_value = 1;
};
std::optional<LogEffect> log_effect(const Values& values, double level, int permutations, std::uint64_t seed);

}  // namespace flyball::experiment
