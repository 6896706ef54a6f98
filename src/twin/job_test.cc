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

}  // namespace
}  // namespace flyball::twin
