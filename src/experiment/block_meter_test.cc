#include "experiment/block_meter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace flyball::experiment {
namespace {

using namespace literals;

/// A job of even steps at an even power, polled every half second; blocks of 40 s.
struct Rig {
  double step = 1.7;
  std::function<double(double)> power = [](double) { return 500.0; };
  std::function<void(Poll&)> bend;
  Schedule schedule = *Schedule::make({});

  std::vector<Block> run(double seconds) const {
    BlockMeter meter(schedule);
    double energy = 0;
    for (int i = 0; i * 0.5 <= seconds; ++i) {
      const double t = i * 0.5;
      const double steps = std::floor(t / step + 1e-9);
      Poll poll{Seconds(t), Joules(energy), Seconds(t), Seconds(steps * step), static_cast<std::uint64_t>(steps) * 100,
                true};
      if (bend) bend(poll);
      meter.add(poll);
      if (i % 80 == 0) meter.open(schedule.index(Seconds(t)), Seconds(t));
      for (int k = 0; k < 100; ++k) energy += power(t + k * 0.005) * 0.005;
    }
    return meter.blocks();
  }
};

TEST(BlockMeter, SumsAreOverWholeStepsAndCarryOverIsLeftOut) {
  const Rig rig;
  const auto blocks = rig.run(2000);
  ASSERT_EQ(blocks.size(), 51u);
  for (std::size_t i = 0; i < 50; ++i) {
    const Block& block = blocks[i];
    EXPECT_EQ(block.index, i);
    EXPECT_EQ(block.arm, rig.schedule.arm(i));
    EXPECT_NEAR(block.tokens / block.time.value(), 100 / 1.7, 1e-9);
    EXPECT_NEAR(block.energy / block.time / 500.0_W, 1, 1e-9);
    EXPECT_NEAR(block.coverage_fraction, 1, 1e-9);
    const double steps = block.time.value() / 1.7;
    EXPECT_NEAR(steps, std::round(steps), 1e-9);
    // 1 s settles, the step in hand ends, and one is cut off at the end: 37.3 s at least of 40, and never all.
    EXPECT_GT(block.time, 40_s - 1_s - 2 * 1.7_s);
    EXPECT_LE(block.time, 39_s);
  }
}

TEST(BlockMeter, PowerThatSwingsWithTheStepDoesNotBeatWithTheBlock) {
  Rig rig;
  rig.step = 10.62;
  rig.power = [](double t) { return 500 + 200 * std::sin(2 * 3.141592653589793 * t / 10.62); };
  const auto blocks = rig.run(4000);
  for (std::size_t i = 0; i + 1 < blocks.size(); ++i) {
    ASSERT_GT(blocks[i].time, 0_s);
    // Half a second of polls is 5 % of a step, over which the swing is interpolated.
    EXPECT_NEAR((blocks[i].energy / blocks[i].time).value(), 500, 1.5) << i;
  }
}

TEST(BlockMeter, WhatDoesNotCountSplitsABlock) {
  Rig rig;
  rig.bend = [](Poll& poll) {
    // An evaluation of ten seconds, in which no step ends and the power is another one.
    if (poll.at >= 50_s && poll.at < 60_s) poll.counts = false;
  };
  rig.power = [](double t) { return t >= 50 && t < 60 ? 100.0 : 500.0; };
  const auto blocks = rig.run(200);
  EXPECT_NEAR((blocks[1].energy / blocks[1].time).value(), 500, 1e-6);
  EXPECT_LT(blocks[1].time, 30_s);
  EXPECT_GT(blocks[1].time, 20_s);
}

TEST(BlockMeter, ABlockWithoutAWholeStepMeasuresNothing) {
  Rig rig;
  rig.step = 45;
  for (const Block& block : rig.run(400)) EXPECT_EQ(block.time, 0_s);
}

TEST(BlockMeter, AHoleShowsInTheCoverage) {
  Rig rig;
  rig.bend = [](Poll& poll) { poll.covered = poll.at < 60_s ? poll.at : std::max(60_s, poll.at - 10_s); };
  const auto blocks = rig.run(200);
  EXPECT_LT(blocks[1].coverage_fraction, 0.8);
  EXPECT_NEAR(blocks[2].coverage_fraction, 1, 1e-9);
}

TEST(BlockMeter, ARestartedJobNeverGivesNegativeTokens) {
  Rig rig;
  rig.bend = [](Poll& poll) {
    if (poll.at >= 100_s) poll.tokens -= 5000;
  };
  const auto blocks = rig.run(400);
  for (const Block& block : blocks) {
    EXPECT_GE(block.tokens, 0);
    if (block.time == 0_s) continue;
    EXPECT_NEAR(block.tokens / block.time.value(), 100 / 1.7, 1e-9);
  }
}

TEST(BlockMeter, IsBounded) {
  BlockMeter meter(*Schedule::make({}));
  for (std::size_t i = 0; i < BlockMeter::kMostBlocks + 100; ++i) {
    const double t = static_cast<double>(i) * 40;
    meter.add({Seconds(t), Joules(t), Seconds(t), Seconds(t), i, true});
    meter.open(i, Seconds(t));
  }
  EXPECT_EQ(meter.blocks().size(), BlockMeter::kMostBlocks + 1);
}

}  // namespace
}  // namespace flyball::experiment
