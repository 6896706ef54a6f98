#include "base/stats.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

namespace flyball {

double RunningStats::sd() const { return std::sqrt(variance()); }

double quantile(std::span<const double> values, double probability) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sorted(values.begin(), values.end());
  const double position = std::clamp(probability, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto nth = sorted.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(sorted.begin(), nth, sorted.end());
  const double low = *nth;
  if (below + 1 == sorted.size()) return low;
  const double high = *std::min_element(nth + 1, sorted.end());
  return low + (high - low) * (position - static_cast<double>(below));
}

double median(std::span<const double> values) { return quantile(values, 0.5); }

double correlation(std::span<const double> a, std::span<const double> b) {
  const std::size_t n = std::min(a.size(), b.size());
  RunningStats of_a;
  RunningStats of_b;
  for (std::size_t i = 0; i < n; ++i) {
    of_a.add(a[i]);
    of_b.add(b[i]);
  }
  double product = 0;
  for (std::size_t i = 0; i < n; ++i) product += (a[i] - of_a.mean()) * (b[i] - of_b.mean());
  const double spread = of_a.sd() * of_b.sd();
  if (n < 2 || spread <= 0) return std::numeric_limits<double>::quiet_NaN();
  return product / (static_cast<double>(n - 1) * spread);
}

double student_t(double level, double degrees_of_freedom) {
  return boost::math::quantile(boost::math::students_t(degrees_of_freedom), 0.5 + level / 2);
}

double normal_quantile(double probability) { return boost::math::quantile(boost::math::normal(), probability); }

Estimate mean_with_interval(std::span<const double> values, double level) {
  RunningStats stats;
  for (const double v : values) stats.add(v);
  double half = std::numeric_limits<double>::infinity();
  if (stats.count() >= 2) {
    const auto n = static_cast<double>(stats.count());
    half = student_t(level, n - 1) * stats.sd() / std::sqrt(n);
  }
  return {stats.mean(), stats.mean() - half, stats.mean() + half, level};
}

std::vector<double> isotonic_non_decreasing(std::span<const double> values, std::span<const double> weights) {
  struct Pool {
    double mean;
    double weight;
    std::size_t count;
  };
  std::vector<Pool> pools;
  for (std::size_t i = 0; i < values.size(); ++i) {
    pools.push_back({values[i], weights.empty() ? 1.0 : weights[i], 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean > pools.back().mean) {
      const Pool last = pools.back();
      pools.pop_back();
      Pool& into = pools.back();
      into.mean = (into.mean * into.weight + last.mean * last.weight) / (into.weight + last.weight);
      into.weight += last.weight;
      into.count += last.count;
    }
  }
  std::vector<double> result;
  result.reserve(values.size());
  for (const Pool& pool : pools) result.insert(result.end(), pool.count, pool.mean);
  return result;
}

}  // namespace flyball
