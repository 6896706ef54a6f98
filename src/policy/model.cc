#include "policy/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "curve/family.h"

namespace flyball::policy {
namespace {

/// Grid of limits: finer than the guard's ramp and than any difference that matters, and few enough to be cheap.
constexpr Milliwatts kFinest{5'000};
constexpr std::int64_t kMostLevels = 33;
/// What the run begins with at the limits as found; after that a look is bought one interval at a time.
constexpr int kFirstIntervals = 6;
/// Of a run, at most, without control: measures.md asks for 5 %.
constexpr double kMostBaseline = 0.045;
/// Between two looks, at least, and a random part, so that looks never keep step with anything periodic.
constexpr int kLookPause = 1, kLookJitter = 3;
/// Standard deviations by which the bound on loss is kept, at the end of the run and at its beginning. At the end 2
/// leave 2 % of runs above it; before, an error can still be made up for.
constexpr double kMargin = 2.0, kFirstMargin = 0.7;
/// Slow drift of throughput: measures.md, from long runs.
constexpr Belief::Drift kRateDrift{0.005, Seconds(3600)};
constexpr Belief::Drift kPowerDrift{0.003, Seconds(3600)};
/// Noise of one interval before it is measured, in logs, and for how many intervals that guess stands.
constexpr double kNoise = 0.004, kNoiseWeight = 6;
/// Curves are measured on whole runs; what is between two neighbours of the grid must not be thought known exactly.
constexpr double kJitter = 1e-9;
/// Intervals for which one limit of a mix is kept.
constexpr int kHold = 3;
constexpr std::size_t kMostHeld = 512;
/// A horizon for runs that do not say how long they are: as long again as they have lasted, and at least this.
constexpr Seconds kShortestHorizon{3600};
/// A change of the bound for its price.
constexpr double kPriceStep = 1e-3;

bool is_training(Phase phase) { return phase == Phase::training || phase == Phase::unknown; }

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

std::optional<Milliwatts> common_limit(const Observation& observation) {
  std::optional<Milliwatts> highest;
  for (const GpuObservation& gpu : observation.gpus) {
    if (!gpu.limit_enforced) return std::nullopt;
    highest = std::max(highest.value_or(Milliwatts(0)), *gpu.limit_enforced);
  }
  return highest;
}

Belief make_belief(const curve::Family& family, double sign, const std::vector<double>& x,
                   const Belief::Drift& drift) {
  const std::size_t n = x.size();
  const double top = x.back();
  std::vector<double> mean(n), covariance(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    mean[i] = sign * (family.mean_at(x[i]) - family.mean_at(top));
    for (std::size_t j = 0; j < n; ++j) {
      covariance[i * n + j] = family.covariance(x[i], x[j]) - family.covariance(x[i], top) -
                              family.covariance(top, x[j]) + family.covariance(top, top);
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
  return std::unique_ptr<Policy>(new Model(objective));
}

void Model::reset(std::uint64_t seed) {
  const Objective objective = objective_;
  *this = Model(objective);
  random_ = Random(seed);
  rate_noise_ = power_noise_ = kNoise * kNoise;
  rate_noise_weight_ = power_noise_weight_ = kNoiseWeight;
}

/// Grid and prior, once the board's range and its power as found are known.
bool Model::begin(const Observation& observation) {
  Milliwatts found{}, lowest{};
  std::vector<GpuProposal> as_found;
  for (const GpuObservation& gpu : observation.gpus) {
    if (!gpu.limit_enforced || !gpu.minimum) return false;
    found = std::max(found, *gpu.limit_enforced);
    lowest = std::max(lowest, *gpu.minimum);
    as_found.push_back({gpu.device, *gpu.limit_enforced, {}});
  }
  if (as_found.empty()) return false;
  if (found_.empty()) found_ = std::move(as_found);
  const auto power = mean_power(observation);
  if (!power || !observation.tokens_per_second || !is_training(observation.phase)) return false;
  first_power_ += (*power - first_power_) / ++first_intervals_;
  const std::int64_t range = std::max<std::int64_t>(found.value() - lowest.value(), 0);
  const std::int64_t step =
      kFinest.value() * std::max<std::int64_t>(1, (range + kFinest.value() * (kMostLevels - 1) - 1) /
                                                      (kFinest.value() * (kMostLevels - 1)));
  for (std::int64_t limit = found.value(); limit > lowest.value(); limit -= step) grid_.push_back(Milliwatts(limit));
  grid_.push_back(std::min(lowest, found));
  std::reverse(grid_.begin(), grid_.end());
  counts_.assign(grid_.size(), 0);
  build_beliefs(Watts(first_power_));
  return true;
}

void Model::build_beliefs(Watts unlimited) {
  std::vector<double> x;
  for (const Milliwatts limit : grid_) x.push_back(std::log(limit.watts() / unlimited));
  rate_ = make_belief(curve::time_families()[0], -1, x, kRateDrift);
  power_ = make_belief(curve::power_family(), 1, x, kPowerDrift);
}

/// Linear between the two grid points around it.
std::vector<double> Model::weights_of(Milliwatts limit) const {
  std::vector<double> weights(grid_.size());
  const auto above = std::lower_bound(grid_.begin(), grid_.end(), limit);
  if (above == grid_.end()) {
    weights.back() = 1;
  } else if (above == grid_.begin() || *above == limit) {
    weights[static_cast<std::size_t>(above - grid_.begin())] = 1;
  } else {
    const auto i = static_cast<std::size_t>(above - grid_.begin());
    const double share = static_cast<double>((limit - grid_[i - 1]).value()) /
                         static_cast<double>((grid_[i] - grid_[i - 1]).value());
    weights[i - 1] = 1 - share;
    weights[i] = share;
  }
  return weights;
}

/// What held over a stretch of time that may reach back over several decisions.
std::vector<double> Model::weights_over(MonoTime from, MonoTime to) const {
  std::vector<double> weights(grid_.size());
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

void Model::learn_rate(const Observation& observation) {
  const bool known = observation.rate_to > observation.rate_from;
  const MonoTime to = known ? observation.rate_to : observation.at;
  const MonoTime from = known ? observation.rate_from : observation.at - observation.interval;
  const std::vector<double> weights = weights_over(from, to);
  const double y = std::log(*observation.tokens_per_second);
  if (!rate_->started()) rate_->start(y);
  const bool comparable = held_.size() >= 2 && held_.back().weights == held_[held_.size() - 2].weights;
  learn_noise(y, last_rate_, comparable, rate_noise_, rate_noise_weight_);
  rate_->observe(weights, y, rate_noise_);
}

void Model::learn(const Observation& observation) {
  const auto limit = common_limit(observation);
  if (!limit) return;
  const MonoTime begin = observation.at - observation.interval;
  held_.push_back({begin, weights_of(*limit)});
  if (held_.size() > kMostHeld) held_.pop_front();
  const std::vector<double>& now = held_.back().weights;
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += now[i];
  intervals_ += 1;
  if (now.back() > 0.99) baseline_ += 1;
  rate_->advance(observation.interval);
  power_->advance(observation.interval);
  // A checkpoint or an evaluation says nothing about training, and neither does a job that says nothing.
  if (!is_training(observation.phase)) {
    last_rate_.reset();
    last_power_.reset();
    return;
  }
  if (observation.tokens_per_second && *observation.tokens_per_second > 0) learn_rate(observation);
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
  levels_.resize(grid_.size());
  for (std::size_t i = 0; i < grid_.size(); ++i) {
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

}  // namespace

/// Whether an interval at the limits as found is worth more than it costs. It costs the saving forgone, less what the
/// tokens not lost in it are worth later; it brings a smaller margin, at the price of the bound.
bool Model::worth_a_look(const Plan& plan, double left) {
  const double total = intervals_ + left;
  if (until_look_ > 0 || baseline_ + 1 > kMostBaseline * total) return false;
  const std::span<const Level> controlled(levels_.data(), levels_.size() - 1);
  const Spent gone = spent(levels_, counts_);
  const double bound = *objective_.max_loss_fraction;
  const Plan looser = plan_bounded(controlled, gone, left, bound + kPriceStep);
  if (!plan.feasible || !looser.feasible) return true;
  const double price = std::max(0.0, looser.saved - plan.saved) / kPriceStep;
  const auto at = [&](auto field) {
    return levels_[plan.first].*field + plan.share_second * (levels_[plan.second].*field - levels_[plan.first].*field);
  };
  const double power = gone.power + left * at(&Level::power), rate = gone.rate + left * at(&Level::rate);
  const double forgone = ((1 - at(&Level::power)) - power / rate * (1 - at(&Level::rate))) / rate -
                         price * (1 - at(&Level::sure_rate)) / total;
  std::vector<double> weights(grid_.size());
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = counts_[i] / total * levels_[i].rate;
  weights[plan.first] += (1 - plan.share_second) * left / total * levels_[plan.first].rate;
  weights[plan.second] += plan.share_second * left / total * levels_[plan.second].rate;
  const double now = std::sqrt(rate_->variance(weights));
  const double after = std::sqrt(rate_->variance_after(weights, grid_.size() - 1, rate_noise_));
  return price * kMargin * (now - after) > forgone;
}

std::size_t Model::choose(const Plan& plan) {
  if (plan.first == plan.second || plan.share_second <= 0) {
    mixing_ = 0;
    return plan.first;
  }
  if (hold_ > 0 && (last_level_ == plan.first || last_level_ == plan.second)) {
    --hold_;
  } else {
    last_level_ = mixing_ >= 0 ? plan.second : plan.first;
    hold_ = kHold - 1;
  }
  mixing_ += plan.share_second - (last_level_ == plan.second ? 1.0 : 0.0);
  mixing_ = std::clamp(mixing_, -static_cast<double>(kHold), static_cast<double>(kHold));
  return last_level_;
}

Proposal Model::propose(std::size_t level, std::string reason) const {
  Proposal proposal{found_, std::move(reason)};
  for (GpuProposal& gpu : proposal.gpus) gpu.power_limit = std::min(*gpu.power_limit, grid_[level]);
  return proposal;
}

Proposal Model::decide(const Observation& observation) {
  if (grid_.empty() && !begin(observation)) return {{}, "waiting for the boards' limits, power and progress"};
  learn(observation);
  if (until_look_ > 0) --until_look_;
  if (grid_.size() < 2) return propose(0, "there is nothing below the limit found");
  if (!rate_->started() || !power_->started()) return propose(grid_.size() - 1, "no progress is known yet");
  if (baseline_ < kFirstIntervals) return propose(grid_.size() - 1, "measuring as found");

  const Seconds elapsed = observation.interval * intervals_;
  const Seconds ahead =
      observation.remaining > Seconds(0) ? observation.remaining : std::max(elapsed, kShortestHorizon);
  const double left = std::max(1.0, ahead / observation.interval);
  set_levels(intervals_ / (intervals_ + left));
  const std::span<const Level> controlled(levels_.data(), levels_.size() - 1);
  const Spent gone = spent(levels_, counts_);
  if (objective_.alpha) {
    const Plan plan = plan_weighted(controlled, gone, left, *objective_.alpha);
    return propose(choose(plan), fmt::format("most of saved − {} · lost", *objective_.alpha));
  }
  const Plan plan = plan_bounded(controlled, gone, left, *objective_.max_loss_fraction);
  if (worth_a_look(plan, left)) {
    until_look_ = kLookPause + static_cast<int>(random_.below(kLookJitter));
    return propose(grid_.size() - 1, "a look at the limits as found");
  }
  return propose(choose(plan), fmt::format("{} of the run's energy per token may be saved within the bound",
                                           format_percent(plan.saved)));
}

}  // namespace flyball::policy
