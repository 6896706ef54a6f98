#pragma once
// A linear model whose coefficients may drift, learned one observation at a time, and how fast it forgets found from
// how well it foretold. Inputs are plain numbers: the caller knows the unit.
//
// Each coefficient is a Gaussian state. A steady one only gets surer; a drifting one is an Ornstein-Uhlenbeck process
// that returns to zero with its memory, so that what was learned long ago is forgotten and what is not observed does
// not grow without bound. The update is the Kalman filter's (Kalman, 1960); West and Harrison, "Bayesian Forecasting
// and Dynamic Models" (1997), ch. 4.

#include <array>
#include <span>
#include <vector>

#include "base/clock.h"

namespace flyball::facility {

/// One term of the model before anything is known: its coefficient is 0 ± prior_sd.
struct Term {
  double prior_sd = 1;
  Seconds memory;  ///< 0: the coefficient is steady
};

struct Forecast {
  double mean = 0;
  double sd = 0;  ///< of an observation: coefficients' doubt and noise
};

class RecursiveRegression {
 public:
  /// `drift_factor` scales the variance of drifting coefficients.
  explicit RecursiveRegression(std::vector<Term> terms, double drift_factor = 1);

  Forecast forecast(std::span<const double> x, double noise_sd, WallTime at) const;
  /// Observations come in order of time. One that is more than three of its forecast's sd away counts less, the less
  /// the farther (Huber, 1964). `x` has one value a term.
  void learn(std::span<const double> x, double y, double noise_sd, WallTime at);

  /// Goes on at `at`, earlier or later, as if `elapsed` had passed: for a stretch that is not behind what was learned.
  void jump(WallTime at, Seconds elapsed);

  std::span<const double> coefficients() const { return mean_; }
  /// Of coefficient i as it is known at the last observation.
  double sd(std::size_t i) const;

 private:
  void age(Seconds elapsed);
  double decay(std::size_t i, Seconds elapsed) const;

  std::vector<Term> terms_;
  std::vector<double> mean_;
  std::vector<double> covariance_;  ///< row by row
  std::vector<double> gain_;        ///< scratch
  WallTime at_;
  bool started_ = false;
};

/// Three of them: one that drifts little, one as stated, one that drifts much. Their forecasts are mixed by how likely
/// each made what was observed, older evidence counting less: forgetting adapts to the plant.
class AdaptiveRegression {
 public:
  static constexpr std::array<double, 3> kDriftFactors = {0.3, 1, 3};

  struct Mixed {
    double mean = 0;
    double sd = 0;
    std::array<Forecast, kDriftFactors.size()> members;
  };

  /// `evidence_half_life`: after it, what a member foretold counts half.
  AdaptiveRegression(const std::vector<Term>& terms, Seconds evidence_half_life);

  Mixed forecast(std::span<const double> x, double noise_sd, WallTime at) const;
  /// `foretold`: the forecast that was made of this observation when it was still unknown; null: none was.
  void learn(std::span<const double> x, double y, double noise_sd, WallTime at, const Mixed* foretold);

  void jump(WallTime at, Seconds elapsed);

  /// The member that drifts as stated.
  const RecursiveRegression& middle() const { return members_[1]; }
  /// How much each member counts; sums to 1.
  std::array<double, kDriftFactors.size()> weights() const;

 private:
  std::vector<RecursiveRegression> members_;
  std::array<double, kDriftFactors.size()> log_evidence_{};
  Seconds half_life_;
  WallTime at_;
  bool started_ = false;
};

}  // namespace flyball::facility
