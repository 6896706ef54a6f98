#include "experiment/effect.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/random.h"

namespace flyball::experiment {
namespace {

/// Variance of a block's noise over that of the random walk's step: from drift that is all to none.
constexpr std::array kRatios = {1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4, 1e6};

/// W − W (W + λ D'D)⁻¹ W, with D the differences of neighbours: what is left of a series when the best smooth drift is
/// taken away. Tridiagonal, so that all is linear in the number of blocks.
class DriftRemoval {
 public:
  DriftRemoval(const std::vector<double>& weight, double ratio) : weight_(weight), ratio_(ratio) {
    const std::size_t n = weight.size();
    pivot_.resize(n);
    inverse_diagonal_.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double neighbours = (i > 0 ? 1 : 0) + (i + 1 < n ? 1 : 0);
      pivot_[i] = weight[i] + ratio * neighbours - (i > 0 ? ratio * ratio / pivot_[i - 1] : 0);
      // Cancellation leaves next to nothing where drift is taken for constant and a block has no weight.
      pivot_[i] = std::max(pivot_[i], 1e-9);
    }
    for (std::size_t i = n; i-- > 0;) {
      const double next = i + 1 < n ? inverse_diagonal_[i + 1] * carry(i) * carry(i) : 0;
      inverse_diagonal_[i] = 1 / pivot_[i] + next;
    }
  }

  std::vector<double> apply(const std::vector<double>& x) const {
    const std::size_t n = x.size();
    std::vector<double> drift(n);
    for (std::size_t i = 0; i < n; ++i) {
      drift[i] = weight_[i] * x[i] + (i > 0 ? ratio_ * drift[i - 1] / pivot_[i - 1] : 0);
    }
    for (std::size_t i = n; i-- > 0;) {
      drift[i] = drift[i] / pivot_[i] + (i + 1 < n ? carry(i) * drift[i + 1] : 0);
    }
    std::vector<double> left(n);
    for (std::size_t i = 0; i < n; ++i) left[i] = weight_[i] * (x[i] - drift[i]);
    return left;
  }
  /// x'Mx for x that is 1 at the places given (ascending), 0 elsewhere.
  double square(const std::vector<std::size_t>& places) const {
    double sum = 0, before = 0;
    std::size_t at = 0;
    for (const std::size_t place : places) {
      for (; at < place; ++at) before *= carry(at);
      const double w = weight_[place];
      sum += w - w * inverse_diagonal_[place] * (w + 2 * before);
      before += w;
    }
    return sum;
  }
  double log_determinant() const {
    double sum = 0;
    for (const double p : pivot_) sum += std::log(p);
    return sum;
  }

 private:
  double carry(std::size_t i) const { return ratio_ / pivot_[i]; }
  const std::vector<double>& weight_;
  double ratio_;
  std::vector<double> pivot_, inverse_diagonal_;
};

double sum_at(const std::vector<double>& values, const std::vector<std::size_t>& places) {
  double sum = 0;
  for (const std::size_t i : places) sum += values[i];
  return sum;
}

std::vector<std::size_t> places_of(const std::vector<bool>& rare) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < rare.size(); ++i) {
    if (rare[i]) places.push_back(i);
  }
  return places;
}

/// One place a group, at random; groups that are cut at either end may have theirs outside, as in the experiment.
std::vector<std::size_t> draw(const Values& values, Random& random) {
  std::vector<std::size_t> places;
  const std::uint64_t end = values.first_index + values.x.size();
  for (std::uint64_t g = values.first_index / values.group; g * values.group < end; ++g) {
    const std::uint64_t place = g * values.group + random.below(values.group);
    if (place >= values.first_index && place < end)
      places.push_back(static_cast<std::size_t>(place - values.first_index));
  }
  return places;
}

struct Fit {
  double value = 0;
  double square = 0;  ///< x'Mx
  std::vector<double> left;
};

/// The ratio of noise to drift with the highest restricted likelihood, and the estimate with it.
std::optional<std::pair<DriftRemoval, Fit>> fit(const Values& values, const std::vector<std::size_t>& places) {
  const double measured =
      static_cast<double>(std::count_if(values.weight.begin(), values.weight.end(), [](double w) { return w > 0; }));
  std::optional<std::pair<DriftRemoval, Fit>> best;
  double best_deviance = 0;
  for (const double ratio : kRatios) {
    DriftRemoval removal(values.weight, ratio);
    Fit made;
    made.left = removal.apply(values.x);
    made.square = removal.square(places);
    if (!(made.square > 1e-9)) continue;
    made.value = sum_at(made.left, places) / made.square;
    double residual = 0;
    for (std::size_t i = 0; i < values.x.size(); ++i) residual += values.x[i] * made.left[i];
    residual -= made.value * made.value * made.square;
    const double deviance = (measured - 2) * std::log(std::max(residual, 1e-300)) + removal.log_determinant() -
                            static_cast<double>(values.x.size() - 1) * std::log(ratio) + std::log(made.square);
    if (best && deviance >= best_deviance) continue;
    best_deviance = deviance;
    best.emplace(std::move(removal), std::move(made));
  }
  return best;
}

}  // namespace

std::optional<LogEffect> log_effect(const Values& given, double level, int permutations, std::uint64_t seed) {
  Values values = given;
  const std::vector<std::size_t> places = places_of(values.rare);
  double total = 0, mean = 0, measured = 0;
  for (std::size_t i = 0; i < values.x.size(); ++i) {
    if (values.weight[i] <= 0) continue;
    total += values.weight[i], mean += values.weight[i] * values.x[i], measured += 1;
  }
  const double on_rare = sum_at(values.weight, places);
  if (measured < 4 || on_rare <= 0 || on_rare >= total) return std::nullopt;
  // Weights with a mean of 1, and values around 0, where nothing cancels.
  mean /= total;
  for (std::size_t i = 0; i < values.x.size(); ++i) {
    values.x[i] = values.weight[i] > 0 ? values.x[i] - mean : 0;
    values.weight[i] *= measured / total;
  }
  const auto fitted = fit(values, places);
  if (!fitted) return std::nullopt;
  const auto& [removal, estimate] = *fitted;

  // With another draw the estimate would be a − δ·b under the effect δ, where a is that of the series as it is and
  // b·(x'Mx) is what the draw shares with the true one. δ is rejected where value − δ lies too far out among them, so
  // that each draw gives the δ at which both are level, and the interval's ends are quantiles of those.
  std::vector<double> level_at;
  level_at.reserve(static_cast<std::size_t>(permutations));
  Random random(seed);
  const std::vector<double> shared = removal.apply([&] {
    std::vector<double> x(values.x.size(), 0.0);
    for (const std::size_t i : places) x[i] = 1;
    return x;
  }());
  int beyond = 0;
  for (int k = 0; k < permutations; ++k) {
    const std::vector<std::size_t> other = draw(values, random);
    const double square = removal.square(other);
    if (!(square > 1e-9)) continue;
    const double a = sum_at(estimate.left, other) / square;
    const double b = sum_at(shared, other) / square;
    if (std::fabs(a) >= std::fabs(estimate.value)) ++beyond;
    if (b < 1 - 1e-9) level_at.push_back((estimate.value - a) / (1 - b));
  }
  if (level_at.size() < 20) return std::nullopt;
  LogEffect effect;
  effect.value = estimate.value;
  // Neither few draws nor a design with few outcomes can be surer than one in their number.
  const double outcomes = std::pow(static_cast<double>(values.group), static_cast<double>(places.size()));
  const double tail = (1 - level) / 2;
  if (tail * std::min(outcomes, 1.0 + permutations) >= 1) {
    effect.low = quantile(level_at, tail);
    effect.high = quantile(level_at, 1 - tail);
  } else {
    effect.low = -std::numeric_limits<double>::infinity();
    effect.high = std::numeric_limits<double>::infinity();
  }
  effect.p_value = (1.0 + beyond) / (1.0 + permutations);
  return effect;
}

}  // namespace flyball::experiment
