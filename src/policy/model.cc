#include "policy/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/stats.h"
#include "base/text.h"
#include "curve/family.h"
#include "policy/job.h"

namespace flyball::policy {
namespace {

/// What the run begins with at the limits as found; after that a look is bought one interval at a time.
constexpr int kFirstIntervals = 6;
/// Of a run, at most, for looks: measures.md asks for 5 %.
constexpr double kMostLooks = 0.045;
/// Without a bound on loss there is no margin to tell when a look pays; so many intervals keep up with drift.
constexpr double kWeightedLooks = 0.02;
/// Between two looks, at least, and a random part, so that looks never keep step with anything periodic.
constexpr int kLookPause = 1, kLookJitter = 3;
// The following were chosen on P100 curves and hold unchanged on V100 and A100 ones (doc/benchmarks.md).
/// Standard deviations by which the bound on loss is kept, at the end of the run and at its beginning, where an error
/// can still be made up for.
constexpr double kMargin = 2.0, kFirstMargin = 1.2;
/// A plan never ends sooner than after this share of the run: with little time left it would leap between extremes.
constexpr double kShortestPlan = 0.05;
/// In the last share of the run nothing is tried any more: what it costs could not be made up for.
constexpr double kNoTrials = 0.2;
/// Of the chance that a limit is better than believed: neighbours on the grid share it, and each would count it whole.
constexpr double kChanceShare = 0.3;
/// How far off (sd, in logs) a limit is thought to be that was never tried: where waits hide slower work a curve has a
/// kink, and no smooth prior foresees it.
constexpr double kUnseen = 0.015;
/// A limit at which the job may, by so many standard deviations, be slower than this share of its pace is not tried:
/// the limits above it tell first. Of a job with a steep curve a deep trial would treble the time of a step.
constexpr double kSlowestTrial = 0.7, kSlowestMargin = 2;
/// Of what may be lost, at most, by trials: a steep curve has nothing to save, and every trial costs.
constexpr double kTrialShare = 0.25;
/// What a curve may do beside its family: bumps of this size (sd, in logs) and this extent in ln(limit).
constexpr double kBump = 0.02, kBumpLength = 0.12;
/// Slow drift of throughput: measures.md, from long runs.
constexpr Belief::Drift kRateDrift{0.005, Seconds(3600)};
constexpr Belief::Drift kPowerDrift{0.003, Seconds(3600)};
/// Noise of one interval before it is measured, in logs, and for how many intervals that guess stands.
constexpr double kNoise = 0.004, kNoiseWeight = 6;
/// So many times as much noise (sd) as a belief was begun with, and it is begun anew: at 1 % that hardly happens.
constexpr double kNoiseFarOff = 4;
/// Differences of neighbouring intervals that such noise is measured from; the median of a normal number's square.
constexpr std::size_t kMostDifferences = 60;
constexpr double kSquareMedian = 0.4549;
/// Standard deviations at which an observation is set aside, and how many in a row are believed after all.
constexpr double kOdd = 8;
constexpr int kOddAtMost = 5;
/// Keeps the prior's matrix positive.
constexpr double kJitter = 1e-9;
/// Intervals for which a limit is kept, looks and trials apart.
constexpr int kHold = 6;
constexpr std::size_t kMostHeld = 512;
/// A horizon for runs that do not say how long they are: as long again as they have lasted, and at least this.
constexpr Seconds kShortestHorizon{3600};
/// A change of the bound for its price.
constexpr double kPriceStep = 1e-3;

/// Mean power of one board over the interval, by the counter where there is one.
std::optional<double> mean_power(const Observation& observation) {
  double sum = 0;
  for (const GpuObservation& gpu : observation.gpus) {
    if (gpu.energy && observation.interval > Seconds(0)) {
      sum += (*gpu.energy / observation.interval).value();
    } else if (gpu.power) {
      sum += (*gpu.power).value();
    } else {
      return std::nullopt;
    }
  }
  if (sum <= 0 || observation.gpus.empty()) return std::nullopt;
  return sum / static_cast<double>(observation.gpus.size());
}

Belief make_belief(const curve::Family& family, double sign, const std::vector<double>& x, const Belief::Drift& drift) {
  const auto covary = [&](double u, double v) {
    const double apart = (u - v) / kBumpLength;
    return family.covariance(u, v) + kBump * kBump * std::exp(-apart * apart / 2);
  };
  const std::size_t n = x.size();
  const double top = x.back();
  std::vector<double> mean(n), covariance(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    mean[i] = sign * (family.mean_at(x[i]) - family.mean_at(top));
    for (std::size_t j = 0; j < n; ++j) {
      covariance[i * n + j] = covary(x[i], x[j]) - covary(x[i], top) - covary(top, x[j]) + covary(top, top);
    }
    if (i + 1 < n) covariance[i * n + i] += kJitter;
  }
  return Belief(std::move(mean), covariance, drift);
}

/// Noise from one interval to the next at the same limit: drift cancels in the difference.
void learn_noise(double now, std::optional<double>& before, bool comparable, double& variance, double& weight) {
  if (before && comparable) {
    // An outlier (a stall, a checkpoint that was not told) must not make everything uncertain.
    const double difference = std::min((now - *before) * (now - *before) / 2, 9 * variance);
    weight += 1;
    variance += (difference - variance) / std::min(weight, 300.0);
  }
  before = now;
}

}  // namespace

Result<std::unique_ptr<Policy>> Model::make(const Objective& objective) {
  FLYBALL_TRY(check_objective(objective, "model"));
  return std::unique_ptr<Policy>(new Model(objective, false));
}

Result<std::unique_ptr<Policy>> Model::make_slack(const Objective& objective) {
  FLYBALL_TRY(check_objective(objective, "slack"));
  return std::unique_ptr<Policy>(new Model(objective, true));
}

Result<> Model::set_objective(const Objective& objective) {
  FLYBALL_TRY(check_objective(objective, name()));
  objective_ = objective;
  return {};
}

void Model::reset(std::uint64_t seed) {
  *this = Model(Objective(objective_), slack_);
  random_ = Random(seed);
  rate_noise_ = begun_noise_ = power_noise_ = kNoise * kNoise;
  rate_noise_weight_ = power_noise_weight_ = kNoiseWeight;
}

/// Ladder and prior, once the boards' ranges and their power as found are known.
bool Model::begin(const Observation& observation) {
  const auto power = mean_power(observation);
  if (!power || !observation.tokens_per_second || !is_training(observation.phase)) return false;
  const bool clocks = slack_ && observation.clocks_unlocked;
  ladder_ = Ladder::of(observation, clocks ? Lever::locked_clocks : Lever::power_limit);
  if (!ladder_) return false;
  counts_.assign(ladder_->size(), 0);
  tried_.assign(ladder_->size(), 0);
  build_beliefs(Watts(*power));
  return true;
}

void Model::build_beliefs(Watts unlimited) {
  places_ = ladder_->coordinates(unlimited);
  rate_ = make_belief(curve::time_families()[0], -1, places_, kRateDrift);
  power_ = make_belief(curve::power_family(), 1, places_, kPowerDrift);
}

/// A guess of the noise that is far too low makes the first intervals teach much that is not so, and the bound is not
/// kept for hours: once that shows, what they taught is dropped.
void Model::check_noise(double squared, double y) {
  differences_.push_back(squared);
  if (differences_.size() > kMostDifferences) differences_.erase(differences_.begin());
  if (rate_noise_ < kNoiseFarOff * kNoiseFarOff * begun_noise_) return;
  rate_noise_ = begun_noise_ = std::max(rate_noise_, median(differences_) / kSquareMedian);
  rate_ = make_belief(curve::time_families()[0], -1, places_, kRateDrift);
  rate_->start(y);
}

/// What held over a stretch of time that may reach back over several decisions.
std::vector<double> Model::weights_over(MonoTime from, MonoTime to) const {
  std::vector<double> weights(ladder_->size());
  double total = 0;
  MonoTime end = to;
  for (auto held = held_.rbegin(); held != held_.rend() && end > from; ++held) {
    const bool oldest = held + 1 == held_.rend();
    const MonoTime begin = oldest ? from : std::max(held->since, from);
    if (begin >= end) continue;
    const double time = (end - begin).value();
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] += time * held->weights[i];
    total += time;
    end = begin;
  }
  if (total > 0) {
    for (double& w : weights) w /= total;
  } else if (!held_.empty()) {
    weights = held_.back().weights;
  }
  return weights;
}

/// The interval that ends now began with a large step of the limit.
bool Model::settling() const {
  if (held_.size() < 2) return false;
  return ladder_->is_walked(held_[held_.size() - 2].setting, held_.back().setting);
}

/// Speeds of different limits add up in one window; beliefs are in logs. Linear around what is believed: `weights`
/// become those of the logs, the value returned is what the curvature adds to y.
double Model::linearize(std::vector<double>& weights) const {
  double sum = 0, logs = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * std::exp(rate_->mean(i));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] *= std::exp(rate_->mean(i)) / sum;
    logs += weights[i] * rate_->mean(i);
  }
  return std::log(sum) - logs;
}

void Model::learn_rate(const Observation& observation) {
  const bool known = observation.rate_to > observation.rate_from;
  const MonoTime to = known ? observation.rate_to : observation.at;
  const MonoTime from = known ? observation.rate_from : observation.at - observation.interval;
  std::vector<double> weights = weights_over(from, to);
  const double y = std::log(*observation.tokens_per_second) - linearize(weights);
  if (!rate_->started()) rate_->start(y);
  const bool comparable = held_.size() >= 2 && held_.back().weights == held_[held_.size() - 2].weights;
  const std::optional<double> before = last_rate_;
  learn_noise(y, last_rate_, comparable, rate_noise_, rate_noise_weight_);
  if (before && comparable) check_noise((y - *before) * (y - *before) / 2, y);
  // A stall that nobody told of is no speed of this limit. What lasts is a new level: another data set, another batch.
  const double off = y - rate_->predict(weights);
  const bool odd = off * off > kOdd * kOdd * (rate_->predict_variance(weights) + rate_noise_);
  odd_in_a_row_ = odd ? odd_in_a_row_ + 1 : 0;
  if (odd && odd_in_a_row_ < kOddAtMost) return;
  if (odd) rate_->jolt(off);
  rate_->observe(weights, y, rate_noise_);
}

void Model::learn(const Observation& observation) {
  const auto setting = ladder_->in_force(observation);
  if (!setting) return;
  const MonoTime begin = observation.at - observation.interval;
  held_.push_back({begin, *setting, ladder_->weights_of(*setting)});
  if (held_.size() > kMostHeld) held_.pop_front();
  const std::vector<double>& now = held_.back().weights;
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += now[i];
  intervals_ += 1;
  if (now.back() > 0.99) baseline_ += 1;
  rate_->advance(observation.interval);
  power_->advance(observation.interval);
  // A checkpoint or an evaluation says nothing about training, and neither does a limit on its way.
  if (!is_training(observation.phase) || settling()) {
    last_rate_.reset();
    last_power_.reset();
    return;
  }
  if (observation.tokens_per_second && *observation.tokens_per_second > 0) learn_rate(observation);
  // At the setting found nobody is slowed, and steps reach back over an interval.
  const auto slowed = [](const Held& held) { return held.weights.back() < 0.99; };
  if (slack_ && held_.size() > 1 && slowed(held_.back()) && slowed(held_[held_.size() - 2])) ranks_.learn(observation);
  if (const auto power = mean_power(observation)) {
    const double y = std::log(*power);
    if (!power_->started()) power_->start(y);
    const bool comparable = held_.size() >= 2 && held_[held_.size() - 2].weights == now;
    learn_noise(y, last_power_, comparable, power_noise_, power_noise_weight_);
    power_->observe(now, y, power_noise_);
  }
}

void Model::set_levels(double elapsed_fraction) {
  const double margin = kFirstMargin + (kMargin - kFirstMargin) * elapsed_fraction;
  levels_.resize(ladder_->size());
  for (std::size_t i = 0; i < ladder_->size(); ++i) {
    const double log_rate = rate_->mean(i);
    levels_[i] = {std::exp(power_->mean(i)), std::exp(log_rate),
                  std::exp(log_rate - margin * std::sqrt(rate_->variance(i)))};
  }
  levels_.back() = {};
}

namespace {

Spent spent(const std::vector<Level>& levels, const std::vector<double>& counts) {
  Spent sum;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    sum.power += counts[i] * levels[i].power;
    sum.rate += counts[i] * levels[i].rate;
    sum.sure_rate += counts[i] * levels[i].sure_rate;
    sum.intervals += counts[i];
  }
  return sum;
}

/// E max(0, x) for x normal.
double expected_gain(double mean, double sd) {
  if (sd <= 0) return std::max(0.0, mean);
  const double z = mean / sd;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return mean * std::erfc(-z / std::numbers::sqrt2) / 2 + sd * density;
}

}  // namespace

/// What a fraction of the run's tokens is worth, as a fraction of its energy per token.
double Model::price_of_loss(const Plan& plan, const Spent& gone, double left) const {
  if (objective_.alpha) return *objective_.alpha;
  const Plan looser = plan_bounded(levels_, gone, left, *objective_.max_loss_fraction + kPriceStep);
  return std::max(0.0, looser.saved - plan.saved) / kPriceStep;
}

/// The limit of which one interval teaches more than it costs, if there is one. It costs what it saves less than the
/// plan. It brings a smaller margin on the loss of the whole run, at the price of the bound, and the chance that the
/// limit is better than believed (knowledge gradient: Frazier, Powell and Dayanik, 2008).
std::optional<std::size_t> Model::worth_trying(const Plan& plan, double left) {
  const double total = intervals_ + left;
  const Spent gone = spent(levels_, counts_);
  const double price = price_of_loss(plan, gone, left);
  const auto at = [&](auto field) {
    return levels_[plan.first].*field + plan.share_second * (levels_[plan.second].*field - levels_[plan.first].*field);
  };
  const Level planned{at(&Level::power), at(&Level::rate), at(&Level::sure_rate)};
  const double power = gone.power + left * planned.power, rate = gone.rate + left * planned.rate;
  const double by_power = 1 / rate, by_rate = power / rate / rate;  // d saved
  std::vector<double> weights(ladder_->size());
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = counts_[i] / total * levels_[i].rate;
  weights[plan.first] += (1 - plan.share_second) * left / total * levels_[plan.first].rate;
  weights[plan.second] += plan.share_second * left / total * levels_[plan.second].rate;
  rate_->value_of(weights, rate_noise_, rate_value_);
  power_->value_of(weights, power_noise_, power_value_);
  const double sd = std::sqrt(rate_->variance(weights));

  double lost_by_trials = 0;
  for (std::size_t i = 0; i < levels_.size(); ++i) lost_by_trials += tried_[i] * std::max(0.0, 1 - levels_[i].rate);
  const double may_be_tried = kTrialShare * objective_.max_loss_fraction.value_or(1) * total;
  std::optional<std::size_t> best;
  double most = 0;
  double hoped = 1;  // less power is never faster: the surest of the higher limits bounds what can be hoped for
  for (std::size_t i = levels_.size(); i-- > 0;) {
    const bool top = i + 1 == levels_.size();
    const double above = hoped;
    hoped = std::min(hoped, levels_[i].rate * std::exp(std::sqrt(rate_->variance(i))));
    if (top && (until_look_ > 0 || baseline_ + 1 > kMostLooks * total)) continue;
    const Level& level = levels_[i];
    const double slowest = level.rate * std::exp(-kSlowestMargin * std::sqrt(rate_->variance(i)));
    if (!top && (slowest < kSlowestTrial || lost_by_trials + 1 - slowest > may_be_tried)) continue;
    const auto gain_at = [&](double r) {
      return by_rate * (r - planned.rate) - by_power * (level.power - planned.power) +
             price / total * (r - planned.rate);
    };
    const double gain = std::min(gain_at(level.rate), 0.0);  // rounding of the price apart, the plan is the best
    double worth = gain;
    // Without a bound there is no margin.
    if (objective_.max_loss_fraction) worth += price * kMargin * (sd - std::sqrt(rate_value_[i].sum_variance));
    if (!top && gain_at(above) > 0) {
      const double unseen = counts_[i] < 0.5 ? kUnseen : 0;
      const double shift = std::max(rate_value_[i].shift_sd, unseen);
      const double spread =
          std::hypot((by_rate + price / total) * level.rate * shift, by_power * level.power * power_value_[i].shift_sd);
      const double bound = objective_.max_loss_fraction.value_or(1);
      const double usable = std::min(1.0, bound / std::max(1 - level.rate, 1e-9));
      worth += kChanceShare * left * usable * expected_gain(gain, spread);
    }
    if (worth <= most) continue;
    most = worth;
    best = i;
  }
  return best;
}

/// Plans move by a grid point with every observation; what is set changes only every few intervals.
std::size_t Model::choose(const Plan& plan) {
  const auto near = [this](std::size_t level) { return last_level_ + 1 >= level && last_level_ <= level + 1; };
  if (hold_ > 0 && (near(plan.first) || near(plan.second))) {
    --hold_;
  } else {
    in_second_ = plan.share_second > 0 && mixing_ >= 0;
    last_level_ = in_second_ ? plan.second : plan.first;
    hold_ = kHold - 1;
  }
  mixing_ += plan.share_second - (in_second_ ? 1.0 : 0.0);
  mixing_ = std::clamp(mixing_, -static_cast<double>(kHold), static_cast<double>(kHold));
  return last_level_;
}

Proposal Model::propose(std::size_t level, std::string reason) const {
  return ladder_->propose(level, ranks_.below(), std::move(reason));
}

Proposal Model::decide(const Observation& observation) {
  if (!ladder_ && !begin(observation)) return {{}, "waiting for the boards' limits, power and progress"};
  learn(observation);
  if (until_look_ > 0) --until_look_;
  if (const auto again = std::exchange(once_more_, std::nullopt)) return propose(*again, "the same, settled");
  if (ladder_->size() < 2) return propose(0, "there is nothing below the limit found");
  if (!rate_->started() || !power_->started()) return propose(ladder_->top(), "no progress is known yet");
  if (baseline_ < kFirstIntervals) return try_out(ladder_->top());

  const Seconds elapsed = observation.interval * intervals_;
  const Seconds ahead =
      observation.remaining > Seconds(0) ? observation.remaining : std::max(elapsed, kShortestHorizon);
  const double real = std::max(1.0, ahead / observation.interval), total = intervals_ + real;
  const double left = std::max(real, kShortestPlan * total);
  set_levels(intervals_ / (intervals_ + left));
  const Spent gone = spent(levels_, counts_);
  const Plan plan = objective_.alpha ? plan_weighted(levels_, gone, left, *objective_.alpha)
                                     : plan_bounded(levels_, gone, left, *objective_.max_loss_fraction);
  if (!plan.feasible) return propose(ladder_->top(), "no more may be lost");
  auto level = real > kNoTrials * total ? worth_trying(plan, left) : std::nullopt;
  if (objective_.alpha && random_.chance(kWeightedLooks)) level = ladder_->top();
  if (level && *level != plan.first && *level != plan.second) return try_out(*level);
  return propose(choose(plan), fmt::format("{} of the run's energy per token may be saved within the bound",
                                           format_percent(plan.saved)));
}

/// A baseline interval that somebody else paid for.
void Model::observe_baseline(const Observation& observation) {
  if (ladder_ || begin(observation)) learn(observation);
}

Proposal Model::try_out(std::size_t level) {
  if (!held_.empty()) {
    if (ladder_->is_walked(held_.back().setting, ladder_->setting(level))) once_more_ = level;
  }
  tried_[level] += once_more_ ? 2 : 1;
  if (level + 1 < ladder_->size()) return propose(level, "trying " + ladder_->text(level));
  until_look_ = kLookPause + static_cast<int>(random_.below(kLookJitter));
  Proposal look = propose(level, "a look at the limits as found");
  look.baseline = true;
  return look;
}

}  // namespace flyball::policy
