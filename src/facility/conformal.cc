#include "facility/conformal.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/stats.h"

namespace flyball::facility {

AdaptiveInterval::AdaptiveInterval(double level, double rate)
    : level_(level), rate_(rate), radius_(normal_quantile((1 + level) / 2)) {}

void AdaptiveInterval::start(std::span<const double> scores) {
  // Fewer say nothing about a tail.
  constexpr std::size_t kFewest = 20;
  if (scores.size() >= kFewest) radius_ = quantile(scores, level_);
}

void AdaptiveInterval::observe(double score) {
  if (!std::isfinite(score)) return;
  const bool outside = score > radius_;
  ++observed_;
  inside_ += outside ? 0 : 1;
  // One outside widens by rate × level, one inside narrows by rate × (1 − level): in balance at the level. The step is
  // in units of the radius, so that a start far from the truth is left quickly.
  radius_ *= std::exp(rate_ * ((outside ? 1.0 : 0.0) - (1 - level_)));
  radius_ = std::clamp(radius_, 0.01, 1000.0);
}

double AdaptiveInterval::coverage_fraction() const {
  if (observed_ == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(inside_) / static_cast<double>(observed_);
}

namespace {

// Bins of 4 % from a hundredth of a deviation to some hundreds.
constexpr double kLeastScore = 0.01, kBinLog = 0.04;
constexpr std::uint64_t kFewestScores = 50;

}  // namespace

RollingInterval::RollingInterval(double level, Seconds half_life)
    : level_(level), half_life_(half_life), quantile_(normal_quantile((1 + level) / 2)) {}

double RollingInterval::radius() const { return quantile_ * std::exp(boost_); }

void RollingInterval::observe(WallTime at, double score, bool inside, std::size_t overlapping,
                              const RollingInterval* like) {
  if (!std::isfinite(score)) return;
  // The first scores are of forecasts that hardly knew anything: for a while they also fade with the cube of their
  // number.
  constexpr std::uint64_t kYoung = 20'000;
  const double young = observed_ < kYoung ? 3 / (1 + static_cast<double>(observed_)) : 0;
  if (observed_ > 0) now_ *= std::exp2(std::max((at - at_) / half_life_, young));
  at_ = at;
  constexpr double kLargest = 1e9;
  if (now_ > kLargest) {
    for (double& weight : weights_) weight /= now_;
    total_ /= now_;
    now_ = 1;
  }
  const double bin = std::log(std::max(score, kLeastScore) / kLeastScore) / kBinLog;
  weights_[std::min(static_cast<std::size_t>(bin), kBins - 1)] += now_;
  total_ += now_;
  ++observed_;
  inside_ += inside ? 1 : 0;
  if (observed_ < kFewestScores) return;
  // A loop with a delay of n steps swings where rate × slope × n is above π / 2; the share outside falls by about 0.34
  // for each factor of e in the radius. All that one radius was told for is one experience, however late it is
  // observed: a night that is wholly missed widens by a factor of e at most, and its scores do the rest.
  constexpr double kRate = 0.01, kSteady = 2, kFarthest = 1;
  const double rate = std::min(kRate, kSteady / (1 + static_cast<double>(overlapping)));
  boost_ = std::clamp(boost_ + rate * ((inside ? 0.0 : 1.0) - (1 - level_)), -kFarthest, kFarthest);
  // The quantile moves little from one to the next.
  constexpr std::uint64_t kEvery = 16;
  if (observed_ % kEvery == 0 || observed_ == kFewestScores) find_radius(like);
}

void RollingInterval::find_radius(const RollingInterval* like) {
  // As many points as a working day has at ten seconds.
  constexpr double kLikeIt = 2000;
  const double lent = like != nullptr && like->total_ > 0 ? now_ * kLikeIt / like->total_ : 0;
  const double wanted = level_ * (total_ + (lent > 0 ? now_ * kLikeIt : 0));
  double sum = 0;
  for (std::size_t i = 0; i < kBins; ++i) {
    const double weight = weights_[i] + (lent > 0 ? lent * like->weights_[i] : 0);
    if (sum + weight >= wanted && weight > 0) {
      const double share = (wanted - sum) / weight;
      quantile_ = kLeastScore * std::exp(kBinLog * (static_cast<double>(i) + std::clamp(share, 0.0, 1.0)));
      return;
    }
    sum += weight;
  }
}

double RollingInterval::coverage_fraction() const {
  if (observed_ == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(inside_) / static_cast<double>(observed_);
}

}  // namespace flyball::facility
