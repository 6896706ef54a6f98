#include "curve/posterior.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "curve/family.h"

namespace flyball::curve {
namespace {

/// A board that draws 200 W when nothing limits it, and slows the more the lower the limit.
Point binding_point(int watts, double noise = 0) {
  const double log_slow = 0.18 * std::log1p(std::exp(-std::log(watts / 200.0) / 0.15));
  return {Milliwatts(watts * 1000), Seconds(10 * std::exp(log_slow) * (1 + noise)), Watts(std::min(watts, 200))};
}

std::vector<Point> points(std::initializer_list<int> watts) {
  std::vector<Point> made;
  for (const int w : watts) made.push_back(binding_point(w));
  return made;
}

TEST(TimePosterior, TellsALimitBetweenTwoThatWereMeasured) {
  const auto posterior = TimePosterior::fit(points({100, 150, 200, 250}));
  ASSERT_TRUE(posterior);
  for (const int w : {125, 175, 225}) {
    const Estimate time = posterior->at(Watts(w));
    const double truth = binding_point(w).time.value();
    EXPECT_NEAR(time.value, truth, 0.01 * truth) << w;
    EXPECT_LT(time.low, truth) << w;
    EXPECT_GT(time.high, truth) << w;
  }
}

TEST(TimePosterior, IsUnsureWhereNothingWasMeasured) {
  const auto posterior = TimePosterior::fit(points({200, 225, 250}));
  ASSERT_TRUE(posterior);
  const double near = posterior->at(Watts(210)).half_width();
  const double far = posterior->at(Watts(120)).half_width();
  EXPECT_GT(far, 5 * near);
}

TEST(TimePosterior, HasTheUnitOfWorkOfItsPoints) {
  auto hours = points({100, 150, 200, 250});
  for (Point& p : hours) p.time *= 3600;
  const auto a = TimePosterior::fit(points({100, 150, 200, 250})), b = TimePosterior::fit(hours);
  EXPECT_NEAR(b->at(Watts(130)).value / a->at(Watts(130)).value, 3600, 1);
}

TEST(TimePosterior, IntervalsCoverAndAreNoWiderThanTheNoiseAsks) {
  constexpr double kNoise = 0.01;
  Random random(7);
  int covered = 0, asked = 0;
  double width = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<Point> noisy;
    for (const int w : {100, 150, 200, 250}) noisy.push_back(binding_point(w, kNoise * random.normal()));
    const auto posterior = TimePosterior::fit(noisy);
    for (const int w : {175, 225}) {
      const Estimate time = posterior->at(Watts(w));
      const double seen = binding_point(w, kNoise * random.normal()).time.value();
      ++asked;
      width += time.half_width() / time.value;
      if (time.low <= seen && seen <= time.high) ++covered;
    }
  }
  EXPECT_GT(covered, 0.83 * asked);
  EXPECT_LT(width / asked, 5 * kNoise);
}

/// Curves whose times also go up and down by 5 % over a short span of the limit, each by its own phase.
std::vector<Point> bumpy(double phase, std::initializer_list<int> watts) {
  std::vector<Point> made = points(watts);
  for (Point& p : made) p.time *= 1 + 0.05 * std::sin(40 * std::log(p.limit.watts().value() / 100) + phase);
  return made;
}

TEST(TimePosterior, LearnsFromOtherJobsHowUnrulyTheBoardIs) {
  std::vector<double> unruly(board_shapes().size()), smooth(board_shapes().size());
  for (int job = 0; job < 12; ++job) {
    const auto add = [&](std::vector<double>& to, const std::vector<Point>& curve) {
      const auto evidence = TimePosterior::fit(curve)->log_evidence();
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += evidence[i];
    };
    add(unruly, bumpy(job, {100, 115, 135, 150, 170, 185, 200, 250}));
    add(smooth, points({100, 115, 135, 150, 170, 185, 200, 250}));
  }
  auto posterior = *TimePosterior::fit(points({100, 150, 200, 250}));
  posterior.learn_board(smooth);
  const double sure = posterior.at(Watts(125)).half_width();
  posterior.learn_board(unruly);
  EXPECT_GT(posterior.at(Watts(125)).half_width(), 1.5 * sure);
}

TEST(TimePosterior, RefusesWhatIsNoCurve) {
  EXPECT_FALSE(TimePosterior::fit({}));
  const std::vector<Point> twice = {binding_point(100), binding_point(100)};
  EXPECT_FALSE(TimePosterior::fit(twice));
}

TEST(Family, ALimitThatDoesNotBindCostsNothing) {
  for (const Family& family : time_families()) {
    EXPECT_NEAR(family.mean_at(2) - family.mean_at(3), 0, 0.002);
    EXPECT_GT(family.mean_at(-0.7), 0.1);
  }
  EXPECT_NEAR(power_family().mean_at(-0.5) - power_family().mean_at(-0.4), -0.095, 0.01);
}

}  // namespace
}  // namespace flyball::curve
