#include "facility/losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace flyball::facility {
namespace {

constexpr std::size_t kFewest = 10;
constexpr double kMostGain = 0.02;  // two meters of class 1, each 1 % off
constexpr double kMostLoss = 0.2;   // at full load
constexpr double kLeastMove = 0.1;  // of the rating

using Row = std::array<double, 3>;

/// Least squares over the columns that `on` names; empty where they cannot be told apart.
bool solve(const std::array<Row, 3>& normal, const Row& right, unsigned on, Row& out) {
  std::array<std::array<double, 4>, 3> a{};
  std::array<std::size_t, 3> used{};
  std::size_t n = 0;
  for (std::size_t i = 0; i < 3; ++i)
    if ((on >> i & 1U) != 0) used[n++] = i;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) a[i][j] = normal[used[i]][used[j]];
    a[i][3] = right[used[i]];
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!(a[i][i] > 1e-10 * normal[used[i]][used[i]])) return false;
    for (std::size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const double factor = a[r][i] / a[i][i];
      for (std::size_t j = i; j < 4; ++j) a[r][j] -= factor * a[i][j];
    }
  }
  out = {};
  for (std::size_t i = 0; i < n; ++i) out[used[i]] = a[i][3] / a[i][i];
  return true;
}

}  // namespace

Watts StageLoss::of(Watts output) const {
  const double share = output / rating;
  return idle + output * proportional_fraction + rating * (square_fraction * share * share);
}

Result<StageFit> fit_stage(std::span<const StageSample> samples, Watts rating) {
  if (!(rating > Watts(0))) return fail(ErrorCode::input, "the rating of the stage is not stated");
  StageFit made;
  made.loss.rating = rating;
  std::array<Row, 3> normal{};
  Row right{};
  double squares = 0, input = 0, output = 0;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const StageSample& sample : samples) {
    if (sample.on_battery) {
      ++made.on_battery;
      continue;
    }
    ++made.used;
    const double u = sample.output / rating, loss = (sample.input - sample.output) / rating;
    const Row row = {1, u, u * u};
    for (std::size_t i = 0; i < 3; ++i) {
      right[i] += row[i] * loss;
      for (std::size_t j = 0; j < 3; ++j) normal[i][j] += row[i] * row[j];
    }
    squares += loss * loss;
    input += sample.input / rating;
    output += u;
    low = std::min(low, u);
    high = std::max(high, u);
  }
  if (made.used < kFewest)
    return fail(ErrorCode::input, fmt::format("{} samples not on battery; at least {}", made.used, kFewest));
  if (output > input * (1 + kMostGain))
    return fail(ErrorCode::input,
                fmt::format("more comes out than goes in: {} of the input", format_percent(output / input, 1)), {},
                "check scale, phases and clocks of the two meters");
  // Of all ways to hold some of the three at 0, the best that keeps the others positive.
  double best = std::numeric_limits<double>::infinity();
  Row coefficient{};
  for (unsigned on = 0; on < 8; ++on) {
    Row tried;
    if (!solve(normal, right, on, tried) || *std::min_element(tried.begin(), tried.end()) < 0) continue;
    double error = squares;
    for (std::size_t i = 0; i < 3; ++i) {
      error -= 2 * tried[i] * right[i];
      for (std::size_t j = 0; j < 3; ++j) error += tried[i] * normal[i][j] * tried[j];
    }
    if (error < best * (1 - 1e-9)) {
      best = error;
      coefficient = tried;
    }
  }
  made.loss.idle = rating * coefficient[0];
  made.loss.proportional_fraction = coefficient[1];
  made.loss.square_fraction = coefficient[2];
  made.rms_error = rating * std::sqrt(std::max(best, 0.0) / static_cast<double>(made.used));
  if (made.loss.of(rating) > rating * kMostLoss)
    return fail(ErrorCode::input,
                fmt::format("a loss of {} at full load; no stage loses more than {}",
                            format_percent(made.loss.of(rating) / rating, 1), format_percent(kMostLoss, 0)),
                {}, "the meters do not belong to one stage, or something between them is not metered");
  if (high - low < kLeastMove)
    made.note = fmt::format("the load moved by {} of the rating: away from it the loss is not known",
                            format_percent(high - low, 1));
  return made;
}

}  // namespace flyball::facility
