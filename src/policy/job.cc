#include "policy/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace flyball::policy {

bool is_training(Phase phase) { return phase == Phase::training || phase == Phase::unknown; }

std::optional<Watts> total_power(const Observation& observation) {
  Watts total;
  for (const GpuObservation& gpu : observation.gpus) {
    if (gpu.energy && observation.interval > Seconds(0)) {
      total += *gpu.energy / observation.interval;
    } else if (gpu.power) {
      total += *gpu.power;
    } else {
      return std::nullopt;
    }
  }
  return total;
}

std::optional<FoundLimits> FoundLimits::of(const Observation& observation) {
  FoundLimits limits;
  for (const GpuObservation& gpu : observation.gpus) {
    if (!gpu.limit_enforced || !gpu.minimum) return std::nullopt;
    limits.highest_ = std::max(limits.highest_, *gpu.limit_enforced);
    limits.lowest_ = std::max(limits.lowest_, *gpu.minimum);
    limits.boards_.push_back({gpu.device, *gpu.limit_enforced, *gpu.minimum});
  }
  if (limits.boards_.empty()) return std::nullopt;
  return limits;
}

std::vector<Milliwatts> FoundLimits::grid() const {
  std::vector<Milliwatts> limits = {highest_};
  const std::int64_t step = kGridStep.value();
  for (std::int64_t limit = (highest_.value() - 1) / step * step; limit > lowest_.value(); limit -= step) {
    limits.push_back(Milliwatts(limit));
  }
  if (lowest_ < highest_) limits.push_back(lowest_);
  return limits;
}

Proposal FoundLimits::propose(Milliwatts limit, std::string reason) const {
  Proposal proposal{{}, std::move(reason)};
  for (const Board& board : boards_) proposal.gpus.push_back({board.device, std::min(board.found, limit), {}});
  return proposal;
}

Result<> check_objective(const Objective& objective, const std::string& policy) {
  if (objective.alpha.has_value() == objective.max_loss_fraction.has_value()) {
    return fail(ErrorCode::input, "the policy " + policy + " needs one objective", "--policy " + policy,
                "give either --max-loss 0.012 or --alpha 2");
  }
  const double bound = objective.alpha ? *objective.alpha : *objective.max_loss_fraction;
  if (!std::isfinite(bound) || bound < 0 || (objective.max_loss_fraction && bound >= 1)) {
    return fail(ErrorCode::input, fmt::format("{} is outside its range", bound),
                objective.alpha ? "--alpha" : "--max-loss",
                objective.alpha ? "alpha is 0 or more" : "a loss is a fraction from 0 to below 1");
  }
  return {};
}

}  // namespace flyball::policy
