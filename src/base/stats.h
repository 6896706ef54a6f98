#pragma once
// Small statistics that more than one room needs. Inputs are plain numbers: the caller knows the unit.

#include <cstddef>
#include <span>
#include <vector>

namespace flyball {

/// A value with its interval. Printed in JSON as {value, low, high, level}.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
  double level = 0.95;
  double half_width() const { return (high - low) / 2; }
};

/// Mean and variance in one pass (Welford, 1962).
class RunningStats {
 public:
  void add(double x) {
    ++n_;
    const double delta = x - mean_;
    mean_ += delta / static_cast<double>(n_);
    sum_squares_ += delta * (x - mean_);
  }
  std::size_t count() const { return n_; }
  double mean() const { return mean_; }
  /// Unbiased; 0 for fewer than two values.
  double variance() const { return n_ < 2 ? 0 : sum_squares_ / static_cast<double>(n_ - 1); }
  double sd() const;

 private:
  std::size_t n_ = 0;
  double mean_ = 0;
  double sum_squares_ = 0;
};

/// Quantile with linear interpolation between order statistics (type 7 of Hyndman and Fan, 1996). NaN when empty.
double quantile(std::span<const double> values, double probability);
double median(std::span<const double> values);
/// Pearson's; NaN when either side does not vary.
double correlation(std::span<const double> a, std::span<const double> b);

/// Two-sided quantile of Student's t: P(|T| <= t) = level.
double student_t(double level, double degrees_of_freedom);
/// Quantile of the standard normal.
double normal_quantile(double probability);
/// Mean with Student's interval; the interval is infinite for fewer than two values.
Estimate mean_with_interval(std::span<const double> values, double level = 0.95);

/// Values made non-decreasing with least squared change (pool adjacent violators; Ayer et al., 1955).
std::vector<double> isotonic_non_decreasing(std::span<const double> values, std::span<const double> weights = {});

}  // namespace flyball
