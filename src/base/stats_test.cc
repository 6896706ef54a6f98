#include "base/stats.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "base/random.h"

namespace flyball {
namespace {

const std::vector<double> kValues = {2, 4, 4, 4, 5, 5, 7, 9};

TEST(RunningStats, MatchesTheDefinition) {
  RunningStats stats;
  EXPECT_EQ(stats.variance(), 0);
  for (const double v : kValues) stats.add(v);
  EXPECT_EQ(stats.count(), 8U);
  EXPECT_DOUBLE_EQ(stats.mean(), 5);
  EXPECT_DOUBLE_EQ(stats.variance(), 32.0 / 7);
  EXPECT_DOUBLE_EQ(stats.sd(), std::sqrt(32.0 / 7));
}

TEST(RunningStats, KeepsSmallSpreadsOnLargeMeans) {
  RunningStats stats;
  for (const double v : {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16}) stats.add(v);
  EXPECT_DOUBLE_EQ(stats.variance(), 30);
}

TEST(Quantile, Type7) {
  const std::vector<double> values = {15, 20, 35, 40, 50};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 15);
  EXPECT_DOUBLE_EQ(quantile(values, 0.4), 29);
  EXPECT_DOUBLE_EQ(quantile(values, 0.05), 16);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 50);
  EXPECT_DOUBLE_EQ(median(kValues), 4.5);
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
  EXPECT_DOUBLE_EQ(quantile(std::vector<double>{3}, 0.9), 3);
  EXPECT_DOUBLE_EQ(quantile(values, 7), 50) << "clamped";
}

TEST(Correlation, KnownValues) {
  const std::vector<double> a = {1, 2, 3, 4, 5};
  const std::vector<double> b = {2, 1, 4, 3, 5};
  EXPECT_NEAR(correlation(a, b), 0.8, 1e-12);
  EXPECT_NEAR(correlation(a, a), 1, 1e-12);
  EXPECT_TRUE(std::isnan(correlation(a, std::vector<double>(5, 1.0))));
  EXPECT_TRUE(std::isnan(correlation(std::vector<double>{1}, std::vector<double>{1})));
}

TEST(Quantiles, OfTheTables) {
  EXPECT_NEAR(student_t(0.95, 9), 2.262157, 1e-6);
  EXPECT_NEAR(student_t(0.90, 1), 6.313752, 1e-6);
  EXPECT_NEAR(student_t(0.95, 1e6), 1.959966, 1e-5);
  EXPECT_NEAR(normal_quantile(0.975), 1.959964, 1e-6);
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-12);
}

TEST(MeanWithInterval, KnownValue) {
  const Estimate e = mean_with_interval(kValues);
  EXPECT_DOUBLE_EQ(e.value, 5);
  EXPECT_NEAR(e.half_width(), 2.364624 * std::sqrt(32.0 / 7 / 8), 1e-5);
  EXPECT_EQ(e.level, 0.95);
  EXPECT_TRUE(std::isinf(mean_with_interval(std::vector<double>{1}).high));
}

TEST(MeanWithInterval, CoversAsOftenAsItSays) {
  Random random(11);
  int covered = 0;
  constexpr int kTrials = 4000;
  for (int i = 0; i < kTrials; ++i) {
    std::vector<double> values(6);
    for (double& v : values) v = 10 + 3 * random.normal();
    const Estimate e = mean_with_interval(values, 0.9);
    covered += e.low <= 10 && 10 <= e.high ? 1 : 0;
  }
  EXPECT_NEAR(covered / static_cast<double>(kTrials), 0.9, 0.02);
}

TEST(Isotonic, KnownValues) {
  EXPECT_EQ(isotonic_non_decreasing(std::vector<double>{1, 3, 2, 4}), (std::vector<double>{1, 2.5, 2.5, 4}));
  EXPECT_EQ(isotonic_non_decreasing(std::vector<double>{3, 2, 1}), (std::vector<double>{2, 2, 2}));
  EXPECT_EQ(isotonic_non_decreasing(std::vector<double>{4, 1}, std::vector<double>{1, 3}),
            (std::vector<double>{1.75, 1.75}));
  EXPECT_TRUE(isotonic_non_decreasing({}).empty());
}

TEST(Isotonic, IsMonotoneKeepsTheSumAndIsAFixedPoint) {
  EXPECT_TRUE(rc::check([](const std::vector<std::int16_t>& raw) {
    const std::vector<double> values(raw.begin(), raw.end());
    const std::vector<double> fitted = isotonic_non_decreasing(values);
    RC_ASSERT(fitted.size() == values.size());
    double difference = 0;
    for (std::size_t i = 0; i < fitted.size(); ++i) {
      difference += fitted[i] - values[i];
      if (i > 0) RC_ASSERT(fitted[i] >= fitted[i - 1]);  // RC_ASSERT does not stop at the left side of ||
    }
    RC_ASSERT(std::fabs(difference) < 1e-6);
    const std::vector<double> again = isotonic_non_decreasing(fitted);
    for (std::size_t i = 0; i < fitted.size(); ++i) RC_ASSERT(std::fabs(again[i] - fitted[i]) < 1e-9);
  }));
}

}  // namespace
}  // namespace flyball
