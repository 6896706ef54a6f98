#include "twin/job.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/stats.h"
#include "twin/machine.h"

namespace flyball::twin {
namespace {

using namespace flyball::literals;

MachineParameters quiet(std::uint64_t gpus = 1) {
  MachineParameters p;
  p.gpus = gpus;
  p.gpu.full_power = 350_W;  // under the default limit: full clocks
  p.gpu.board_power_sd = 0;
  p.job.throughput_noise_sd = 0;
  p.job.drift_sd = 0;
  return p;
}

TEST(Job, StepsTakeTheStatedTimeWhereverTheyEnd) {
  MachineParameters p = quiet();
  p.job.step_time = Seconds(1.37);
  auto machine = Machine::create(p);
  machine->advance(Seconds(137.1));
  EXPECT_EQ(machine->job().steps(), 100U);
  const auto steps = machine->job().take_steps();
  ASSERT_EQ(steps.size(), 100U);
  for (const StepRecord& step : steps) EXPECT_NEAR(step.duration.value(), 1.37, 1e-6);
  EXPECT_NEAR(steps.back().ended.seconds(), 137.0, 1e-5);
  EXPECT_TRUE(machine->job().take_steps().empty());
}

TEST(Job, TheSlowestRankSetsThePaceAndTheOthersWaitForLess) {
  auto machine = Machine::create(quiet(8));
  machine->advance(100_s);
  const double before = machine->job().exact_tokens();
  const Watts others_before = machine->gpus()[5].truth().energy / 100_s;
  machine->gpus()[3].lock_clocks({Hertz(210e6), Hertz(1128e6)});  // 80 % of the clock
  machine->advance(100_s);
  const double after = machine->job().exact_tokens() - before;
  const MachineParameters& p = machine->parameters();
  // The exchange part of a step does not slow down.
  const double slowed = p.job.exposed_wait_fraction + (1 - p.job.exposed_wait_fraction) / rate_at(0.8, 0.92);
  EXPECT_NEAR(after / before, 1 / slowed, 0.01);
  const Joules start = machine->gpus()[5].truth().energy;
  machine->advance(100_s);
  EXPECT_LT((machine->gpus()[5].truth().energy - start) / 100_s, others_before);
}

TEST(Job, AbsorbableWaitMakesSlowerComputeFree) {
  MachineParameters p = quiet(4);
  p.job.absorbable_wait_fraction = 0.2;
  auto full = Machine::create(p);
  auto slowed = Machine::create(p);
  for (Gpu& gpu : slowed->gpus()) gpu.lock_clocks({Hertz(210e6), Hertz(1200e6)});
  full->advance(1000_s);
  slowed->advance(1000_s);
  EXPECT_NEAR(slowed->job().exact_tokens() / full->job().exact_tokens(), 1.0, 1e-6);
  EXPECT_LT(slowed->energy() / full->energy(), 0.95);
  for (Gpu& gpu : slowed->gpus()) gpu.lock_clocks({Hertz(210e6), Hertz(900e6)});
  const double before = slowed->job().exact_tokens();
  slowed->advance(1000_s);
  EXPECT_LT((slowed->job().exact_tokens() - before) / full->job().exact_tokens(), 0.95) << "beyond the slack it costs";
}

TEST(Job, EvaluationAndCheckpointAreDipsWithTheirOwnTimes) {
  MachineParameters p = quiet(2);
  p.job.evaluation_every = 10;
  p.job.checkpoint_every = 20;
  auto machine = Machine::create(p);
  machine->advance(200_s);
  const auto changes = machine->job().take_phase_changes();
  ASSERT_GE(changes.size(), 6U);
  EXPECT_EQ(changes[0].phase, Phase::training);
  EXPECT_EQ(changes[1].phase, Phase::evaluation);
  EXPECT_EQ(changes[1].step, 10U);
  EXPECT_NEAR(changes[1].at.seconds(), 20, 1e-6);
  EXPECT_EQ(changes[2].phase, Phase::training);
  EXPECT_NEAR(changes[2].at.seconds(), 40, 1e-6);
  EXPECT_EQ(changes[4].phase, Phase::checkpoint) << "after the evaluation of step 20";
  EXPECT_NEAR((changes[5].at - changes[4].at).value(), 15, 1e-6);

  auto dip = Machine::create(p);
  dip->advance(15_s);
  const Watts training = dip->power();
  dip->advance(10_s);
  EXPECT_EQ(dip->job().phase(), Phase::evaluation);
  EXPECT_LT(dip->power(), training * 0.85);
}

TEST(Job, ALostRankHangsTheCollectiveAtHighUtilisationAndLowPower) {
  auto machine = Machine::create(quiet(4));
  machine->advance(60_s);
  const Watts busy = machine->gpus()[1].truth().energy / 60_s;
  machine->gpus()[0].set_lost(true);
  machine->advance(60_s);
  const std::uint64_t steps = machine->job().steps();
  machine->advance(60_s);
  EXPECT_EQ(machine->job().steps(), steps);
  EXPECT_TRUE(machine->job().stalled());
  EXPECT_NEAR(machine->gpus()[1].truth().utilisation_fraction, 1, 0.01);
  EXPECT_LT(machine->gpus()[1].truth().power, busy * 0.35);
  machine->gpus()[0].set_lost(false);
  machine->advance(60_s);
  EXPECT_GT(machine->job().steps(), steps);
}

TEST(Job, NoiseAndDriftHaveTheStatedSpread) {
  MachineParameters p = quiet();
  p.job.throughput_noise_sd = 0.01;
  p.job.step_time = Seconds(0.05);
  auto machine = Machine::create(p);
  RunningStats white;
  double last = 0;
  for (int i = 0; i < 2000; ++i) {
    machine->advance(10_s);
    const double tokens = machine->job().exact_tokens();
    white.add(tokens - last);
    last = tokens;
  }
  EXPECT_NEAR(white.sd() / white.mean(), 0.01, 0.0015);

  p.job.throughput_noise_sd = 0;
  p.job.drift_sd = 0.005;
  p.tick = 1_s;
  p.job.step_time = Seconds(2);
  RunningStats drift;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    p.seed = seed;
    auto one = Machine::create(p);
    for (int i = 0; i < 3; ++i) {
      const double before = one->job().exact_tokens();
      one->advance(10_s);
      drift.add(one->job().exact_tokens() - before);
      one->advance(7200_s);
    }
  }
  EXPECT_NEAR(drift.sd() / drift.mean(), 0.005, 0.0015);
}

TEST(Job, StopsAndIdlesAfterItsLastStep) {
  MachineParameters p = quiet();
  p.job.startup_time = 10_s;
  p.job.stop_after_steps = 5;
  auto machine = Machine::create(p);
  machine->advance(5_s);
  EXPECT_EQ(machine->job().phase(), Phase::startup);
  EXPECT_EQ(machine->job().steps(), 0U);
  machine->advance(60_s);
  EXPECT_EQ(machine->job().phase(), Phase::idle);
  EXPECT_EQ(machine->job().steps(), 5U);
  EXPECT_NEAR(machine->power().value(), 62, 6);
}

double busy_share(const Machine& machine, std::size_t rank) {
  return 1 - machine.job().waited(rank).value() / machine.job().last_step().ended.seconds();
}

TEST(Job, APipelineHasItsBubbleAndAllStagesTheSameWork) {
  MachineParameters p = quiet(8);
  p.job.exposed_wait_fraction = 0;
  p.job.pipeline_stages = 4;
  p.job.microbatches = 12;
  auto machine = Machine::create(p);
  machine->advance(100_s);
  EXPECT_NEAR(machine->job().last_step().duration.value(), 2.0, 1e-6) << "the bubble is in the step";
  // Every rank works for 12 of the 15 microbatches' time.
  for (std::size_t rank = 0; rank < 8; ++rank) EXPECT_NEAR(busy_share(*machine, rank), 12.0 / 15, 1e-6) << rank;
}

TEST(Job, ASlowStageCostsItsHopsAndThePaceOfTheBody) {
  MachineParameters p = quiet(4);
  p.job.exposed_wait_fraction = 0;
  p.job.pipeline_stages = 4;
  p.job.microbatches = 12;
  auto machine = Machine::create(p);
  machine->gpus()[2].lock_clocks({Hertz(210e6), Hertz(1128e6)});
  machine->advance(100_s);
  const double microbatch = 2.0 / 15, slow = 1 / rate_at(0.8, 0.92);
  EXPECT_NEAR(machine->job().last_step().duration.value(), microbatch * (12 * slow + 2 + slow), 1e-3);
}

TEST(Job, MemoryBoundWorkHardlyFollowsTheClock) {
  MachineParameters p = quiet();
  p.job.exposed_wait_fraction = 0;
  p.job.memory_fraction = 0.5;
  auto machine = Machine::create(p);
  machine->gpus()[0].lock_clocks({Hertz(210e6), Hertz(1128e6)});
  machine->advance(100_s);
  EXPECT_NEAR(machine->job().last_step().duration.value(), 1 / rate_at(0.8, 0.92) + 1 / rate_at(0.8, 0.1), 1e-3);
}

TEST(Job, AStragglerGivesTheOthersSlackThatIsFree) {
  MachineParameters p = quiet(4);
  p.job.straggler_fraction = 0.25;
  auto full = Machine::create(p);
  auto slowed = Machine::create(p);
  for (std::size_t i = 1; i < 4; ++i) slowed->gpus()[i].lock_clocks({Hertz(210e6), Hertz(1200e6)});
  full->advance(200_s);
  slowed->advance(200_s);
  EXPECT_NEAR(full->job().last_step().duration.value(), 2.0, 1e-6);
  EXPECT_NEAR(slowed->job().last_step().duration.value(), 2.0, 1e-6);
  EXPECT_LT(slowed->energy(), full->energy() * 0.95);
  EXPECT_GT(full->job().waited(1), full->job().waited(0));
  EXPECT_LT(slowed->job().waited(1), full->job().waited(1));
  slowed->gpus()[0].lock_clocks({Hertz(210e6), Hertz(1350e6)});
  slowed->advance(20_s);
  EXPECT_GT(slowed->job().last_step().duration.value(), 2.02) << "the straggler itself has none";
}

TEST(Job, JitterMakesEachStepAsLongAsItsSlowestRank) {
  MachineParameters p = quiet(64);
  p.job.rank_jitter_sd = 0.01;
  auto machine = Machine::create(p);
  machine->advance(1000_s);
  RunningStats duration;
  for (const StepRecord& step : machine->job().take_steps()) duration.add(step.duration.value());
  // The expected maximum of 64 normal variables is 2.39 sd; a twentieth of the step is exchange.
  EXPECT_NEAR(duration.mean(), 2.0 * (1 + 0.95 * 0.0239), 0.002);
  EXPECT_GT(duration.sd(), 0.002);
}

TEST(Job, StallsComeAtTheirRateAndAllWait) {
  MachineParameters p = quiet(2);
  p.job.stall_interval = 300_s;
  p.job.stall_time = 10_s;
  auto machine = Machine::create(p);
  machine->advance(30'000_s);
  std::size_t stalls = 0;
  for (const StepRecord& step : machine->job().take_steps()) {
    stalls += step.duration > 5_s ? 1 : 0;
    EXPECT_TRUE(step.duration < Seconds(2.1) || std::abs(step.duration.value() - 12) < 0.1);
  }
  EXPECT_NEAR(static_cast<double>(stalls), 100, 30);
  EXPECT_EQ(machine->job().phase(), Phase::training) << "a job does not know that it stalls";
}

TEST(Job, CheckpointsByTimeComeAtTheNextStepsEnd) {
  MachineParameters p = quiet();
  p.job.checkpoint_interval = 101_s;
  auto machine = Machine::create(p);
  machine->advance(300_s);
  const auto changes = machine->job().take_phase_changes();
  ASSERT_GE(changes.size(), 4U);
  EXPECT_EQ(changes[1].phase, Phase::checkpoint);
  EXPECT_NEAR(changes[1].at.seconds(), 102, 1e-6);
  EXPECT_NEAR(changes[3].at.seconds(), 203, 1e-6) << "102 + 101, when a step ends too: they go on at 117";
}

// Slower compute costs nothing as long as it fits into the absorbable wait, by clocks and by limits; what is waited
// becomes less; and the saving is real energy.
TEST(Job, CostsNothingInsideTheSlackWhateverTheLever) {
  for (const double slack : {0.05, 0.1, 0.2, 0.3}) {
    for (const double wait_power : {0.2, 0.5}) {
      MachineParameters p = quiet(2);
      p.gpu.settle_time = 0_s;
      p.gpu.leakage_per_kelvin = 0;
      p.job.absorbable_wait_fraction = slack;
      p.job.wait_power_fraction = wait_power;
      auto full = Machine::create(p);
      full->advance(100_s);
      const PowerCurve curve = PowerCurve::parametric(p.gpu);
      const double room = 0.95 / (0.95 - slack);  // how much slower the work may be
      for (double clock = 0.6; clock < 1; clock += 0.04) {
        const double slower = 1 / rate_at(clock, p.job.compute_share);
        const double step = 2 * (0.05 + std::max(0.95, (0.95 - slack) * slower));
        auto by_clock = Machine::create(p);
        auto by_limit = Machine::create(p);
        const Watts busy = p.gpu.idle_power + 0.95 * (curve.at_clock(clock).power - p.gpu.idle_power);
        for (Gpu& gpu : by_clock->gpus()) gpu.lock_clocks({Hertz(210e6), p.gpu.maximum_clock * clock});
        for (Gpu& gpu : by_limit->gpus()) gpu.set_limit(Milliwatts::from(busy));
        by_clock->advance(100_s);
        by_limit->advance(100_s);
        EXPECT_NEAR(by_clock->job().last_step().duration.value(), step, 2e-3) << slack << ' ' << clock;
        EXPECT_NEAR(by_limit->job().last_step().duration.value(), step, 1e-2) << slack << ' ' << clock;
        if (slower < room) {
          EXPECT_LT(by_clock->energy(), full->energy());
          EXPECT_LT(by_limit->energy(), full->energy());
        }
        EXPECT_LE(by_clock->job().waited(0).value(), full->job().waited(0).value() + 1e-9);
      }
    }
  }
}

TEST(Job, ASlowerLimitIsNeverFasterAndEnergyIsTheIntegralOfPower) {
  MachineParameters p = quiet(4);
  p.gpu.full_power = 480_W;
  p.gpu.board_power_sd = 0.02;
  p.job.absorbable_wait_fraction = 0.08;
  p.job.pipeline_stages = 2;
  p.job.rank_jitter_sd = 0.01;
  p.job.evaluation_every = 7;
  p.job.stall_interval = 50_s;
  double last = 0;
  for (std::int64_t limit = 100'000; limit <= 400'000; limit += 20'000) {
    auto machine = Machine::create(p);
    for (Gpu& gpu : machine->gpus()) gpu.set_limit(Milliwatts(limit));
    double integral = 0;
    for (int tick = 0; tick < 2000; ++tick) {
      machine->advance(p.tick);
      integral += machine->power().value() * p.tick.value();
    }
    EXPECT_NEAR(integral / machine->energy().value(), 1, 1e-9);
    const double tokens = machine->job().exact_tokens();
    EXPECT_GE(tokens, last - 1e-6) << limit;
    last = tokens;
  }
}

TEST(Job, ProgressNeverFallsNorJumps) {
  MachineParameters p = quiet(8);
  p.job.pipeline_stages = 4;
  p.job.memory_fraction = 0.1;
  p.job.absorbable_wait_fraction = 0.1;
  p.job.evaluation_every = 5;
  auto machine = Machine::create(p);
  double last = 0;
  for (int tick = 0; tick < 2000; ++tick) {
    machine->advance(p.tick);
    const double tokens = machine->job().exact_tokens();
    EXPECT_GE(tokens, last - 1);
    EXPECT_LT(tokens - last, p.job.tokens_per_step * 0.2);
    last = tokens;
  }
  EXPECT_NEAR(last, static_cast<double>(machine->job().tokens()), p.job.tokens_per_step);
}

}  // namespace
}  // namespace flyball::twin
