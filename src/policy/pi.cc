#include "policy/pi.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace flyball::policy {
namespace {

/// Baseline windows, in intervals: the first, the later ones, how often, and how many intervals are remembered. Drift
/// of 0.5 % with a time of 1 h moves by as much in half an hour as twelve intervals with 1 % noise are uncertain.
constexpr int kFirstWindow = 12;
constexpr int kWindow = 6;
constexpr int kBaselineEvery = 180;
constexpr std::size_t kRemember = 12;
/// The step in hand straddles a change of limits.
constexpr int kSettle = 1;
/// Gains, in share of the limit found per fraction of loss. Where a limit binds, throughput falls by 0.2 to 1 % for
/// each 1 % of the limit (measured V100, P100 and A100 curves), so that the loop closes in 3 to 12 intervals and 1 %
/// noise moves the limit by about 1 %.
constexpr double kIntegral = 0.4;
constexpr double kProportional = 0.2;
/// One bad interval moves the limit by no more than a good one can.
constexpr double kMostError = 0.03;

}  // namespace

Result<std::unique_ptr<Policy>> Pi::make(const Objective& objective) {
  std::unique_ptr<Policy> made(new Pi(0));
  FLYBALL_TRY(made->set_objective(objective));
  return made;
}

void Pi::reset(std::uint64_t) { *this = Pi(max_loss_); }

Result<> Pi::set_objective(const Objective& objective) {
  FLYBALL_TRY(check_objective(objective, "pi"));
  if (!objective.max_loss_fraction) {
    return fail(ErrorCode::input, "the policy pi steers a loss and takes no alpha", "--policy pi",
                "give --max-loss 0.012");
  }
  max_loss_ = *objective.max_loss_fraction;
  return {};
}

void Pi::begin_baseline(int intervals) {
  window_left_ = intervals;
  settle_ = share_ ? kSettle : 0;
}

void Pi::add_baseline(const Observation& observation) {
  if (base_.size() == kRemember) base_.pop_front();
  base_.push_back(*observation.tokens_per_second);
  since_base_ = 0;
  Watts most;
  for (const GpuObservation& gpu : observation.gpus) {
    if (gpu.power) most = std::max(most, *gpu.power);
  }
  if (most > Watts(0)) draw_.add(most.value());
}

void Pi::end_baseline() {
  settle_ = kSettle;
  last_error_ = 0;
  if (share_) return;
  share_ = draw_.count() > 0 ? std::min(1.0, draw_.mean() / found_->highest().watts().value()) : 1.0;
}

void Pi::observe_baseline(const Observation& observation) {
  if (!is_training(observation.phase) || !observation.tokens_per_second) return;
  if (!found_) found_ = FoundLimits::of(observation);
  if (!found_) return;
  if (base_.empty()) begin_baseline(kFirstWindow);
  add_baseline(observation);
  if (window_left_ > 0 && --window_left_ == 0) end_baseline();
}

void Pi::control(double rate) {
  RunningStats base;
  for (const double r : base_) base.add(r);
  const double uncertain = base.sd() / base.mean() / std::sqrt(static_cast<double>(base.count()));
  const double target = std::max(0.0, max_loss_ - uncertain);
  const double error = std::clamp(target - (1 - rate / base.mean()), -kMostError, kMostError);
  const double change = kIntegral * error + kProportional * (error - last_error_);
  last_error_ = error;
  share_ = std::clamp(*share_ - change, std::min(1.0, found_->lowest().watts() / found_->highest().watts()), 1.0);
}

Proposal Pi::decide(const Observation& observation) {
  if (!found_) {
    found_ = FoundLimits::of(observation);
    if (!found_) return {{}, "the boards' limits are not known yet"};
    begin_baseline(kFirstWindow);
  }
  ++since_base_;
  if (is_training(observation.phase) && observation.tokens_per_second && *observation.tokens_per_second > 0) {
    if (settle_ > 0) {
      --settle_;
    } else if (window_left_ > 0) {
      add_baseline(observation);
      if (--window_left_ == 0) end_baseline();
    } else {
      control(*observation.tokens_per_second);
    }
  }
  if (window_left_ == 0 && since_base_ >= kBaselineEvery) begin_baseline(kWindow);
  if (window_left_ > 0 || !share_) return found_->propose(found_->highest(), "measures the speed at the limits found");
  const Milliwatts limit = std::max(found_->lowest(), Milliwatts::from(found_->highest().watts() * *share_));
  return found_->propose(limit, fmt::format("loss steered to {}", format_percent(max_loss_)));
}

}  // namespace flyball::policy
