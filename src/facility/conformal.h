#pragma once
// Intervals that keep their promise while the plant drifts: the width is steered by how often the past fell outside.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "base/units.h"

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

/// For intervals that are observed late, at any distance of points: steering alone would swing there. The radius is the
/// quantile of the scores seen, older ones fading (their distribution does not depend on the radius, so a delay does no
/// harm), times a factor that is steered, slowly, by how often intervals as they were told held (Gibbs and Candès,
/// 2021).
class RollingInterval {
 public:
  explicit RollingInterval(double level = 0.9, Seconds half_life = Seconds(4 * 86400.0));

  double radius() const;
  /// Begins with the radius of something like it.
  void start(const RollingInterval& like) { quantile_ = like.quantile_; }
  /// `inside`: it was in the interval that was told; `overlapping`: intervals that were told and not observed yet, when
  /// this one was told and now. `like`: counts beside its own scores as so many points, for those of a few hours are
  /// right and wrong together; null: nothing is like it.
  void observe(WallTime at, double score, bool inside, std::size_t overlapping, const RollingInterval* like = nullptr);

  std::uint64_t observed() const { return observed_; }
  /// Share of observed values inside the interval that was told; NaN before the first.
  double coverage_fraction() const;

 private:
  void find_radius(const RollingInterval* like);

  static constexpr std::size_t kBins = 256;
  double level_;
  Seconds half_life_;
  double quantile_;                      ///< of the scores
  double boost_ = 0;                     ///< logarithm of the factor
  std::array<double, kBins> weights_{};  ///< by the score's logarithm
  double total_ = 0, now_ = 1;           ///< weight of what comes now
  WallTime at_;
  std::uint64_t observed_ = 0, inside_ = 0;
};

}  // namespace flyball::facility
