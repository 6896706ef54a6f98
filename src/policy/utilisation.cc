#include "policy/utilisation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/stats.h"

namespace flyball::policy {
namespace {

/// Intervals to a verdict: two minutes at 10 s, longer than a checkpoint, and long enough that a verdict sees nothing
/// of the limit before it but for one interval in twelve.
constexpr std::size_t kWindow = 12;
/// Below that the field calls a GPU under-used (cluster reports list jobs under 80 %).
constexpr double kThreshold = 0.8;
constexpr double kHysteresisLow = 0.7;
constexpr double kHysteresisHigh = 0.9;
/// A GPU that is busy nine and a half seconds of ten is busy.
constexpr double kBusy = 0.95;

}  // namespace

void UtilisationRule::reset(std::uint64_t) { boards_.clear(); }

Proposal UtilisationRule::decide(const Observation& observation) {
  if (boards_.empty()) {
    const auto found = FoundLimits::of(observation);
    if (!found) return {{}, "the boards' limits are not known yet"};
    for (const FoundLimits::Board& board : found->boards()) boards_.push_back({board, board.found, {}});
  }
  Proposal proposal{{}, name() + " rule"};
  for (Board& board : boards_) {
    const auto gpu = std::find_if(observation.gpus.begin(), observation.gpus.end(),
                                  [&](const GpuObservation& g) { return g.device == board.is.device; });
    if (gpu == observation.gpus.end()) continue;
    if (is_training(observation.phase) && gpu->utilisation_fraction) {
      board.utilisation.push_back(*gpu->utilisation_fraction);
    }
    if (board.utilisation.size() >= kWindow) {
      const Milliwatts wish = next(board, median(std::exchange(board.utilisation, {})));
      board.limit = std::max(std::min(wish, board.is.found), std::min(board.is.minimum, board.is.found));
    }
    proposal.gpus.push_back({board.is.device, board.limit, {}});
  }
  return proposal;
}

UtilisationSteps::Rule UtilisationSteps::threshold() { return {"threshold", kThreshold, kThreshold, true}; }
UtilisationSteps::Rule UtilisationSteps::hysteresis() { return {"hysteresis", kHysteresisLow, kHysteresisHigh, false}; }

Milliwatts UtilisationSteps::next(const Board& board, double utilisation) const {
  if (utilisation < rule_.low) return board.limit - kGridStep;
  if (utilisation < rule_.high) return board.limit;
  return rule_.restores_at_once ? board.is.found : board.limit + kGridStep;
}

Milliwatts UtilisationProportional::next(const Board& board, double utilisation) const {
  const double share = std::clamp(utilisation / kBusy, 0.0, 1.0);
  return Milliwatts::from(board.is.found.watts() * share);
}

}  // namespace flyball::policy
