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

}  // namespace flyball::facility
