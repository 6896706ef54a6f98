#include "curve/posterior.h"

#include <algorithm>
#include <cmath>
#include <numbers>

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

/// Below this a component changes no quantile that anyone reads.
constexpr double kNoWeight = 1e-6;
/// Of a quantile's bracket.
constexpr int kHalvings = 50;

/// A job's few points cannot tell its board from its own bumps: alone, the board is like all.
double log_weight_alone(const BoardShape& shape) {
  return shape.residual_sd == 1 && shape.residual_length == 1 ? 0 : -INFINITY;
}

double log_of_sum(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
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

  made.evidence_.assign(board_shapes().size(), -INFINITY);
  for (std::size_t shape = 0; shape < board_shapes().size(); ++shape) {
    for (const Family& unshaped : time_families()) {
      const Family family = shaped(unshaped, board_shapes()[shape]);
      for (int g = 0; g < kNoiseLevels; ++g) {
        const double log_ratio = kNoiseRange * (2.0 * g / (kNoiseLevels - 1) - 1);
        Component c;
        c.shape = shape;
        c.family = family;
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
        c.likelihood = -z * z / 2 - std::log(family.noise_log_sd);
        for (std::size_t i = 0; i < n; ++i) c.likelihood -= half[i] * half[i] / 2 + std::log(c.cholesky[i * n + i]);
        made.evidence_[shape] = log_of_sum(made.evidence_[shape], c.likelihood);
        made.components_.push_back(std::move(c));
      }
    }
  }
  made.weigh({});
  return made;
}

void TimePosterior::learn_board(std::span<const double> others) {
  board_known_ = true;
  weigh(others);
}

void TimePosterior::weigh(std::span<const double> others) {
  double best = -INFINITY, total = 0;
  for (Component& c : components_) {
    c.weight = c.likelihood + (others.empty() ? log_weight_alone(board_shapes()[c.shape])
                                              : board_shapes()[c.shape].log_prior + others[c.shape]);
    best = std::max(best, c.weight);
  }
  for (Component& c : components_) total += c.weight = std::exp(c.weight - best);
  for (Component& c : components_) c.weight /= total;
}

Estimate TimePosterior::at(Watts limit) const {
  const double x = std::log(limit.value() / unlimited_);
  std::vector<Normal> mixture;
  double low = INFINITY, high = -INFINITY, total = 0, mean = 0, square = 0;
  for (const Component& c : components_) {
    if (c.weight < kNoWeight) continue;
    std::vector<double> with(x_.size());
    for (std::size_t i = 0; i < x_.size(); ++i) with[i] = prior(c.family, x, x_[i], c.noise);
    double value = c.level + c.family.mean_at(x);
    for (std::size_t i = 0; i < x_.size(); ++i) value += with[i] * c.solved[i];
    double variance = prior(c.family, x, x, c.noise) + c.noise * c.noise;
    for (const double h : forward(c.cholesky, with)) variance -= h * h;
    const double sd = std::sqrt(std::max(variance, c.noise * c.noise));
    mixture.push_back({c.weight, value, sd});
    total += c.weight;
    mean += c.weight * value;
    square += c.weight * (sd * sd + value * value);
    low = std::min(low, value - 8 * sd);
    high = std::max(high, value + 8 * sd);
  }
  mean /= total;
  const auto estimate = [&](double below, double above) {
    return Estimate{std::exp(mean), std::exp(below), std::exp(above), level_};
  };
  if (!board_known_) {
    // The few points of one job tell their noise badly: quantiles of the mixture would cover 80 % where 90 are meant.
    const double half = normal_quantile((1 + level_) / 2) * std::sqrt(std::max(square / total - mean * mean, 0.0));
    return estimate(mean - half, mean + half);
  }
  const auto quantile = [&](double probability) {
    double below = low, above = high;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (below + above) / 2;
      double reached = 0;
      for (const Normal& n : mixture) {
        reached += n.weight / total * std::erfc((n.mean - middle) / n.sd / std::numbers::sqrt2) / 2;
      }
      (reached < probability ? below : above) = middle;
    }
    return (below + above) / 2;
  };
  return estimate(quantile((1 - level_) / 2), quantile((1 + level_) / 2));
}

}  // namespace flyball::curve
