#include "policy/sweep.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "policy/plan.h"

namespace flyball::policy {
namespace {

/// Intervals in which a step ended. A limit holds within a second, but the step in hand straddles the change.
constexpr int kSettleIntervals = 1;
/// The first limit is the one that all others are compared with, and measuring it costs nothing.
constexpr int kBaseIntervals = 12;
/// With 1 % noise in 10 s, six intervals give a standard error of 0.4 %. Where that does not tell whether the loss is
/// within its bound, measuring goes on, at most for so long that slow drift would outweigh what is gained.
constexpr int kMeasureIntervals = 6;
constexpr int kMeasureAtMost = 24;
/// Standard errors from the bound that count as clear.
constexpr double kClear = 2;
/// Evaluations and checkpoints last minutes; longer than that and the limit is given up as not measurable.
constexpr int kSkipAtMost = 60;

double relative_error(const RunningStats& stats) {
  if (stats.count() < 2 || stats.mean() <= 0) return 0;
  return stats.sd() / std::sqrt(static_cast<double>(stats.count())) / stats.mean();
}

}  // namespace

Result<std::unique_ptr<Policy>> Sweep::make(const Objective& objective) {
  FLYBALL_TRY(check_objective(objective, "sweep"));
  return std::unique_ptr<Policy>(new Sweep(objective));
}

Result<> Sweep::set_objective(const Objective& objective) {
  FLYBALL_TRY(check_objective(objective, "sweep"));
  objective_ = objective;
  return {};
}

void Sweep::reset(std::uint64_t) {
  steps_.clear();
  found_.reset();
  current_ = 0;
  picked_.reset();
  picked_reason_.clear();
}

bool Sweep::plan(const Observation& observation) {
  found_ = FoundLimits::of(observation);
  if (!found_) return false;
  for (const Milliwatts limit : found_->grid()) {
    Step step;
    step.limit = limit;
    steps_.push_back(step);
  }
  return true;
}

void Sweep::observe_baseline(const Observation& observation) {
  const auto power = total_power(observation);
  if (picked_ || !is_training(observation.phase) || !power) return;
  if (steps_.empty() && !plan(observation)) return;
  steps_.front().power.add(power->value());
  if (observation.tokens_per_second && *observation.tokens_per_second > 0) {
    steps_.front().rate.add(*observation.tokens_per_second);
  }
}

void Sweep::measure(const Observation& observation) {
  Step& step = steps_[current_];
  const auto power = total_power(observation);
  if (!is_training(observation.phase) || !power) {
    ++step.skipped;
    return;
  }
  // A long step ends in few of the intervals that it lasts: its power counts in all of them.
  const bool has_rate = observation.tokens_per_second && *observation.tokens_per_second > 0;
  if (step.settled < kSettleIntervals) {
    if (has_rate) ++step.settled;
    return;
  }
  step.power.add(power->value());
  if (has_rate) step.rate.add(*observation.tokens_per_second);
}

bool Sweep::finished(const Step& step) const {
  if (step.skipped > kSkipAtMost) return true;
  if (&step == &steps_.front()) return step.rate.count() >= kBaseIntervals;
  if (step.rate.count() < kMeasureIntervals) return false;
  if (!objective_.max_loss_fraction || step.rate.count() >= kMeasureAtMost) return true;
  const Outcome o = outcome(step);
  return std::fabs(o.loss - *objective_.max_loss_fraction) > kClear * o.loss_error;
}

Sweep::Outcome Sweep::outcome(const Step& step) const {
  const Step& base = steps_.front();
  const double rate_ratio = step.rate.mean() / base.rate.mean();
  const double energy_ratio = step.power.mean() / base.power.mean() / rate_ratio;
  const double rate_error = std::hypot(relative_error(step.rate), relative_error(base.rate));
  const double power_error = std::hypot(relative_error(step.power), relative_error(base.power));
  return {1 - rate_ratio, rate_ratio * rate_error, 1 - energy_ratio,
          energy_ratio * std::hypot(rate_error, power_error)};
}

Milliwatts Sweep::pick() const {
  const Step* best = &steps_.front();
  double best_score = 0;
  for (std::size_t i = 1; i <= current_ && i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (step.rate.count() < kMeasureIntervals) continue;
    const Outcome o = outcome(step);
    if (o.saved <= kClear * o.saved_error) continue;
    if (objective_.max_loss_fraction && o.loss + o.loss_error > *objective_.max_loss_fraction) continue;
    const double score = objective_.alpha ? o.saved - *objective_.alpha * std::max(0.0, o.loss) : o.saved;
    if (score > best_score) {
      best_score = score;
      best = &step;
    }
  }
  return best->limit;
}

void Sweep::advance() {
  const Step& step = steps_[current_];
  const bool no_base = steps_.front().rate.count() < kBaseIntervals;
  bool over = no_base || current_ + 1 == steps_.size();
  if (!over && objective_.max_loss_fraction && step.rate.count() >= kMeasureIntervals) {
    const Outcome o = outcome(step);
    over = o.loss - kClear * o.loss_error > *objective_.max_loss_fraction;
  }
  if (!over) {
    ++current_;
    return;
  }
  picked_ = no_base ? steps_.front().limit : pick();
  picked_reason_ = no_base ? "no progress could be measured at the limit found: it stays"
                           : "kept after " + std::to_string(current_ + 1) + " limits were tried";
}

Proposal Sweep::decide(const Observation& observation) {
  if (steps_.empty() && !plan(observation)) return {{}, "the boards' limits are not known yet"};
  if (!picked_) {
    measure(observation);
    if (finished(steps_[current_])) advance();
  }
  if (picked_) return found_->propose(*picked_, picked_reason_);
  return found_->propose(steps_[current_].limit, "trying " + format(steps_[current_].limit));
}

}  // namespace flyball::policy
