#include "experiment/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace flyball::experiment {
namespace {

using namespace literals;

Schedule make(const Schedule::Options& options) {
  const auto made = Schedule::make(options);
  EXPECT_TRUE(made) << made.error().message();
  return *made;
}

TEST(Schedule, OneBlockOfEachGroupIsOriginalAtAPlaceThatIsDrawn) {
  Schedule::Options options;
  std::vector<int> places(10);
  for (options.seed = 1; options.seed <= 200; ++options.seed) {
    const Schedule schedule = make(options);
    ASSERT_EQ(schedule.group(), 10u);
    for (std::uint64_t group = 0; group < 50; ++group) {
      int originals = 0;
      for (std::uint64_t i = 0; i < 10; ++i) {
        if (schedule.arm(group * 10 + i) != Arm::original) continue;
        ++originals;
        ++places[i];
      }
      ASSERT_EQ(originals, 1);
    }
  }
  for (const int count : places) EXPECT_NEAR(count, 1000, 150) << "five standard deviations";
}

TEST(Schedule, TheSeedSaysAll) {
  Schedule::Options options;
  const Schedule a = make(options), b = make(options);
  options.seed = 2;
  const Schedule other = make(options);
  int differs = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(a.arm(i), b.arm(i));
    differs += a.arm(i) != other.arm(i);
  }
  EXPECT_GT(differs, 100);
}

TEST(Schedule, ACanaryControlsInFewBlocks) {
  Schedule::Options options;
  options.rare = Arm::control;
  const Schedule schedule = make(options);
  int control = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) control += schedule.arm(i) == Arm::control;
  EXPECT_EQ(control, 100);
}

TEST(Schedule, SharesOutsideTheirRangeAreRefused) {
  for (const double share : {0.0, 0.019, 0.51, 1.0, -0.1, std::nan("")}) {
    Schedule::Options options;
    options.share = share;
    const auto made = Schedule::make(options);
    ASSERT_FALSE(made) << share;
    EXPECT_EQ(made.error().code, ErrorCode::input);
    EXPECT_FALSE(made.error().remedy.empty());
  }
}

TEST(Schedule, ARunWithoutRoomIsRefusedAndTold) {
  Schedule::Options options;
  options.horizon = 1200_s;
  const auto made = Schedule::make(options);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().remedy.find("run for"), std::string::npos);
  options.share = 0.5;
  EXPECT_TRUE(Schedule::make(options));
}

TEST(Schedule, BlocksAreWholeDecisionsAndLongAgainstTheStep) {
  for (const double step : {0.0, 0.25, 1.0, 10.62, 61.5, 300.0}) {
    Schedule::Options options;
    options.step = Seconds(step);
    const double block = make(options).block().value();
    EXPECT_NEAR(std::remainder(block, 10.0), 0, 1e-9) << step;
    EXPECT_GE(block, 8 * step) << step;
    EXPECT_LE(block, 8 * (step + 1) + 50) << step;
  }
}

TEST(Schedule, AShortRunGetsShorterBlocks) {
  Schedule::Options options;
  options.step = 61.5_s;
  options.horizon = 6 * 3600_s;
  const Schedule schedule = make(options);
  EXPECT_LT(schedule.block(), 500_s);
  EXPECT_GE(schedule.block(), 187.5_s);
}

TEST(Schedule, BlocksKeepOffWholeRatiosToKnownPeriods) {
  for (double period = 12; period < 400; period += 0.7) {
    Schedule::Options options;
    options.periods = {Seconds(period)};
    const double block = make(options).block().value();
    for (const double ratio : {block / period, period / block}) {
      if (std::round(ratio) < 1) continue;
      EXPECT_GE(std::fabs(ratio - std::round(ratio)), 0.1) << period << ' ' << block;
    }
  }
}

TEST(Schedule, TimeBecomesBlocks) {
  const Schedule schedule = make({});
  EXPECT_EQ(schedule.block(), 40_s);
  EXPECT_EQ(schedule.index(-1_s), 0u);
  EXPECT_EQ(schedule.index(0_s), 0u);
  EXPECT_EQ(schedule.index(39.9_s), 0u);
  EXPECT_EQ(schedule.index(40_s), 1u);
}

}  // namespace
}  // namespace flyball::experiment
