#include "policy/bandit.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace flyball::policy {
namespace {

/// Measurements: of the limit found before anything else is tried, and of an arm before the next choice.
constexpr int kFirst = 12;
constexpr int kHold = 3;
/// The step in hand straddles a change of limits.
constexpr int kSettle = 1;
/// Of a value's weight, per measurement: half is gone after 23 minutes, while drift has a time of about an hour.
constexpr double kForget = 0.995;
/// Noise before any was seen: 1 % in 10 s, worth five measurements.
constexpr double kPriorNoise = 0.01;
constexpr double kPriorWeight = 5;
/// The arm below a good one is tried if the good one's loss less so many standard errors is allowed.
constexpr double kProofErrors = 1;

}  // namespace

Result<std::unique_ptr<Policy>> Bandit::make(const Objective& objective) {
  FLYBALL_TRY(check_objective(objective, "bandit"));
  return std::unique_ptr<Policy>(new Bandit(objective));
}

void Bandit::Mean::forget() { weight *= kForget; }

void Bandit::Mean::add(double x) {
  weight += 1;
  mean += (x - mean) / weight;
}

Result<> Bandit::set_objective(const Objective& objective) {
  FLYBALL_TRY(check_objective(objective, "bandit"));
  objective_ = objective;
  return {};
}

void Bandit::reset(std::uint64_t seed) {
  *this = Bandit(objective_);
  random_ = Random(seed);
}

bool Bandit::plan(const Observation& observation) {
  found_ = FoundLimits::of(observation);
  if (!found_) return false;
  for (const Milliwatts limit : found_->grid()) arms_.push_back({limit, {}, {}});
  hold_ = kFirst;
  return true;
}

/// False if the interval was no measurement.
bool Bandit::measure(Arm& arm, const Observation& observation) {
  const auto power = total_power(observation);
  const Sample<double>& tokens = observation.tokens_per_second;
  if (!is_training(observation.phase) || !power || !tokens || *tokens <= 0) return false;
  for (Arm& any : arms_) any.rate.forget(), any.power.forget();
  const double rate = *tokens;
  if (arm.rate.weight >= 1) {
    // The mean that it is compared with has its own error.
    const double residual = rate / arm.rate.mean - 1;
    residual_squares_ += residual * residual / (1 + 1 / arm.rate.weight);
    residuals_ += 1;
  }
  arm.rate.add(rate);
  arm.power.add(power->value());
  return true;
}

double Bandit::relative_noise() const {
  return std::sqrt((kPriorWeight * kPriorNoise * kPriorNoise + residual_squares_) / (kPriorWeight + residuals_));
}

std::size_t Bandit::choose() {
  const double noise = relative_noise();
  const auto draw = [&](const Mean& m) { return m.mean * (1 + noise / std::sqrt(m.weight) * random_.normal()); };
  const Arm& base = arms_.front();
  const double base_rate = draw(base.rate);
  std::size_t best = 0;
  double best_score = 0;
  for (std::size_t i = 1; i < arms_.size(); ++i) {
    const Arm& arm = arms_[i];
    if (!arm.tried()) {
      if (i == 1) return 1;
      const Arm& above = arms_[i - 1];
      const double error = kProofErrors * noise * std::sqrt(1 / above.rate.weight + 1 / base.rate.weight);
      const double loss = 1 - above.rate.mean / base.rate.mean;
      const double saved = 1 - above.power.mean / base.power.mean / (1 - loss);
      const bool good = objective_.alpha ? saved - *objective_.alpha * std::max(0.0, loss) + error > best_score
                                         : loss - error <= *objective_.max_loss_fraction;
      if (good) return i;
      break;
    }
    const double ratio = draw(arm.rate) / base_rate;
    if (ratio <= 0) continue;  // hardly anything is known of the one or the other
    const double loss = std::max(0.0, 1 - ratio);
    const double saved = 1 - arm.power.mean / base.power.mean / ratio;
    if (objective_.max_loss_fraction && loss > *objective_.max_loss_fraction) continue;
    const double score = objective_.alpha ? saved - *objective_.alpha * loss : saved;
    if (score > best_score) {
      best_score = score;
      best = i;
    }
  }
  return best;
}

void Bandit::observe_baseline(const Observation& observation) {
  if (arms_.empty() && !plan(observation)) return;
  (void)measure(arms_.front(), observation);
}

Proposal Bandit::decide(const Observation& observation) {
  if (arms_.empty() && !plan(observation)) return {{}, "the boards' limits are not known yet"};
  if (settle_ > 0) {
    if (observation.tokens_per_second) --settle_;
  } else if (measure(arms_[current_], observation)) {
    --hold_;
  }
  if (hold_ <= 0) {
    const std::size_t next = choose();
    settle_ = next == current_ ? 0 : kSettle;
    current_ = next;
    hold_ = kHold;
  }
  return found_->propose(arms_[current_].limit, "arm " + format(arms_[current_].limit));
}

}  // namespace flyball::policy
