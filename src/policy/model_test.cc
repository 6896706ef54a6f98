#include "policy/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "base/random.h"
#include "base/stats.h"
#include "policy/belief.h"
#include "policy/plan.h"

namespace flyball::policy {
namespace {

TEST(Belief, LearnsADifferenceThroughDrift) {
  // Two points; the first is 3 % below the second, while the level wanders by 2 %.
  Belief belief({0, 0}, {0.01, 0, 0, 0}, {0.01, Seconds(3600)});
  Random random(3);
  belief.start(5);
  for (int i = 0; i < 400; ++i) {
    const double level = 5 + 0.01 * std::sin(i * 0.02);
    const std::vector<double> weights = i % 2 == 0 ? std::vector<double>{1, 0} : std::vector<double>{0, 1};
    belief.advance(Seconds(10));
    belief.observe(weights, level - 0.03 * weights[0] + 0.003 * random.normal(), 9e-6);
  }
  EXPECT_NEAR(belief.mean(0), -0.03, 0.001);
  EXPECT_LT(belief.variance(std::size_t{0}), 1e-6);
  EXPECT_EQ(belief.mean(1), 0);
}

TEST(Belief, ForeseesWhatAnObservationBrings) {
  Belief belief({0, 0, 0}, {0.02, 0.01, 0, 0.01, 0.01, 0, 0, 0, 0}, {0.005, Seconds(3600)});
  belief.start(0);
  belief.observe(std::vector<double>{0, 0, 1}, 0, 1e-5);
  const std::vector<double> sum = {0.3, 0.7, 0};
  std::vector<Belief::Value> values;
  belief.value_of(sum, 1e-5, values);
  for (std::size_t i = 0; i < 3; ++i) {
    Belief after = belief;
    std::vector<double> at(3);
    at[i] = 1;
    after.observe(at, 0.1, 1e-5);
    EXPECT_NEAR(values[i].sum_variance, after.variance(sum), 1e-12) << i;
  }
}

TEST(Plan, SpendsTheWholeBoundOnAMixOfTwo) {
  // 1 % loss saves 4 %, 4 % loss saves 9 %.
  const std::vector<Level> levels = {{0.91 * 0.96, 0.96, 0.96}, {0.96 * 0.99, 0.99, 0.99}, {}};
  const Plan plan = plan_bounded(levels, {}, 100, 0.02);
  ASSERT_TRUE(plan.feasible);
  const double rate =
      levels[plan.first].rate + plan.share_second * (levels[plan.second].rate - levels[plan.first].rate);
  EXPECT_NEAR(rate, 0.98, 1e-9);
  EXPECT_GT(plan.saved, 0.05);
  EXPECT_EQ(plan_bounded(levels, {}, 100, 0).saved, 0);
}

TEST(Plan, WhatWasLostCannotBeLostAgain) {
  const std::vector<Level> levels = {{0.9, 0.98, 0.98}, {}};
  const Spent half{45, 49, 49, 50};  // 2 % lost over half the run
  EXPECT_NEAR(plan_bounded(levels, half, 50, 0.015).share_second, 0.5, 1e-9);
  EXPECT_FALSE(plan_bounded(levels, half, 50, 0.005).feasible);
  EXPECT_EQ(plan_bounded(levels, half, 50, 0.005).first, 1u);  // the fastest
}

TEST(Plan, AlphaWeighsTokensAgainstEnergy) {
  const std::vector<Level> levels = {{0.9, 0.97, 0.97}, {}};
  EXPECT_EQ(plan_weighted(levels, {}, 1, 1).first, 0u);
  EXPECT_EQ(plan_weighted(levels, {}, 1, 10).first, 1u);
}

/// A job on one board whose speed and power follow a rule, seen with noise.
class Job {
 public:
  explicit Job(std::uint64_t seed, double noise = 0.003) : random_(seed), noise_(noise) {}
  /// From 100 to 250 W; 200 W when nothing limits.
  static double rate(double limit) { return limit >= 200 ? 1 : 1 - 0.25 * std::pow((200 - limit) / 100, 1.5); }
  static double power(double limit) { return std::min(limit, 200.0); }

  Observation next(double limit) {
    at_ = at_ + Seconds(10);
    Observation o;
    o.at = at_;
    o.interval = Seconds(10);
    o.remaining = Seconds(6 * 3600.0 - at_.seconds());
    o.phase = Phase::training;
    o.tokens_per_second = 1000 * rate(limit) * std::exp(noise_ * random_.normal());
    GpuObservation gpu;
    gpu.device = DeviceId::of("GPU-a");
    gpu.power = Watts(power(limit));
    gpu.energy = Joules(power(limit) * 10 * (1 + 0.003 * random_.normal()));
    gpu.limit_enforced = Milliwatts::from(Watts(limit));
    gpu.minimum = Milliwatts(100'000);
    gpu.maximum = Milliwatts(250'000);
    o.gpus = {gpu};
    return o;
  }

 private:
  Random random_;
  double noise_;
  MonoTime at_;
};

struct Outcome {
  double loss = 0, saved = 0;
  std::map<int, int> limits;
  int looks = 0;
};

Outcome run(Policy& policy, std::uint64_t seed, int decisions = 2160, const std::function<void(int)>& before = {},
            double noise = 0.003) {
  Job job(seed, noise);
  policy.reset(seed);
  double limit = 250, tokens = 0, energy = 0;
  Outcome outcome;
  for (int i = 0; i < decisions; ++i) {
    if (before) before(i);
    tokens += Job::rate(limit);
    energy += Job::power(limit);
    ++outcome.limits[static_cast<int>(limit)];
    const Proposal proposal = policy.decide(job.next(limit));
    if (proposal.baseline) ++outcome.looks;
    if (!proposal.gpus.empty() && proposal.gpus[0].power_limit) limit = proposal.gpus[0].power_limit->watts().value();
  }
  outcome.loss = 1 - tokens / decisions;
  outcome.saved = 1 - energy / 200 / tokens;
  return outcome;
}

std::unique_ptr<Policy> make_model(double max_loss) {
  Objective objective;
  objective.max_loss_fraction = max_loss;
  return std::move(Model::make(objective).value());
}

TEST(Model, KeepsTheBoundAndSavesNearlyAllThatCanBeSaved) {
  // The best single limit that loses 1.2 %: 250 − 50 − 100 · (0.012 / 0.25)^(2/3).
  const double best = 200 - 100 * std::pow(0.012 / 0.25, 2.0 / 3);
  const double ideal = 1 - best / 200 / (1 - 0.012);
  const auto model = make_model(0.012);
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Outcome outcome = run(*model, seed);
    EXPECT_LE(outcome.loss, 0.0125) << seed;
    EXPECT_GT(outcome.saved, 0.88 * ideal) << seed;
    EXPECT_LE(outcome.looks, 0.05 * 2160) << seed;
  }
}

TEST(Model, NoiseFarAboveItsFirstGuessBreaksNoBound) {
  const auto model = make_model(0.012);
  for (const double noise : {0.02, 0.05}) {
    double most = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) most = std::max(most, run(*model, seed, 2160, {}, noise).loss);
    EXPECT_LE(most, 0.015) << noise;
  }
}

TEST(Model, ATighterBoundLosesLess) {
  EXPECT_LT(run(*make_model(0.004), 1).loss, 0.0045);
  EXPECT_GT(run(*make_model(0.05), 1).saved, run(*make_model(0.012), 1).saved);
}

TEST(Model, ABoundThatIsLoosenedOnTheWayIsUsedAndStillKeptOverTheWholeRun) {
  const auto model = make_model(0.004);
  const Outcome outcome = run(*model, 1, 2160, [&](int decision) {
    if (decision == 1080) {
      EXPECT_TRUE(model->set_objective({.alpha = {}, .max_loss_fraction = 0.02}));
    }
  });
  EXPECT_GT(outcome.saved, run(*make_model(0.004), 1).saved + 0.02);
  EXPECT_GT(outcome.loss, 0.01);
  EXPECT_LE(outcome.loss, 0.0205);
}

TEST(Model, SameSeedSameDecisions) {
  const auto model = make_model(0.012);
  EXPECT_EQ(run(*model, 5, 500).limits, run(*model, 5, 500).limits);
}

TEST(Model, NeverAsksAboveWhatWasFoundOrBelowTheBoard) {
  const Outcome outcome = run(*make_model(0.2), 2);
  EXPECT_GE(outcome.limits.begin()->first, 100);
  EXPECT_LE(outcome.limits.rbegin()->first, 250);
}

TEST(Model, AlphaNeedsNoBound) {
  Objective cheap, dear;
  cheap.alpha = 0.5;
  dear.alpha = 50;
  const auto saver = Model::make(cheap), runner = Model::make(dear);
  const Outcome a = run(**saver, 1), b = run(**runner, 1);
  EXPECT_GT(a.saved, b.saved + 0.05);
  EXPECT_LT(b.loss, 0.005);
}

TEST(Model, SaysWhatItWaitsFor) {
  const auto model = make_model(0.012);
  model->reset(1);
  Observation silent;
  silent.interval = Seconds(10);
  EXPECT_TRUE(model->decide(silent).gpus.empty());
  EXPECT_FALSE(model->decide(silent).reason.empty());
}

/// Of 200 decisions, with or without a checkpoint of two minutes before them.
double mean_limit_after(bool checkpoint, std::uint64_t seed) {
  const auto model = make_model(0.012);
  Job job(seed);
  model->reset(seed);
  double limit = 250, sum = 0;
  for (int i = 0; i < 512; ++i) {
    Observation o = job.next(limit);
    if (checkpoint && i >= 300 && i < 312) {
      o.phase = Phase::checkpoint;
      o.tokens_per_second = Sample<double>::absent(Status::missing);
      o.gpus[0].energy = Joules(600);
    }
    limit = model->decide(o).gpus[0].power_limit->watts().value();
    if (i >= 312) sum += limit / 200;
  }
  return sum;
}

TEST(Model, ACheckpointTeachesNothing) {
  // What the policy tries next may differ; what it believes may not.
  RunningStats moved;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    moved.add(mean_limit_after(true, seed) - mean_limit_after(false, seed));
  }
  EXPECT_NEAR(moved.mean(), 0, 0.75);
  EXPECT_LT(moved.sd(), 2);
}

TEST(Model, AStallThatNobodyToldOfTeachesNothing) {
  const auto mean_limit = [](bool stalls) {
    const auto model = make_model(0.012);
    Job job(4);
    model->reset(4);
    double limit = 250, sum = 0;
    for (int i = 0; i < 500; ++i) {
      Observation o = job.next(limit);
      if (stalls && (i == 300 || i == 320)) o.tokens_per_second = 300.0;
      limit = model->decide(o).gpus[0].power_limit->watts().value();
      if (i >= 400) sum += limit / 100;
    }
    return sum;
  };
  EXPECT_NEAR(mean_limit(true), mean_limit(false), 2);
}

TEST(Model, ABatchThatIsTwiceAsLargeIsANewLevelAndNoLoss) {
  const auto model = make_model(0.012);
  Job job(5);
  model->reset(5);
  double limit = 250, sum = 0;
  for (int i = 0; i < 600; ++i) {
    Observation o = job.next(limit);
    if (i >= 300) o.tokens_per_second = *o.tokens_per_second * 2;
    limit = model->decide(o).gpus[0].power_limit->watts().value();
    if (i >= 500) sum += limit;
  }
  EXPECT_LT(sum / 100, 195);  // it still saves
  EXPECT_GT(sum / 100, 175);
}

TEST(Model, NeedsOneObjective) {
  EXPECT_FALSE(Model::make({}));
  Objective both;
  both.alpha = 1;
  both.max_loss_fraction = 0.01;
  EXPECT_FALSE(Model::make(both));
}

}  // namespace
}  // namespace flyball::policy
