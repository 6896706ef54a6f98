#include "facility/recursive.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "base/stats.h"

namespace flyball::facility {
namespace {

constexpr double kHour = 3600;
WallTime hour(int i) { return WallTime(1'700'000'000'000'000'000) + Seconds(kHour * i); }

TEST(RecursiveRegression, EqualsRidgeRegressionWhereNothingDrifts) {
  // Two steady terms and noise of 1: posterior of a + b x with priors 0 ± 10 by the normal equations.
  RecursiveRegression model({{10, Seconds(0)}, {10, Seconds(0)}});
  Random random(1);
  double s = 0, sx = 0, sxx = 0, sy = 0, sxy = 0;
  for (int i = 0; i < 50; ++i) {
    const double x = random.uniform(-1, 1), y = 3 + 2 * x + random.normal();
    const double row[] = {1, x};
    if (std::abs(y - 3 - 2 * x) > 2) continue;  // none that would be counted less
    model.learn(row, y, 1, hour(i));
    s += 1, sx += x, sxx += x * x, sy += y, sxy += x * y;
  }
  const double a = s + 0.01, d = sxx + 0.01, det = a * d - sx * sx;
  EXPECT_NEAR(model.coefficients()[0], (d * sy - sx * sxy) / det, 0.02);
  EXPECT_NEAR(model.coefficients()[1], (a * sxy - sx * sy) / det, 0.02);
  EXPECT_NEAR(model.sd(0), std::sqrt(d / det), 0.01);
}

TEST(RecursiveRegression, ForgetsWhatDriftsAndGrowsUnsure) {
  RecursiveRegression model({{1, Seconds(10 * kHour)}});
  const double one[] = {1};
  for (int i = 0; i < 20; ++i) model.learn(one, 0.8, 0.1, hour(i));
  const Forecast soon = model.forecast(one, 0.1, hour(20)), late = model.forecast(one, 0.1, hour(500));
  EXPECT_NEAR(soon.mean, 0.72, 0.05);
  EXPECT_NEAR(late.mean, 0, 1e-9);
  EXPECT_NEAR(late.sd, std::hypot(1, 0.1), 1e-6);
  EXPECT_LT(soon.sd, 0.5 * late.sd);
}

TEST(RecursiveRegression, OneWildObservationMovesLittle) {
  RecursiveRegression model({{10, Seconds(0)}});
  const double one[] = {1};
  for (int i = 0; i < 30; ++i) model.learn(one, 5, 1, hour(i));
  const double before = model.coefficients()[0];
  model.learn(one, 1e6, 1, hour(30));
  EXPECT_LT(model.coefficients()[0] - before, 0.2);
  model.learn(one, std::nan(""), 1, hour(31));
  EXPECT_TRUE(std::isfinite(model.coefficients()[0]));
}

TEST(AdaptiveRegression, ForgetsFasterWhereThePlantMoves) {
  const std::vector<Term> terms = {{1, Seconds(0)}, {0.1, Seconds(20 * kHour)}};
  const auto weight_of_fastest = [&](double drift) {
    AdaptiveRegression model(terms, Seconds(200 * kHour));
    Random random(7);
    double level = 0;
    for (int i = 0; i < 800; ++i) {
      level = level * std::exp(-1.0 / 20) + drift * random.normal();
      const double row[] = {1, 1};
      const auto foretold = model.forecast(row, 0.05, hour(i));
      model.learn(row, 1 + level + 0.05 * random.normal(), 0.05, hour(i), &foretold);
    }
    const auto weight = model.weights();
    EXPECT_NEAR(weight[0] + weight[1] + weight[2], 1, 1e-12);
    return weight[2] - weight[0];
  };
  EXPECT_GT(weight_of_fastest(0.2), 0.5);
  EXPECT_LT(weight_of_fastest(0.0), -0.2);
}

}  // namespace
}  // namespace flyball::facility
