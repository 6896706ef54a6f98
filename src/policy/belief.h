#pragma once
// What is believed about a function of the limit while the job runs: a Gaussian over its values on a grid of limits, a
// level that all share and a slow drift of that level. A Kalman filter; one observation costs (grid + 2)²
// multiplications.

#include <cstddef>
#include <span>
#include <vector>

#include "base/units.h"

namespace flyball::policy {

class Belief {
 public:
  struct Drift {
    double sd = 0;       ///< stationary, in logs
    Seconds time{3600};  ///< after which it is forgotten by 1/e
  };
  /// Values relative to the last grid point, whose own value is exactly 0. `covariance` is row by row.
  Belief(std::vector<double> mean, const std::vector<double>& covariance, const Drift& drift);

  std::size_t size() const { return n_ - kShared; }
  /// Nothing but the level's order of magnitude is known at first.
  void start(double level);
  bool started() const { return started_; }
  /// Time passes, the drift is forgotten.
  void advance(Seconds time);
  /// y = level + drift + Σ weights · value + noise.
  void observe(std::span<const double> weights, double y, double variance);
  /// What `observe` would expect of y, and with which variance, noise apart.
  double predict(std::span<const double> weights) const;
  double predict_variance(std::span<const double> weights) const;
  /// The level may have changed at once by that much (sd).
  void jolt(double sd) { cov(0, 0) += sd * sd; }

  double mean(std::size_t i) const { return mean_[kShared + i]; }
  double variance(std::size_t i) const { return cov(kShared + i, kShared + i); }
  /// Of Σ weights · value.
  double variance(std::span<const double> weights) const;
  /// What one observation at each grid point would bring, with noise of that variance.
  struct Value {
    double sum_variance = 0;  ///< of Σ weights · value, afterwards
    double shift_sd = 0;      ///< by how much the mean at that point would move
  };
  void value_of(std::span<const double> weights, double noise, std::vector<Value>& values) const;

 private:
  static constexpr std::size_t kShared = 2;  ///< level, drift
  double& cov(std::size_t i, std::size_t j) { return covariance_[i * n_ + j]; }
  double cov(std::size_t i, std::size_t j) const { return covariance_[i * n_ + j]; }

  std::size_t n_;
  Drift drift_;
  bool started_ = false;
  std::vector<double> mean_, covariance_, gain_;
  mutable std::vector<double> row_;
};

}  // namespace flyball::policy
