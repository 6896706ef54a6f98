#include "curve/posterior.h"

#include <algorithm>
#include <cmath>

#include "curve/family.h"

namespace flyball::curve {
namespace {

/// A curve has a level of its own (its unit of work): nothing is known of it beforehand.
constexpr double kLevelVariance = 100;
/// Noise levels that are tried, as multiples of the family's median: e^−3 … e^3.
constexpr int kNoiseLevels = 9;
constexpr double kNoiseRange = 3;

/// In place, lower triangle of a symmetric positive matrix, row by row.
void factor(std::vector<double>& a, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < j; ++k) a[j * n + j] -= a[j * n + k] * a[j * n + k];
    a[j * n + j] = std::sqrt(std::max(a[j * n + j], 1e-300));
    for (std::size_t i = j + 1; i < n; ++i) {
      for (std::size_t k = 0; k < j; ++k) a[i * n + j] -= a[i * n + k] * a[j * n + k];
      a[i * n + j] /= a[j * n + j];
    }
  }
}

/// L⁻¹ b
std::vector<double> forward(const std::vector<double>& l, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= l[i * n + k] * b[k];
    b[i] /= l[i * n + i];
  }
  return b;
}

/// L⁻ᵀ b
std::vector<double> backward(const std::vector<double>& l, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= l[k * n + i] * b[k];
    b[i] /= l[i * n + i];
  }
  return b;
}

double prior(const Family& family, double x, double y, double noise) {
  return family.covariance(x, y, noise) + kLevelVariance;
}

}  // namespace

Result<TimePosterior> TimePosterior::fit(std::span<const Point> points, double level) {
  FLYBALL_TRY(Curve::through(points));  // the same demands on points
  TimePosterior made;
  made.level_ = level;
  made.unlimited_ = 0;
  for (const Point& p : points) made.unlimited_ = std::max(made.unlimited_, p.power.value());
  std::vector<double> y;
  for (const Point& p : points) {
    made.x_.push_back(std::log(p.limit.watts().value() / made.unlimited_));
    y.push_back(std::log(p.time.value()));
  }
  const std::size_t n = y.size();
  double mean = 0;
  for (const double v : y) mean += v / static_cast<double>(n);

  double best = -INFINITY;
  for (std::size_t f = 0; f < time_families().size(); ++f) {
    const Family& family = time_families()[f];
    for (int g = 0; g < kNoiseLevels; ++g) {
      const double log_ratio = kNoiseRange * (2.0 * g / (kNoiseLevels - 1) - 1);
      Component c;
      c.family = f;
      c.noise = family.noise_median * std::exp(log_ratio);
      c.level = mean;
      std::vector<double> covariance(n * n), rest(n);
      for (std::size_t i = 0; i < n; ++i) {
        rest[i] = y[i] - mean - family.mean_at(made.x_[i]);
        for (std::size_t j = 0; j < n; ++j)
          covariance[i * n + j] = prior(family, made.x_[i], made.x_[j], c.noise) + (i == j ? c.noise * c.noise : 0);
      }
      factor(covariance, n);
      c.cholesky = std::move(covariance);
      const std::vector<double> half = forward(c.cholesky, rest);
      c.solved = backward(c.cholesky, half);
      const double z = log_ratio / family.noise_log_sd;
      c.weight = -z * z / 2 - std::log(family.noise_log_sd);
      for (std::size_t i = 0; i < n; ++i) c.weight -= half[i] * half[i] / 2 + std::log(c.cholesky[i * n + i]);
      best = std::max(best, c.weight);
      made.components_.push_back(std::move(c));
    }
  }
  double total = 0;
  for (Component& c : made.components_) total += c.weight = std::exp(c.weight - best);
  for (Component& c : made.components_) c.weight /= total;
  return made;
}

Estimate TimePosterior::at(Watts limit) const {
  const double x = std::log(limit.value() / unlimited_);
  double mean = 0, square = 0;
  for (const Component& c : components_) {
    const Family& family = time_families()[c.family];
    std::vector<double> with(x_.size());
    for (std::size_t i = 0; i < x_.size(); ++i) with[i] = prior(family, x, x_[i], c.noise);
    double value = c.level + family.mean_at(x);
    for (std::size_t i = 0; i < x_.size(); ++i) value += with[i] * c.solved[i];
    double variance = prior(family, x, x, c.noise) + c.noise * c.noise;
    for (const double h : forward(c.cholesky, with)) variance -= h * h;
    mean += c.weight * value;
    square += c.weight * (std::max(variance, 0.0) + value * value);
  }
  const double sd = std::sqrt(std::max(square - mean * mean, 0.0));
  const double half = normal_quantile((1 + level_) / 2) * sd;
  return {std::exp(mean), std::exp(mean - half), std::exp(mean + half), level_};
}

}  // namespace flyball::curve
