#include "curve/curve.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "base/random.h"

namespace flyball::curve {
namespace {

using namespace literals;

std::vector<Point> smooth_points() {
  // time = 1 + (150 / P)^3 and power = P: a known curve whose shape the interpolation must follow between knots.
  std::vector<Point> points;
  for (int watts = 100; watts <= 250; watts += 25) {
    points.push_back({Milliwatts(watts * 1000), Seconds(1 + std::pow(150.0 / watts, 3)), Watts(watts)});
  }
  return points;
}

TEST(Curve, FollowsAKnownCurveBetweenItsKnots) {
  const auto curve = Curve::through(smooth_points());
  ASSERT_TRUE(curve) << curve.error().message();
  for (double watts = 100; watts <= 250; watts += 1) {
    const double time = 1 + std::pow(150.0 / watts, 3);
    EXPECT_NEAR(curve->time(Watts(watts)).value() / time, 1, 0.01) << watts;
    EXPECT_NEAR(curve->power(Watts(watts)).value(), watts, 1e-9);
  }
  EXPECT_DOUBLE_EQ(curve->time(100_W).value(), 1 + std::pow(1.5, 3));
  EXPECT_DOUBLE_EQ(curve->energy(100_W).value(), 100 * (1 + std::pow(1.5, 3)));
  EXPECT_DOUBLE_EQ(curve->speed_fraction(250_W), 1);
}

TEST(Curve, HoldsItsEndValuesOutside) {
  const auto curve = Curve::through(smooth_points());
  ASSERT_TRUE(curve);
  EXPECT_EQ(curve->time(20_W), curve->time(100_W));
  EXPECT_EQ(curve->power(900_W), curve->power(250_W));
}

TEST(Curve, OnePointIsAConstant) {
  const auto curve = Curve::monotone(std::vector<Point>{{200'000_mW, 2_s, 150_W}});
  ASSERT_TRUE(curve);
  EXPECT_EQ(curve->time(170_W), 2_s);
  EXPECT_EQ(curve->power(170_W), 150_W);
}

TEST(Curve, RefusesWhatCannotBeACurve) {
  const auto why = [](std::vector<Point> points) {
    const auto curve = Curve::monotone(points);
    return curve ? std::string() : curve.error().message();
  };
  EXPECT_NE(why({}), "");
  EXPECT_NE(why({{200'000_mW, 2_s, 150_W}, {200'000_mW, 3_s, 150_W}}).find("twice"), std::string::npos);
  EXPECT_NE(why({{200'000_mW, 0_s, 150_W}}).find("time"), std::string::npos);
  EXPECT_NE(why({{200'000_mW, Seconds(std::nan("")), 150_W}}).find("time"), std::string::npos);
  EXPECT_NE(why({{200'000_mW, 2_s, Watts(-1)}}).find("power"), std::string::npos);
  EXPECT_NE(why({{Milliwatts(0), 2_s, 150_W}}).find("limit"), std::string::npos);
}

TEST(Curve, MonotoneNeverRewardsABumpInTheMeasurement) {
  EXPECT_TRUE(rc::check("time falls and power rises with the limit, between knots too", [](std::uint64_t seed) {
    Random random(seed);
    std::vector<Point> points;
    const auto count = 1 + random.below(8);
    for (std::uint64_t i = 0; i < count; ++i) {
      points.push_back({Milliwatts(static_cast<std::int64_t>(100'000 + 25'000 * i)), Seconds(random.uniform(1, 3)),
                        Watts(random.uniform(50, 300))});
    }
    const auto curve = Curve::monotone(points);
    RC_ASSERT(curve.has_value());
    for (double watts = 90; watts < 310; watts += 0.7) {
      RC_ASSERT(curve->time(Watts(watts + 0.7)).value() <= curve->time(Watts(watts)).value() * (1 + 1e-12));
      RC_ASSERT(curve->power(Watts(watts + 0.7)).value() >= curve->power(Watts(watts)).value() * (1 - 1e-12));
    }
  }));
}

TEST(MonotoneCubic, KnotsMustAscendAndBeFinite) {
  EXPECT_FALSE(MonotoneCubic::through(std::vector<double>{}, std::vector<double>{}));
  EXPECT_FALSE(MonotoneCubic::through(std::vector<double>{1, 1}, std::vector<double>{1, 2}));
  EXPECT_FALSE(MonotoneCubic::through(std::vector<double>{1, 2}, std::vector<double>{1, std::nan("")}));
}

TEST(MonotoneCubic, MatchesValuesComputedByHand) {
  // x = 0, 1, 3 and y = 0, 1, 2: pieces 1 and 1/2; inner slope (4 + 5) / (4/0.5 ... weights 2·2+1 = 5 and 2+2·1 = 4).
  const auto cubic = MonotoneCubic::through(std::vector<double>{0, 1, 3}, std::vector<double>{0, 1, 2});
  ASSERT_TRUE(cubic);
  const double inner = 9 / (5 / 1.0 + 4 / 0.5);
  const double first = ((2 * 1 + 2) * 1.0 - 1 * 0.5) / 3;
  EXPECT_NEAR((*cubic)(0.5), 0.5 * 0 + 0.5 * 1 + 0.125 * (first - inner), 1e-12);
}

}  // namespace
}  // namespace flyball::curve
