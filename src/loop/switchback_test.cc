// The loop with blocks at the limits found: what is written when, what the policy sees, and what comes out.

#include "loop/switchback.h"

#include <gtest/gtest.h>

#include <cmath>

#include "loop/fakes_test.h"
#include "loop/loop.h"

namespace flyball::loop {
namespace {

using namespace literals;
using testing::FakeAuthority;
using testing::FakeDriver;
using testing::FakeProgress;
using testing::Scripted;

constexpr Milliwatts kFound{250'000};
constexpr Milliwatts kWish{200'000};
/// The fake boards draw 0.9 of their limit and the job's pace is even: a fifth less energy per token, nothing lost.
constexpr double kSaved = 0.2;

struct Rig {
  VirtualClock clock;
  FakeDriver driver{clock, 2};
  FakeAuthority authority{driver};
  FakeProgress progress{clock, 1.3_s};
  Scripted policy;
  Options options;
  std::vector<DecisionRecord> records;
  std::optional<SwitchbackResult> result;

  explicit Rig(double share = 0.1, experiment::Arm rare = experiment::Arm::original) {
    options.switchback = SwitchbackOptions{.share = share, .rare = rare};
    policy.wish = [](const Observation& o) {
      Proposal proposal;
      for (const GpuObservation& gpu : o.gpus) proposal.gpus.push_back({gpu.device, kWish, {}});
      return proposal;
    };
  }
  void run(Seconds length, const std::function<void()>& before_tick = {}) {
    options.run_length = length;
    Loop loop(driver, clock, authority, progress, policy, options);
    ASSERT_TRUE(loop.start());
    for (int i = 0; i < static_cast<int>(std::lround(length / options.poll)); ++i) {
      clock.advance(options.poll);
      if (before_tick) before_tick();
      if (auto record = loop.tick()) records.push_back(std::move(*record));
    }
    result = loop.switchback();
    ASSERT_TRUE(loop.finish());
  }
};

TEST(SwitchbackLoop, MeasuresWhatControlSaves) {
  Rig rig;
  rig.run(7200_s);
  ASSERT_TRUE(rig.result && rig.result->saved_fraction && rig.result->loss_fraction);
  EXPECT_EQ(rig.result->verdict, "saves");
  EXPECT_NEAR(rig.result->saved_fraction->value, kSaved, 1e-3);
  EXPECT_NEAR(rig.result->loss_fraction->value, 0, 1e-3);
  EXPECT_NEAR(rig.result->control_fraction, 0.9, 0.02);
  EXPECT_NEAR(rig.result->saved_run_fraction->value, kSaved * rig.result->control_fraction, 1e-3);
  EXPECT_EQ(rig.result->block, 40_s);
  EXPECT_GE(rig.result->blocks_original, 16u);
}

TEST(SwitchbackLoop, ThePolicySeesItsOwnIntervalsAndIsToldOfBaselines) {
  Rig rig;
  rig.run(7200_s);
  ASSERT_GT(rig.policy.seen.size(), 500u);
  for (std::size_t i = 2; i < rig.policy.seen.size(); ++i) {
    EXPECT_NEAR((*rig.policy.seen[i].gpus[0].power).value(), 180, 1e-6) << "a whole interval at the wish";
  }
  EXPECT_GT(rig.policy.baselines.size(), 40u);
  for (const Observation& o : rig.policy.baselines) {
    EXPECT_NEAR((*o.gpus[0].power).value(), 225, 1e-6) << "a whole interval at the limit found";
    EXPECT_EQ(*o.gpus[0].limit_enforced, kFound);
  }
  // Whatever is neither is the first interval after a switch: at most two for each block at the limits found.
  EXPECT_LE(rig.records.size() - rig.policy.seen.size() - rig.policy.baselines.size(), 2u * 18);
}

TEST(SwitchbackLoop, RecordsSayWhoseLimitsHeld) {
  Rig rig;
  rig.run(3600_s);
  for (std::size_t i = 2; i < rig.records.size(); ++i) {
    EXPECT_EQ(rig.records[i].control, *rig.records[i].observation.gpus[0].limit_enforced == kWish) << i;
  }
}

TEST(SwitchbackLoop, LocksEndInBlocksAtTheLimitsFoundAndComeBackAfterThem) {
  Rig rig;
  const ClockRange range{Hertz(0.3e9), Hertz(1.2e9)};
  rig.policy.wish = [&](const Observation& o) {
    Proposal proposal;
    for (const GpuObservation& gpu : o.gpus) proposal.gpus.push_back({gpu.device, {}, range});
    return proposal;
  };
  rig.run(3600_s);
  int original = 0;
  for (std::size_t i = 2; i < rig.records.size(); ++i) {
    const double clock = (*rig.records[i].observation.gpus[1].sm_clock).value();
    // A mean over an interval has half a poll of the clock before it.
    EXPECT_NEAR(clock, rig.records[i].control ? 1.2e9 : 1.4e9, 1e7) << i;
    original += rig.records[i].control ? 0 : 1;
  }
  EXPECT_GT(original, 15);
}

TEST(SwitchbackLoop, NothingAgainstNothingIsNoDifference) {
  Rig rig;
  rig.policy.wish = [](const Observation&) { return Proposal{}; };
  rig.run(7200_s);
  ASSERT_TRUE(rig.result);
  EXPECT_EQ(rig.result->verdict, "no_difference");
  EXPECT_NEAR(rig.result->saved_fraction->value, 0, 1e-3);
  EXPECT_LE(rig.result->saved_fraction->low, 0);
  EXPECT_GE(rig.result->saved_fraction->high, 0);
}

TEST(SwitchbackLoop, ACanaryControlsInFewBlocksAndMeasuresTheSame) {
  Rig rig(0.1, experiment::Arm::control);
  rig.run(7200_s);
  ASSERT_TRUE(rig.result && rig.result->saved_fraction);
  EXPECT_NEAR(rig.result->saved_fraction->value, kSaved, 1e-3);
  EXPECT_NEAR(rig.result->control_fraction, 0.1, 0.02);
  EXPECT_FALSE(rig.records.front().control);
}

TEST(SwitchbackLoop, TimeUnderSomeoneElsesLimitCountsForNeitherArm) {
  Rig rig;
  rig.run(7200_s, [&] {
    const double t = rig.clock.now().seconds();
    if (t > 2000 && t < 3000) rig.driver.settle(DeviceId::of("GPU-a")).limit = 120'000_mW;
  });
  ASSERT_TRUE(rig.result && rig.result->saved_fraction);
  EXPECT_NEAR(rig.result->saved_fraction->value, kSaved, 2e-3);
  EXPECT_GT(rig.result->discarded_fraction, 0.13);
}

TEST(SwitchbackLoop, AGuardThatRefusesLeavesNothingToMeasure) {
  Rig rig;
  rig.authority.refuses = true;
  rig.run(7200_s);
  ASSERT_TRUE(rig.result);
  EXPECT_EQ(rig.result->verdict, "too_noisy");
  EXPECT_FALSE(rig.result->saved_fraction);
}

TEST(SwitchbackLoop, EvaluationsAreLeftOutOfBothArms) {
  Rig rig;
  rig.run(7200_s, [&] {
    rig.progress.phase = std::fmod(rig.clock.now().seconds(), 300) < 40 ? Phase::evaluation : Phase::training;
  });
  ASSERT_TRUE(rig.result && rig.result->saved_fraction);
  EXPECT_NEAR(rig.result->saved_fraction->value, kSaved, 1e-3);
}

TEST(SwitchbackLoop, ShortRunsAndSilentJobsSayWhyThereIsNoNumber) {
  Rig brief;
  brief.run(600_s);
  ASSERT_TRUE(brief.result);
  EXPECT_EQ(brief.result->verdict, "too_noisy");
  EXPECT_NE(brief.result->reason.find("run for"), std::string::npos) << brief.result->reason;
  for (const DecisionRecord& record : brief.records) EXPECT_TRUE(record.control);
  Rig silent;
  silent.progress.silent = true;
  silent.run(3600_s);
  EXPECT_EQ(silent.result->verdict, "too_noisy");
  EXPECT_NE(silent.result->reason.find("steps are not known"), std::string::npos);
}

TEST(SwitchbackLoop, ObserveOnlyHasNone) {
  Rig rig;
  rig.options.observe_only = true;
  rig.run(600_s);
  EXPECT_FALSE(rig.result);
}

TEST(SwitchbackLoop, SameSeedSameBlocksAnotherSeedOthers) {
  const auto arms = [](std::uint64_t seed) {
    Rig rig;
    rig.options.seed = seed;
    rig.run(3600_s);
    std::vector<bool> control;
    for (const DecisionRecord& record : rig.records) control.push_back(record.control);
    return control;
  };
  EXPECT_EQ(arms(1), arms(1));
  EXPECT_NE(arms(1), arms(2));
}

}  // namespace
}  // namespace flyball::loop
