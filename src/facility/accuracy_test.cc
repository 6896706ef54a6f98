#include "facility/accuracy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "facility/conformal.h"

namespace flyball::facility {
namespace {

TEST(Accuracy, FollowsItsDefinitions) {
  const std::vector<Watts> measured = {Watts(100), Watts(200), Watts(0)},
                           predicted = {Watts(110), Watts(180), Watts(5)};
  const Accuracy made = accuracy(measured, predicted);
  EXPECT_EQ(made.intervals, 2u);
  EXPECT_DOUBLE_EQ(made.mape_fraction, 0.1);
  EXPECT_DOUBLE_EQ(made.nmbe_fraction, -10.0 / 300);
  EXPECT_DOUBLE_EQ(made.cvrmse_fraction, std::sqrt(250.0) / 150);
  EXPECT_TRUE(std::isnan(accuracy({}, {}).mape_fraction));
}

TEST(Accuracy, AutocorrelationLeavesFewerIndependentValues) {
  Random random(3);
  std::vector<double> values;
  double v = 0;
  for (int i = 0; i < 20'000; ++i) values.push_back(v = 0.6 * v + random.normal());
  EXPECT_NEAR(lag_one_correlation(values), 0.6, 0.02);
  EXPECT_DOUBLE_EQ(effective_count(100, 0.6), 25);
  EXPECT_EQ(lag_one_correlation(std::vector<double>{1, 2}), 0);
}

// The promise holds whatever the scores do, also when they grow threefold on the way.
TEST(AdaptiveInterval, KeepsItsCoverageWhileTheScoresDrift) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    AdaptiveInterval interval(0.9, 0.05);
    for (int i = 0; i < 3000; ++i) interval.observe(std::abs(random.normal()) * (1 + 2.0 * i / 3000));
    EXPECT_NEAR(interval.coverage_fraction(), 0.9, 0.02) << "seed " << seed;
  }
  AdaptiveInterval none;
  none.observe(std::nan(""));
  EXPECT_EQ(none.observed(), 0u);
  EXPECT_TRUE(std::isnan(none.coverage_fraction()));
}

}  // namespace
}  // namespace flyball::facility
