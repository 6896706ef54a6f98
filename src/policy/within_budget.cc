#include "policy/within_budget.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "policy/job.h"

namespace flyball::policy {
namespace {

/// A board that draws less than this share of its limit is not held by it.
constexpr double kHeld = 0.95;
/// What it gets beyond its draw then: draws vary from step to step.
constexpr double kRoom = 1.1;
/// Boards round limits to a watt, and the guard takes limits within one for the same: so much of each stays free.
constexpr double kRounding = 1;
/// Decisions between two divisions.
constexpr int kDivide = 6;

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

}  // namespace

std::vector<double> divide_by_weight(double total, const std::vector<double>& weights, const std::vector<double>& low,
                                     const std::vector<double>& high) {
  const auto at = [&](double level) {
    std::vector<double> parts(weights.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i] = std::max(low[i], std::min(level * weights[i], high[i]));
    }
    return parts;
  };
  double below = 0, above = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) above = std::max(above, high[i] / weights[i]);
  if (sum_of(at(above)) <= total) return at(above);
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (below + above) / 2;
    (sum_of(at(middle)) <= total ? below : above) = middle;
  }
  return at(below);
}

void WithinBudget::reset(std::uint64_t seed) {
  inner_->reset(seed);
  boards_.clear();
  ranks_.reset();
  until_divided_ = kDivide;
}

Watts WithinBudget::usable() const { return budget_ - Watts(kRounding * static_cast<double>(boards_.size())); }

Result<Proposal> WithinBudget::at_start(const std::vector<GpuObservation>& gpus) {
  boards_.clear();
  Watts lowest;
  for (const GpuObservation& gpu : gpus) {
    if (!gpu.limit_enforced || !gpu.minimum) {
      return fail(ErrorCode::unsupported, "its limit or its lowest limit is not known, so no budget can be held",
                  gpu.device.text(), "`flyball doctor` tells why");
    }
    const double found = (*gpu.limit_enforced).watts().value();
    const double least = std::min((*gpu.minimum).watts().value(), found);
    boards_.push_back({gpu.device, found, least, 0, 0, found});
    lowest += Watts(least);
  }
  if (lowest > usable()) {
    return fail(ErrorCode::refused,
                "infeasible: the lowest limits of all " + std::to_string(boards_.size()) + " GPUs are " +
                    format(lowest) + " together, above " + format(budget_),
                "--budget", "take GPUs out of the run, or give more");
  }
  divide();
  Proposal proposal{{}, "the budget's even shares"};
  for (Board& board : boards_) {
    board.even = board.share;
    proposal.gpus.push_back({board.device, Milliwatts::from(Watts(board.share))});
  }
  return proposal;
}

void WithinBudget::learn(const Observation& observation) {
  if (!is_training(observation.phase)) return;
  ranks_.learn(observation);
  for (std::size_t i = 0; i < boards_.size() && i < observation.gpus.size(); ++i) {
    const GpuObservation& gpu = observation.gpus[i];
    if (!gpu.power || !gpu.limit_enforced || gpu.external_limiter) continue;
    const double draw = (*gpu.power).value();
    const bool held = draw >= kHeld * (*gpu.limit_enforced).watts().value() || gpu.throttle.software_power_cap();
    boards_[i].need = held ? boards_[i].found : std::clamp(draw * kRoom, boards_[i].lowest, boards_[i].found);
  }
}

void WithinBudget::divide() {
  const std::size_t n = boards_.size();
  std::vector<double> weights(n, 1), low(n), need(n), found(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (i < ranks_.below().size()) weights[i] = std::exp(-ranks_.below()[i]);
    low[i] = boards_[i].lowest;
    need[i] = boards_[i].need;
    found[i] = boards_[i].found;
  }
  const double total = usable().value();
  std::vector<double> shares = divide_by_weight(total, weights, low, need);
  // What nobody needs is room for whoever needs it next.
  shares = divide_by_weight(total, weights, shares, found);
  // Down to whole watts, as boards take them.
  for (std::size_t i = 0; i < n; ++i) boards_[i].share = std::max(std::floor(shares[i] + 1e-6), low[i]);
}

/// As if every board's limit were its part of an even share: then the policy's own curve is of the budget it has.
Observation WithinBudget::as_shares(const Observation& observation) const {
  Observation seen = observation;
  for (std::size_t i = 0; i < boards_.size() && i < seen.gpus.size(); ++i) {
    const double scale = boards_[i].even / boards_[i].share;
    const auto rescale = [&](Sample<Milliwatts>& limit) {
      if (limit) limit = Milliwatts::from((*limit).watts() * scale);
    };
    rescale(seen.gpus[i].limit_enforced);
    rescale(seen.gpus[i].minimum);
  }
  return seen;
}

Proposal WithinBudget::decide(const Observation& observation) {
  learn(observation);
  Proposal proposal = inner_->decide(as_shares(observation));
  if (--until_divided_ <= 0) {
    divide();
    until_divided_ = kDivide;
  }
  for (const Board& board : boards_) {
    auto wish = std::find_if(proposal.gpus.begin(), proposal.gpus.end(),
                             [&](const GpuProposal& gpu) { return gpu.device == board.device; });
    if (wish == proposal.gpus.end()) wish = proposal.gpus.insert(wish, GpuProposal{board.device, {}});
    const double part = wish->power_limit ? wish->power_limit->watts().value() / board.even : 1;
    const double limit = std::clamp(std::floor(board.share * part + 1e-6), board.lowest, board.share);
    wish->power_limit = Milliwatts::from(Watts(limit));
  }
  return proposal;
}

}  // namespace flyball::policy
