#include "policy/ranks.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace flyball::policy {
namespace {

/// Of the lead, at each interval: limits and clocks change time by their own logarithm at most.
constexpr double kGain = 0.3;
/// Kernels and hosts vary by some tenths of a per cent from step to step; so much lead is left to each rank.
constexpr double kLeft = 0.004;
/// Weight of the newest interval in the lead.
constexpr double kNew = 0.3;
/// A board that much below the others is broken rather than early.
constexpr double kMost = 0.4;
constexpr int kFirst = 3;

}  // namespace

void Ranks::learn(const Observation& observation) {
  const std::size_t n = observation.gpus.size();
  if (n < 2) return;
  std::vector<double> busy(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto& wait = observation.gpus[i].wait_fraction;
    if (!wait || *wait >= 1) return;
    busy[i] = std::log(1 - *wait);
  }
  const double most = *std::max_element(busy.begin(), busy.end());
  lead_.resize(n);
  below_.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double lead = most - busy[i];
    lead_[i] = seen_ == 0 ? lead : lead_[i] + kNew * (lead - lead_[i]);
  }
  if (++seen_ < kFirst) return;
  for (std::size_t i = 0; i < n; ++i) {
    const double before = std::exchange(below_[i], std::clamp(below_[i] + kGain * (lead_[i] - kLeft), 0.0, kMost));
    lead_[i] -= below_[i] - before;  // what is done about it need not be seen first
  }
  const double least = *std::min_element(below_.begin(), below_.end());
  for (double& b : below_) b -= least;
}

}  // namespace flyball::policy
