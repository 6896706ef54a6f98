#include "facility/recursive.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace flyball::facility {
namespace {

constexpr double kHuberSds = 3;
/// Student's t with four degrees of freedom: one wild hour does not decide which memory is right.
constexpr double kEvidenceDegrees = 4;
/// Neighbouring observations err alike, so each counts for less than one.
constexpr double kEvidenceShare = 0.3;

}  // namespace

RecursiveRegression::RecursiveRegression(std::vector<Term> terms, double drift_factor)
    : terms_(std::move(terms)), mean_(terms_.size()), covariance_(terms_.size() * terms_.size()), gain_(terms_.size()) {
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    if (terms_[i].memory > Seconds(0)) terms_[i].prior_sd *= std::sqrt(drift_factor);
    covariance_[i * terms_.size() + i] = terms_[i].prior_sd * terms_[i].prior_sd;
  }
}

double RecursiveRegression::sd(std::size_t i) const { return std::sqrt(covariance_[i * terms_.size() + i]); }

double RecursiveRegression::decay(std::size_t i, Seconds elapsed) const {
  if (!(terms_[i].memory > Seconds(0))) return 1;
  return std::exp(-std::max(elapsed / terms_[i].memory, 0.0));
}

void RecursiveRegression::jump(WallTime at, Seconds elapsed) {
  if (started_) age(elapsed);
  at_ = at;
  started_ = true;
}

void RecursiveRegression::age(Seconds elapsed) {
  if (!(elapsed > Seconds(0))) return;
  const std::size_t n = terms_.size();
  std::vector<double>& factor = gain_;
  for (std::size_t i = 0; i < n; ++i) factor[i] = decay(i, elapsed);
  for (std::size_t i = 0; i < n; ++i) {
    if (!(terms_[i].memory > Seconds(0))) continue;  // steady: nothing fades
    mean_[i] *= factor[i];
    for (std::size_t j = 0; j < n; ++j) {
      const bool both = terms_[j].memory > Seconds(0);
      if (both && j < i) continue;  // done from the other side
      covariance_[i * n + j] *= factor[i] * factor[j];
      if (i != j) covariance_[j * n + i] *= factor[i] * factor[j];
    }
    covariance_[i * n + i] += terms_[i].prior_sd * terms_[i].prior_sd * (1 - factor[i] * factor[i]);
  }
}

Forecast RecursiveRegression::forecast(std::span<const double> x, double noise_sd, WallTime at) const {
  const std::size_t n = terms_.size();
  const Seconds elapsed = started_ ? at - at_ : Seconds(0);
  std::vector<double> faded(n);
  Forecast made;
  double variance = noise_sd * noise_sd;
  for (std::size_t i = 0; i < n; ++i) {
    const double factor = decay(i, elapsed);
    faded[i] = factor * x[i];
    made.mean += faded[i] * mean_[i];
    const double grown = x[i] * terms_[i].prior_sd;
    variance += grown * grown * (1 - factor * factor);
  }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) variance += faded[i] * covariance_[i * n + j] * faded[j];
  made.sd = std::sqrt(std::max(variance, 0.0));
  return made;
}

void RecursiveRegression::learn(std::span<const double> x, double y, double noise_sd, WallTime at) {
  jump(at, started_ ? at - at_ : Seconds(0));
  const std::size_t n = terms_.size();
  double error = y;
  double variance = noise_sd * noise_sd;
  for (std::size_t i = 0; i < n; ++i) {
    error -= x[i] * mean_[i];
    gain_[i] = 0;
    for (std::size_t j = 0; j < n; ++j) gain_[i] += covariance_[i * n + j] * x[j];
  }
  for (std::size_t i = 0; i < n; ++i) variance += x[i] * gain_[i];
  if (!(variance > 0) || !std::isfinite(error)) return;
  const double sds = std::abs(error) / std::sqrt(variance);
  if (sds > kHuberSds) variance *= sds / kHuberSds;
  for (std::size_t i = 0; i < n; ++i) mean_[i] += gain_[i] * error / variance;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) covariance_[i * n + j] -= gain_[i] * gain_[j] / variance;
}

AdaptiveRegression::AdaptiveRegression(const std::vector<Term>& terms, Seconds evidence_half_life)
    : half_life_(evidence_half_life) {
  for (const double factor : kDriftFactors) members_.emplace_back(terms, factor);
}

void AdaptiveRegression::jump(WallTime at, Seconds elapsed) {
  for (RecursiveRegression& member : members_) member.jump(at, elapsed);
  for (double& evidence : log_evidence_) evidence *= std::exp2(-std::max(elapsed / half_life_, 0.0));
  at_ = at;
  started_ = true;
}

std::array<double, AdaptiveRegression::kDriftFactors.size()> AdaptiveRegression::weights() const {
  std::array<double, kDriftFactors.size()> weight{};
  const double most = *std::max_element(log_evidence_.begin(), log_evidence_.end());
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = std::exp(log_evidence_[i] - most);
  const double sum = std::accumulate(weight.begin(), weight.end(), 0.0);
  for (double& w : weight) w /= sum;
  return weight;
}

AdaptiveRegression::Mixed AdaptiveRegression::forecast(std::span<const double> x, double noise_sd, WallTime at) const {
  Mixed mixed;
  const auto weight = weights();
  double second = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Forecast one = members_[i].forecast(x, noise_sd, at);
    mixed.members[i] = one;
    mixed.mean += weight[i] * one.mean;
    second += weight[i] * (one.sd * one.sd + one.mean * one.mean);
  }
  mixed.sd = std::sqrt(std::max(second - mixed.mean * mixed.mean, 0.0));
  return mixed;
}

void AdaptiveRegression::learn(std::span<const double> x, double y, double noise_sd, WallTime at,
                               const Mixed* foretold) {
  const Seconds elapsed = started_ ? at - at_ : Seconds(0);
  const double kept = std::exp2(-std::max(elapsed / half_life_, 0.0));
  for (std::size_t i = 0; i < members_.size(); ++i) {
    log_evidence_[i] *= kept;
    if (foretold != nullptr && foretold->members[i].sd > 0) {
      const double z = (y - foretold->members[i].mean) / foretold->members[i].sd;
      const double density =
          -std::log(foretold->members[i].sd) - (kEvidenceDegrees + 1) / 2 * std::log1p(z * z / kEvidenceDegrees);
      log_evidence_[i] += kEvidenceShare * density;
    }
    members_[i].learn(x, y, noise_sd, at);
  }
  // Only differences matter; without this, long runs would lose them to rounding.
  const double most = *std::max_element(log_evidence_.begin(), log_evidence_.end());
  for (double& evidence : log_evidence_) evidence -= most;
  at_ = at;
  started_ = true;
}

}  // namespace flyball::facility
