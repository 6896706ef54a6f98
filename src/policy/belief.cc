#include "policy/belief.h"

#include <cmath>
#include <utility>

namespace flyball::policy {
namespace {

/// Of the level before the first observation, in logs: that one is good to a few per cent.
constexpr double kLevelSd = 0.1;

}  // namespace

Belief::Belief(std::vector<double> mean, const std::vector<double>& covariance, const Drift& drift)
    : n_(mean.size() + kShared), drift_(drift), mean_(n_), covariance_(n_ * n_), gain_(n_) {
  const std::size_t grid = mean.size();
  for (std::size_t i = 0; i < grid; ++i) {
    mean_[kShared + i] = mean[i];
    for (std::size_t j = 0; j < grid; ++j) cov(kShared + i, kShared + j) = covariance[i * grid + j];
  }
  cov(1, 1) = drift.sd * drift.sd;
}

void Belief::start(double level) {
  mean_[0] = level;
  cov(0, 0) = kLevelSd * kLevelSd;
  started_ = true;
}

void Belief::advance(Seconds time) {
  if (drift_.sd <= 0) return;
  const double keep = std::exp(-(time / drift_.time));
  mean_[1] *= keep;
  for (std::size_t i = 0; i < n_; ++i) cov(1, i) *= keep, cov(i, 1) *= keep;
  cov(1, 1) += drift_.sd * drift_.sd * (1 - keep * keep);
}

double Belief::predict(std::span<const double> weights) const {
  double y = mean_[0] + mean_[1];
  for (std::size_t j = 0; j < weights.size(); ++j) y += weights[j] * mean_[kShared + j];
  return y;
}

void Belief::observe(std::span<const double> weights, double y, double variance) {
  for (std::size_t i = 0; i < n_; ++i) {
    double sum = cov(i, 0) + cov(i, 1);
    for (std::size_t j = 0; j < weights.size(); ++j) {
      if (weights[j] != 0) sum += weights[j] * cov(i, kShared + j);
    }
    gain_[i] = sum;
  }
  double total = variance + gain_[0] + gain_[1];
  for (std::size_t j = 0; j < weights.size(); ++j) total += weights[j] * gain_[kShared + j];
  const double innovation = (y - predict(weights)) / total;
  for (std::size_t i = 0; i < n_; ++i) {
    mean_[i] += gain_[i] * innovation;
    const double share = gain_[i] / total;
    for (std::size_t j = 0; j < n_; ++j) cov(i, j) -= share * gain_[j];
  }
  // Rounding must not make a variance negative.
  for (std::size_t i = 0; i < n_; ++i) cov(i, i) = std::fmax(cov(i, i), 0);
}

double Belief::predict_variance(std::span<const double> weights) const {
  double sum = cov(0, 0) + 2 * cov(0, 1) + cov(1, 1) + variance(weights);
  for (std::size_t j = 0; j < weights.size(); ++j) sum += 2 * weights[j] * (cov(0, kShared + j) + cov(1, kShared + j));
  return std::fmax(sum, 0);
}

double Belief::variance(std::span<const double> weights) const {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    double row = 0;
    for (std::size_t j = 0; j < weights.size(); ++j) row += weights[j] * cov(kShared + i, kShared + j);
    sum += weights[i] * row;
  }
  return std::fmax(sum, 0);
}

void Belief::value_of(std::span<const double> weights, double noise, std::vector<Value>& values) const {
  // Covariance of the sum with every state.
  row_.assign(n_, 0);
  double now = 0;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    if (weights[j] == 0) continue;
    for (std::size_t i = 0; i < n_; ++i) row_[i] += weights[j] * cov(kShared + j, i);
  }
  for (std::size_t j = 0; j < weights.size(); ++j) now += weights[j] * row_[kShared + j];
  values.resize(size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t k = kShared + i;
    const double own = noise + cov(0, 0) + cov(1, 1) + cov(k, k) + 2 * (cov(0, 1) + cov(0, k) + cov(1, k));
    const double with = row_[0] + row_[1] + row_[k];
    const double itself = cov(k, 0) + cov(k, 1) + cov(k, k);
    values[i] = {std::fmax(now - with * with / own, 0), std::fabs(itself) / std::sqrt(own)};
  }
}

}  // namespace flyball::policy
