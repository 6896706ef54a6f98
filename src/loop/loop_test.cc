#include "loop/loop.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "loop/fakes_test.h"

namespace flyball::loop {
namespace {

using namespace literals;
using testing::FakeAuthority;
using testing::FakeDriver;
using testing::FakeProgress;
using testing::Scripted;

const DeviceId kA = DeviceId::of("GPU-a");

struct Rig {
  explicit Rig(int boards = 1, Seconds step = 1_s) : driver(clock, boards), authority(driver), progress(clock, step) {}
  VirtualClock clock;
  FakeDriver driver;
  FakeAuthority authority;
  FakeProgress progress;
  Scripted policy;
  Options options;
  std::vector<DecisionRecord> records;

  /// Runs for `length`; `before_tick` may change the world.
  Account run(Seconds length, const std::function<void()>& before_tick = {}) {
    Loop loop(driver, clock, authority, progress, policy, options);
    return run(loop, length, before_tick);
  }
  Account run(Loop& loop, Seconds length, const std::function<void()>& before_tick = {}) {
    const auto started = loop.start();
    EXPECT_TRUE(started) << started.error().message();
    const auto polls = static_cast<int>(std::lround(length / options.poll));
    for (int i = 0; i < polls; ++i) {
      clock.advance(options.poll);
      if (before_tick) before_tick();
      if (auto record = loop.tick()) records.push_back(std::move(*record));
    }
    EXPECT_TRUE(loop.finish());
    rejected = loop.rejected();
    findings = loop.findings();
    return loop.account();
  }
  bool found(const std::string& code) const {
    return std::any_of(findings.begin(), findings.end(), [&](const Finding& f) { return f.code == code; });
  }
  Rejected rejected;
  std::vector<Finding> findings;
};

Proposal wish_for(const Observation& observation, Milliwatts limit) {
  Proposal proposal;
  for (const GpuObservation& gpu : observation.gpus) proposal.gpus.push_back({gpu.device, limit, {}});
  return proposal;
}

TEST(Loop, DecidesEveryTenSecondsOnWholeIntervals) {
  Rig rig;
  const Account account = rig.run(60_s);
  ASSERT_EQ(rig.policy.seen.size(), 6u);
  for (const Observation& o : rig.policy.seen) {
    EXPECT_EQ(o.interval, 10_s);
    ASSERT_EQ(o.gpus.size(), 1u);
    EXPECT_NEAR((*o.gpus[0].power).value(), 225, 1e-9);
    EXPECT_NEAR((*o.gpus[0].energy).value(), 2250, 1e-6);
    EXPECT_NEAR(o.gpus[0].coverage_fraction, 1, 1e-9);
    EXPECT_NEAR(*o.tokens_per_second, 1000, 1e-9);
    EXPECT_NEAR((*o.step_time).value(), 1, 1e-9);
    EXPECT_EQ(o.phase, Phase::training);
    EXPECT_EQ(*o.gpus[0].minimum, 100'000_mW);
  }
  EXPECT_NEAR(account.energy.value(), 225 * 60, 1e-6);
  EXPECT_EQ(account.method, "counter");
  EXPECT_DOUBLE_EQ(account.tokens, 60'000);
  EXPECT_DOUBLE_EQ(account.coverage_fraction, 1);
}

TEST(Loop, StepsAreTimedNotCountedInWindows) {
  Rig rig(1, 10.62_s);
  rig.run(3600_s);
  int known = 0;
  for (const Observation& o : rig.policy.seen) {
    if (!o.tokens_per_second) continue;
    ++known;
    EXPECT_NEAR(*o.tokens_per_second, 1000 / 10.62, 1e-6);
  }
  EXPECT_GT(known, 300);
}

TEST(Loop, WritesThroughTheAuthorityAndGivesBackAtTheEnd) {
  Rig rig(2);
  rig.policy.wish = [](const Observation& o) { return wish_for(o, 180'000_mW); };
  rig.run(30_s);
  EXPECT_EQ(rig.records[0].writes.size(), 2u);
  EXPECT_EQ(rig.records[0].writes[0].state, guard::WriteState::applied);
  EXPECT_EQ(rig.records[1].writes[0].state, guard::WriteState::unchanged);
  EXPECT_EQ(rig.authority.released, 1);
  EXPECT_EQ(rig.driver.settle(kA).limit, 250'000_mW);
  EXPECT_GE(rig.authority.renewed, 5) << "a lease of 10 s must be renewed well before it ends";
}

TEST(Loop, ALockIsWrittenAndSeenByTheClockAlone) {
  Rig rig;
  rig.options.clocks_unlocked = true;
  const ClockRange range{Hertz(0.3e9), Hertz(1.2e9)};
  rig.policy.wish = [&](const Observation& o) { return Proposal{{{o.gpus[0].device, {}, range}}, "locked"}; };
  rig.run(40_s);
  EXPECT_TRUE(rig.policy.seen[0].clocks_unlocked);
  EXPECT_FALSE(rig.policy.seen[0].gpus[0].clock_ceiling);
  EXPECT_EQ(rig.policy.seen[1].gpus[0].clock_ceiling, range.high);
  EXPECT_NEAR((*rig.policy.seen[3].gpus[0].sm_clock).value(), 1.2e9, 1);
  EXPECT_TRUE(rig.findings.empty());
}

TEST(Loop, ABoardAboveItsLockFreezesLearning) {
  Rig rig;
  const ClockRange range{Hertz(0.3e9), Hertz(1.2e9)};
  rig.policy.wish = [&](const Observation& o) { return Proposal{{{o.gpus[0].device, {}, range}}, "locked"}; };
  rig.run(80_s, [&] {
    if (rig.clock.now().seconds() >= 30 && rig.clock.now().seconds() < 60) rig.driver.settle(kA).locked.reset();
    if (rig.clock.now().seconds() >= 60) rig.driver.settle(kA).locked = range;
  });
  EXPECT_TRUE(rig.found("clocks.foreign"));
  EXPECT_FALSE(rig.records[4].frozen.empty());
  EXPECT_TRUE(rig.records[7].frozen.empty()) << "it holds again";
}

TEST(Loop, WhatARankWaitedIsAShareOfWholeSteps) {
  Rig rig(1, 1.3_s);
  rig.run(30_s);
  EXPECT_FALSE(rig.policy.seen[1].gpus[0].wait_fraction) << "the job does not tell";
  rig.progress.waits = 0.2;
  rig.records.clear();
  rig.run(60_s);
  for (std::size_t i = 1; i < rig.records.size(); ++i) {
    ASSERT_TRUE(rig.records[i].observation.gpus[0].wait_fraction);
    EXPECT_NEAR(*rig.records[i].observation.gpus[0].wait_fraction, 0.2, 1e-9);
  }
}

TEST(Loop, ObserveOnlyAsksForNothing) {
  Rig rig;
  rig.options.observe_only = true;
  rig.run(60_s);
  EXPECT_EQ(rig.authority.acquired, 0);
  EXPECT_TRUE(rig.policy.seen.empty());
  EXPECT_EQ(rig.records.size(), 6u);
}

TEST(Loop, UnknownGpuIsAnInputError) {
  Rig rig;
  rig.options.devices = {DeviceId::of("GPU-z")};
  Loop loop(rig.driver, rig.clock, rig.authority, rig.progress, rig.policy, rig.options);
  const auto started = loop.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::input);
}

TEST(Loop, ALeaseThatEndsIsAskedForAgainEverMoreRarelyAndNeverGivenUp) {
  Rig rig;
  rig.authority.ends_lease = true;
  rig.policy.wish = [](const Observation& o) { return wish_for(o, 180'000_mW); };
  int in_first_hour = 0;
  rig.run(Seconds(3 * 3600), [&] {
    if (rig.clock.now() == MonoTime(3'600'000'000'000)) in_first_hour = rig.authority.acquired;
    if (rig.clock.now() == MonoTime(7'200'000'000'000)) rig.authority.ends_lease = false;
  });
  EXPECT_GE(in_first_hour, 12) << "at least every five minutes";
  EXPECT_LE(in_first_hour, 24);
  EXPECT_LE(rig.authority.acquired, in_first_hour + 13) << "300 s apart, then kept";
  EXPECT_EQ(
      std::count_if(rig.findings.begin(), rig.findings.end(), [](const auto& f) { return f.code == "lease.lost"; }), 1)
      << "said once";
  ASSERT_EQ(rig.records.back().writes.size(), 1u) << "two hours of trouble do not end a long run's control";
  EXPECT_EQ(rig.records.back().writes[0].accepted, 180'000_mW);
}

TEST(Loop, LeasesThatLivedForLongAreAskedForAgainAtOnce) {
  Rig rig;
  const Seconds between(100);
  MonoTime next = MonoTime() + between;
  rig.run(1200_s, [&] {
    const MonoTime end = next + Seconds(3);  // one renewal
    rig.authority.ends_lease = rig.clock.now() >= next && rig.clock.now() < end;
    if (rig.clock.now() >= end) next = next + between;
  });
  EXPECT_GE(rig.authority.acquired, 11);
  EXPECT_FALSE(rig.found("lease.lost"));
}

TEST(Loop, WithoutALeaseItGoesOnObserving) {
  Rig rig;
  rig.authority.no_lease = true;
  rig.policy.wish = [](const Observation& o) { return wish_for(o, 180'000_mW); };
  const Account account = rig.run(60_s);
  EXPECT_TRUE(rig.authority.asked.empty());
  EXPECT_TRUE(rig.found("lease.refused"));
  EXPECT_NEAR(account.energy.value(), 225 * 60, 1e-6);
}

TEST(Loop, AGuardThatComesBackIsAskedAgain) {
  Rig rig;
  rig.authority.no_lease = true;
  rig.policy.wish = [](const Observation& o) { return wish_for(o, 180'000_mW); };
  rig.run(120_s, [&] {
    if (rig.clock.now() == MonoTime(40'000'000'000)) rig.authority.no_lease = false;
  });
  EXPECT_FALSE(rig.authority.asked.empty()) << "it was away for 40 s";
  EXPECT_LE(rig.authority.refused, 8) << "1, 2, 4 … 10 s apart, not at each poll";
}

TEST(Loop, ALimitThatTheBoardDoesNotTakeIsSaidOnce) {
  Rig rig;
  rig.policy.wish = [](const Observation& o) { return wish_for(o, Milliwatts(1'000)); };
  rig.run(60_s);
  ASSERT_TRUE(rig.found("write.bounded"));
  EXPECT_EQ(rig.findings.size(), 1u);
  EXPECT_NE(rig.findings[0].what.find("1.00 W was asked for, 100.0 W"), std::string::npos) << rig.findings[0].what;
  Rig within;
  within.policy.wish = [](const Observation& o) { return wish_for(o, Milliwatts(150'000)); };
  within.run(60_s);
  EXPECT_FALSE(within.found("write.bounded"));
}

TEST(Loop, FreezesWhenSomeoneOutsideLimitsTheBoard) {
  Rig rig;
  rig.policy.wish = [](const Observation& o) { return wish_for(o, 200'000_mW); };
  rig.run(100_s, [&] {
    if (rig.clock.now() == MonoTime(45'000'000'000)) rig.driver.settle(kA).limit = 120'000_mW;
  });
  EXPECT_EQ(rig.policy.seen.size(), 4u) << "no decision from the fifth interval on";
  EXPECT_TRUE(rig.records[4].observation.gpus[0].external_limiter);
  EXPECT_FALSE(rig.records[4].frozen.empty());
  EXPECT_TRUE(rig.found("limit.external"));
}

TEST(Loop, OwnCapIsNoExternalLimiter) {
  Rig rig;
  rig.policy.wish = [](const Observation& o) { return wish_for(o, 150'000_mW); };
  rig.run(100_s);
  EXPECT_EQ(rig.policy.seen.size(), 10u);
  EXPECT_FALSE(rig.found("limit.external"));
}

TEST(Loop, FreezesUnderThePowerBrakeAndForgetsIt) {
  Rig rig;
  rig.driver.bend = [&](GpuReading& r) {
    if (rig.clock.now().seconds() > 12 && rig.clock.now().seconds() < 18) {
      r.throttle = ThrottleReasons{ThrottleReasons::kPowerBrake};
    }
  };
  rig.run(60_s);
  EXPECT_FALSE(rig.records[1].frozen.empty());
  EXPECT_TRUE(rig.records[2].frozen.empty());
  EXPECT_EQ(rig.policy.seen.size(), 5u);
}

TEST(Loop, FreezesWhenAnotherProgramRaisesTheLimit) {
  Rig rig;
  rig.policy.wish = [](const Observation& o) { return wish_for(o, 150'000_mW); };
  rig.run(50_s, [&] {
    if (rig.clock.now() == MonoTime(25'000'000'000)) rig.driver.settle(kA).limit = 250'000_mW;
  });
  EXPECT_TRUE(rig.found("limit.foreign"));
  EXPECT_FALSE(rig.records[2].frozen.empty());
}

TEST(Loop, DeferredWritesAreNotTakenForForeignOnes) {
  Rig rig;
  rig.authority.defers = true;
  rig.policy.wish = [](const Observation& o) { return wish_for(o, 150'000_mW); };
  rig.run(50_s);
  EXPECT_EQ(rig.policy.seen.size(), 5u);
}

TEST(Loop, AHungCollectiveIsAFaultAndNoSaving) {
  Rig rig;
  rig.progress.stops_at = MonoTime(60'000'000'000);
  rig.driver.bend = [&](GpuReading& r) {
    if (rig.clock.now().seconds() > 60) r.power_average = Watts(35), r.energy = Sample<Joules>::absent(Status::failed);
  };
  rig.run(200_s);
  EXPECT_TRUE(rig.found("job.hung"));
  EXPECT_TRUE(rig.records.back().observation.gpus[0].hung_progress);
  EXPECT_FALSE(rig.records.back().frozen.empty());
}

TEST(Loop, AnEvaluationIsNoHang) {
  Rig rig;
  rig.progress.stops_at = MonoTime(60'000'000'000);  // no steps, but work: power stays
  rig.run(200_s);
  EXPECT_FALSE(rig.found("job.hung"));
}

TEST(Loop, AnyPhaseOtherThanTrainingMarksItsInterval) {
  Rig rig;
  rig.run(30_s, [&] {
    const double t = rig.clock.now().seconds();
    rig.progress.phase = t > 12 && t < 13 ? Phase::checkpoint : Phase::training;
  });
  EXPECT_EQ(rig.records[0].observation.phase, Phase::training);
  EXPECT_EQ(rig.records[1].observation.phase, Phase::checkpoint);
  EXPECT_EQ(rig.records[2].observation.phase, Phase::training);
}

TEST(Loop, ASilentJobIsSaidOnceAndStillMeasured) {
  Rig rig;
  rig.progress.silent = true;
  const Account account = rig.run(60_s);
  EXPECT_EQ(
      std::count_if(rig.findings.begin(), rig.findings.end(), [](const Finding& f) { return f.code == "job.silent"; }),
      1);
  EXPECT_FALSE(rig.policy.seen.back().tokens_per_second.ok());
  EXPECT_NEAR(account.energy.value(), 225 * 60, 1e-6);
}

TEST(Loop, AHoleInPowerIsStatedAndTheCounterStillHolds) {
  Rig rig;
  rig.run(60_s, [&] { rig.driver.read_fails = rig.clock.now().seconds() > 20 && rig.clock.now().seconds() < 40; });
  EXPECT_LT(rig.records[2].observation.gpus[0].coverage_fraction, 0.1);
  EXPECT_FALSE(rig.records[2].observation.gpus[0].energy.ok()) << "a hole is not an energy of 0";
  EXPECT_FALSE(rig.records[2].frozen.empty());
  EXPECT_TRUE(rig.found("gpu.not_read"));
  EXPECT_TRUE(rig.records[5].frozen.empty());
}

TEST(Loop, CounterHoldsAcrossAHole) {
  Rig rig;
  const Account account =
      rig.run(60_s, [&] { rig.driver.read_fails = rig.clock.now().seconds() > 20 && rig.clock.now().seconds() < 40; });
  EXPECT_NEAR(account.energy.value(), 225 * 60, 1e-6);
  EXPECT_DOUBLE_EQ(account.coverage_fraction, 1);
}

TEST(Loop, WithoutACounterAHoleLowersTheCoverage) {
  Rig rig;
  rig.driver.bend = [](GpuReading& r) { r.energy = Sample<Joules>::absent(Status::not_supported); };
  const Account account =
      rig.run(60_s, [&] { rig.driver.read_fails = rig.clock.now().seconds() > 20 && rig.clock.now().seconds() < 40; });
  EXPECT_NEAR(account.coverage_fraction, 40.0 / 60, 0.01);
  EXPECT_NEAR(account.energy.value(), 225 * 40, 225);
  EXPECT_EQ(account.method, "trapezoid of power_average");
}

TEST(Loop, ACounterThatFallsOrStandsStillIsReplacedByPower) {
  for (const bool stuck : {false, true}) {
    Rig rig;
    rig.driver.bend = [&](GpuReading& r) {
      if (rig.clock.now().seconds() <= 30) return;
      r.energy = stuck ? Joules(225 * 30) : r.energy.value - Joules(225 * 30.25);
    };
    const Account account = rig.run(120_s);
    EXPECT_NEAR(account.energy.value(), 225 * 120, 1) << (stuck ? "stuck" : "reset");
    EXPECT_NE(account.method.find("where the counter failed"), std::string::npos) << account.method;
  }
}

TEST(Loop, AverageAndInstantPowerAreNeverMixed) {
  Rig rig;
  rig.driver.bend = [&](GpuReading& r) {
    r.energy = Sample<Joules>::absent(Status::not_supported);
    r.power_instant = Watts(90);
    if (rig.clock.now().seconds() > 20) r.power_average = Sample<Watts>::absent(Status::failed);
  };
  const Account account = rig.run(60_s);
  EXPECT_NEAR(account.energy.value(), 225 * 20, 225);
  EXPECT_LT(account.coverage_fraction, 0.4);
}

/// One sample bent out of truth; true if the loop must set it aside.
bool bend_garbage(GpuReading& reading, Random& random, MonoTime now) {
  switch (random.below(10)) {
    case 0:
      reading.power_average = Watts(-random.uniform(1, 500));
      return true;
    case 1:
      reading.power_average = Watts(std::numeric_limits<double>::quiet_NaN());
      return true;
    case 2:
      reading.power_average = Watts(4294967.295);
      return true;
    case 3:
      reading.power_average = Sample<Watts>::absent(Status::failed);
      return true;
    case 4:
      reading.taken = now - Seconds(random.uniform(5, 60));
      return true;
    case 5:
      reading.energy = Joules(std::numeric_limits<double>::infinity());
      return true;
    case 6:
      reading.energy = Joules(1.8e16);
      return true;
    case 7:
      reading.utilisation_fraction = 42.0;
      return true;
    case 8:
      reading.temperature = Celsius(2147483647);
      return true;
    default:
      reading.sm_clock = Hertz(1e18);
      return true;
  }
}

TEST(Loop, GarbageReachesNoTotalAndNoDecision) {
  EXPECT_TRUE(rc::check("dirty readings, clean totals", [](std::uint64_t seed) {
    Rig rig;
    Random random(seed);
    std::uint64_t bent = 0;
    rig.driver.bend = [&](GpuReading& r) {
      // Never the first or last, so that the truth is known; a twentieth of the rest.
      const double t = rig.clock.now().seconds();
      if (t > 1 && t < 598 && random.chance(0.05) && bend_garbage(r, random, rig.clock.now())) ++bent;
    };
    const Account account = rig.run(600_s);
    RC_ASSERT(rig.rejected.total() == bent);
    RC_ASSERT(std::fabs(account.energy.value() - 225 * 600) < 1e-3);
    for (const Observation& o : rig.policy.seen) {
      const GpuObservation& gpu = o.gpus[0];
      RC_ASSERT(std::fabs((*gpu.power).value() - 225) < 1e-6);
      if (gpu.energy) RC_ASSERT(std::fabs((*gpu.energy).value() - 2250) < 1);
      RC_ASSERT(std::fabs(*gpu.utilisation_fraction - 0.99) < 1e-9);
      RC_ASSERT(std::fabs((*gpu.temperature).value() - 60) < 1e-9);
      RC_ASSERT(std::fabs((*gpu.sm_clock).value() - 1.4e9) < 1);
    }
  }));
}

TEST(Loop, NeverWritesOutsideTheBoardsRangeWhateverIsProposed) {
  EXPECT_TRUE(rc::check("any proposal", [](std::uint64_t seed) {
    Rig rig(3);
    Random random(seed);
    rig.policy.wish = [&](const Observation& o) {
      Proposal proposal;
      const auto count = random.below(6);
      for (std::uint64_t i = 0; i < count; ++i) {
        GpuProposal gpu;
        gpu.device = random.chance(0.2) ? DeviceId::of("GPU-nobody") : o.gpus[random.below(3)].device;
        if (random.chance(0.8)) gpu.power_limit = Milliwatts(static_cast<std::int64_t>(random.bits()));
        proposal.gpus.push_back(gpu);
      }
      return proposal;
    };
    rig.run(200_s, [&] {
      for (const char* name : {"GPU-a", "GPU-b", "GPU-c"}) {
        const Milliwatts limit = rig.driver.settle(DeviceId::of(name)).limit;
        RC_ASSERT(limit >= 100'000_mW);
        RC_ASSERT(limit <= 250'000_mW);
      }
    });
    for (const auto& request : rig.authority.asked) RC_ASSERT(request.device.text() != "GPU-nobody");
    RC_ASSERT(rig.driver.settle(kA).limit == 250'000_mW);
  }));
}

TEST(Loop, TheObjectiveMayChangeWhileItRuns) {
  Rig rig;
  Loop loop(rig.driver, rig.clock, rig.authority, rig.progress, rig.policy, rig.options);
  int polls = 0;
  rig.run(loop, 60_s, [&] {
    if (++polls == 30) {
      EXPECT_TRUE(loop.set_objective({.alpha = {}, .max_loss_fraction = 0.03}));
    }
    if (polls == 50) {
      EXPECT_FALSE(loop.set_objective({.alpha = 1, .max_loss_fraction = 0.03}));
    }
    if (polls == 70) {
      EXPECT_TRUE(loop.set_objective({.alpha = 2, .max_loss_fraction = {}}));
    }
  });
  ASSERT_EQ(rig.policy.objectives.size(), 2u);
  EXPECT_EQ(rig.policy.objectives[0].max_loss_fraction, 0.03);
  EXPECT_EQ(rig.policy.objectives[1].alpha, 2);
  ASSERT_EQ(rig.findings.size(), 2u) << "each change is told, the refused one is not";
  EXPECT_EQ(rig.findings[0].code, "objective.changed");
  EXPECT_NE(rig.findings[0].what.find("3.00 %"), std::string::npos) << rig.findings[0].what;
  EXPECT_NE(rig.findings[1].what.find("2"), std::string::npos) << rig.findings[1].what;
}

TEST(StepRate, ARestartedJobKeepsItsTokensAndStartsItsRateAnew) {
  StepRate rate;
  rate.add({MonoTime(0), Phase::training, 0, 0});
  rate.add({MonoTime(10'000'000'000), Phase::training, 10, 1000});
  EXPECT_DOUBLE_EQ(*rate.take().tokens_per_second, 100);
  rate.add({MonoTime(12'000'000'000), Phase::training, 0, 0});
  rate.add({MonoTime(20'000'000'000), Phase::training, 4, 400});
  EXPECT_DOUBLE_EQ(*rate.take().tokens_per_second, 50);
  EXPECT_FALSE(rate.take().tokens_per_second.ok());
}

TEST(StepRate, ACheckpointBetweenTwoStepsIsPartOfNeither) {
  const auto at = [](int seconds) { return MonoTime(seconds * 1'000'000'000LL); };
  StepRate rate;
  for (int t = 0; t <= 10; t += 2) rate.add({at(t), Phase::training, static_cast<std::uint64_t>(t) / 2, 500U * t});
  EXPECT_DOUBLE_EQ(*rate.take().tokens_per_second, 500);
  // The last step ended at 10 s; twenty seconds of checkpoint; the next one ends at 32 s.
  rate.add({at(10), Phase::checkpoint, 5, 5000});
  EXPECT_FALSE(rate.take().tokens_per_second.ok());
  rate.add({at(10), Phase::training, 5, 5000});
  EXPECT_FALSE(rate.take().tokens_per_second.ok());
  rate.add({at(32), Phase::training, 6, 6000});
  EXPECT_FALSE(rate.take().tokens_per_second.ok());
  rate.add({at(34), Phase::training, 7, 7000});
  const StepRate::Rate after = rate.take();
  EXPECT_DOUBLE_EQ(*after.tokens_per_second, 500);
  EXPECT_EQ(after.from, at(32));
  EXPECT_EQ(rate.tokens(), 7000u);
}

}  // namespace
}  // namespace flyball::loop
