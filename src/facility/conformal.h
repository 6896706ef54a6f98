#pragma once
// Intervals that keep their promise while the plant drifts: the width is steered by how often the past fell outside.

#include <cstdint>
#include <span>

namespace flyball::facility {

/// Adaptive conformal prediction (Gibbs and Candès, 2021), in the form that tracks the quantile of the score itself
/// (Angelopoulos, Candès and Tibshirani, 2023). The score is |measured − forecast| / forecast's sd, so that the
/// interval is wide where the forecast is unsure.
class AdaptiveInterval {
 public:
  explicit AdaptiveInterval(double level = 0.9, double rate = 0.02);

  /// Starts at the quantile of scores that were already seen.
  void start(std::span<const double> scores);
  /// Half-width in the forecast's sd.
  double radius() const { return radius_; }
  /// What the measured value turned out to be; call in order of time. An infinite or NaN score is left out.
  void observe(double score);

  double level() const { return level_; }
  std::uint64_t observed() const { return observed_; }
  /// Share of observed values inside their interval; NaN before the first.
  double coverage_fraction() const;

 private:
  double level_;
  double rate_;
  double radius_;
  std::uint64_t observed_ = 0;
  std::uint64_t inside_ = 0;
};

}  // namespace flyball::facility
