#include "experiment/analysis.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "experiment/effect.h"

namespace flyball::experiment {
namespace {

using namespace literals;

struct Truth {
  double saved = 0.1, lost = 0.012;
  double noise = 0;        ///< of throughput, a block
  double power_noise = 0;  ///< a block
  std::size_t blocks = 180;
};

std::vector<Block> blocks_of(const Schedule& schedule, const Truth& truth, std::uint64_t seed) {
  Random random(seed);
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < truth.blocks; ++i) {
    const bool control = schedule.arm(i) == Arm::control;
    Block block;
    block.index = i;
    block.arm = schedule.arm(i);
    block.time = Seconds(random.uniform(35, 39));
    const double rate = 1000 * (control ? 1 - truth.lost : 1) * (1 + truth.noise * random.normal());
    const double per_token = control ? 1 - truth.saved : 1;
    block.tokens = rate * block.time.value();
    block.energy = Joules(per_token * block.tokens * (1 + truth.power_noise * random.normal()));
    blocks.push_back(block);
  }
  return blocks;
}

Schedule schedule_of(Arm rare = Arm::original, double share = 0.1) {
  Schedule::Options options;
  options.rare = rare;
  options.share = share;
  return *Schedule::make(options);
}

TEST(Analysis, WithoutNoiseItIsTheTruth) {
  for (const Arm rare : {Arm::original, Arm::control}) {
    for (const double saved : {0.1, 0.0, -0.05}) {
      const Schedule schedule = schedule_of(rare);
      Truth truth;
      truth.saved = saved;
      const Analysis a = analyze(schedule, blocks_of(schedule, truth, 1));
      ASSERT_TRUE(a.energy_per_token && a.throughput && a.power);
      EXPECT_NEAR(a.energy_per_token->less.value, saved, 1e-9);
      EXPECT_NEAR(a.throughput->less.value, 0.012, 1e-9);
      EXPECT_NEAR(a.power->less.value, 1 - (1 - saved) * (1 - 0.012), 1e-9);
      EXPECT_EQ(a.outcome, saved > 0 ? Outcome::saves : saved < 0 ? Outcome::costs : Outcome::no_difference);
      EXPECT_EQ(a.blocks_original + a.blocks_control, 180u);
    }
  }
}

TEST(Analysis, IsTheRatioOfSumsToAHundredthOfAPoint) {
  const Schedule schedule = schedule_of();
  double difference = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Truth truth;
    truth.noise = 0.01, truth.power_noise = 0.01;
    const auto blocks = blocks_of(schedule, truth, seed);
    Joules energy[2];
    double tokens[2] = {0, 0};
    for (const Block& block : blocks) {
      energy[static_cast<int>(block.arm)] += block.energy;
      tokens[static_cast<int>(block.arm)] += block.tokens;
    }
    const double sums = 1 - (energy[0].value() / tokens[0]) / (energy[1].value() / tokens[1]);
    difference += (analyze(schedule, blocks).energy_per_token->less.value - sums) / 20;
  }
  EXPECT_LT(std::fabs(difference), 1e-4);
}

TEST(Analysis, ASlowDriftFarLargerThanTheNoiseIsTakenAway) {
  const Schedule schedule = schedule_of();
  auto blocks = blocks_of(schedule, {}, 1);
  for (Block& block : blocks) {
    const double drift =
        1 + 0.2 * std::sin(static_cast<double>(block.index) / 180 * 5) + 0.001 * static_cast<double>(block.index);
    block.tokens *= drift, block.energy *= drift * drift;
  }
  const Analysis a = analyze(schedule, blocks);
  EXPECT_NEAR(a.energy_per_token->less.value, 0.1, 0.0015);
  EXPECT_LT(a.energy_per_token->less.half_width(), 0.005);
}

TEST(Analysis, WiderThanTheResolutionIsTooNoisyAndSaysHowLongItWouldTake) {
  const Schedule schedule = schedule_of();
  Truth truth;
  truth.power_noise = 0.05;
  const Analysis a = analyze(schedule, blocks_of(schedule, truth, 1));
  EXPECT_EQ(a.outcome, Outcome::too_noisy);
  const double longer = a.energy_per_token->less.half_width() / 0.01;
  EXPECT_GT(longer, 1);
  EXPECT_NEAR(a.needed.value(), 7200 * longer * longer, 1);
  EXPECT_NE(a.reason.find("needed"), std::string::npos);
}

TEST(Analysis, BlocksWithHolesOrWithoutAMeasurementCountForNothing) {
  const Schedule schedule = schedule_of();
  auto blocks = blocks_of(schedule, {}, 1);
  for (std::size_t i = 0; i < blocks.size(); i += 7) {
    blocks[i].energy = 1e9_J;
    if (i % 2 == 0) {
      blocks[i].coverage_fraction = 0.9;
    } else {
      blocks[i].time = 0_s;
    }
  }
  const Analysis a = analyze(schedule, blocks);
  EXPECT_NEAR(a.energy_per_token->less.value, 0.1, 1e-9);
  EXPECT_GT(a.discarded_fraction, 0.15);
}

TEST(Analysis, FewBlocksGiveNoNumber) {
  const Schedule schedule = schedule_of();
  EXPECT_EQ(analyze(schedule, {}).outcome, Outcome::too_noisy);
  Truth truth;
  truth.blocks = 30;
  const Analysis a = analyze(schedule, blocks_of(schedule, truth, 1));
  EXPECT_EQ(a.outcome, Outcome::too_noisy);
  EXPECT_FALSE(a.reason.empty());
}

TEST(Analysis, BlocksThatBeginLateAreTakenWithTheirGroups) {
  const Schedule schedule = schedule_of();
  auto blocks = blocks_of(schedule, {}, 1);
  blocks.erase(blocks.begin(), blocks.begin() + 33);
  EXPECT_NEAR(analyze(schedule, blocks).energy_per_token->less.value, 0.1, 1e-9);
}

TEST(Analysis, PValuesOfNoEffectAreUniform) {
  int below = 0;
  constexpr int kRuns = 400;
  for (int seed = 0; seed < kRuns; ++seed) {
    Truth truth{0, 0, 0.01, 0.01, 40};
    Options options;
    options.permutations = 199;
    options.seed = static_cast<std::uint64_t>(seed);
    Schedule::Options s;
    s.share = 0.5;
    s.seed = static_cast<std::uint64_t>(seed) * 7 + 1;
    const Schedule own = *Schedule::make(s);
    below +=
        analyze(own, blocks_of(own, truth, static_cast<std::uint64_t>(seed)), options).energy_per_token->p_value <= 0.2;
  }
  EXPECT_NEAR(below, 80, 32) << "four standard deviations";
}

TEST(Analysis, AnInstantMeterThatKeepsStepIsTooNoisyHoweverQuietItLooks) {
  const Schedule schedule = schedule_of();
  Options options;
  options.step = 10.62_s;
  const auto blocks = blocks_of(schedule, {}, 1);
  options.instant_period = 0.5_s;
  EXPECT_EQ(analyze(schedule, blocks, options).outcome, Outcome::saves);
  options.instant_period = 10.6199_s;
  const Analysis a = analyze(schedule, blocks, options);
  EXPECT_EQ(a.outcome, Outcome::too_noisy);
  EXPECT_NE(a.reason.find("counter"), std::string::npos);
}

TEST(Sequential, LooksTogetherSpendTheErrorOfOne) {
  for (const int looks : {1, 2, 5, 20}) {
    double spent = 0;
    for (int look = 1; look <= looks; ++look) {
      const double level = level_at_look(look, looks, 0.95);
      EXPECT_LE(level, 1);
      spent += 1 - level;
      EXPECT_TRUE(look == 1 || level <= level_at_look(look - 1, looks, 0.95));
    }
    EXPECT_NEAR(spent, 0.05, 1e-9);
  }
}

TEST(Sequential, StoppingAtTheFirstDifferenceSeenErrsNoMoreOftenThanStated) {
  int wrong = 0, found = 0;
  constexpr int kRuns = 200;
  constexpr int kLooks = 5;
  for (int seed = 0; seed < kRuns; ++seed) {
    Schedule::Options s;
    s.share = 0.5;
    s.seed = static_cast<std::uint64_t>(seed) + 77;
    const Schedule schedule = *Schedule::make(s);
    for (const double saved : {0.0, 0.05}) {
      const Truth truth{saved, 0, 0.01, 0.01, 60};
      const auto all = blocks_of(schedule, truth, static_cast<std::uint64_t>(seed));
      for (int look = 1; look <= kLooks; ++look) {
        Options options;
        options.permutations = 999;
        options.level = level_at_look(look, kLooks, 0.95);
        const auto end = all.begin() + look * 12;
        const auto effect = analyze(schedule, {all.begin(), end}, options).energy_per_token;
        if (!effect || (effect->less.low <= 0 && effect->less.high >= 0)) continue;
        ++(saved > 0 ? found : wrong);
        break;
      }
    }
  }
  EXPECT_LE(wrong, 22) << "4 standard deviations above 5 %";
  EXPECT_GE(found, kRuns * 9 / 10);
}

TEST(Analysis, ADesignWithFewOutcomesIsNeverSure) {
  const Schedule schedule = schedule_of(Arm::original, 0.5);
  Truth truth;
  truth.blocks = 8;  // 16 draws: one in sixteen is no 2.5 %
  const Analysis a = analyze(schedule, blocks_of(schedule, truth, 1));
  ASSERT_TRUE(a.energy_per_token);
  EXPECT_FALSE(std::isfinite(a.energy_per_token->less.half_width()));
  EXPECT_EQ(a.outcome, Outcome::too_noisy);
}

TEST(Aliases, OnlyWhereTheBeatIsTooSlowToAverageOut) {
  EXPECT_FALSE(aliases(0.1_s, 2_s, 7200_s));
  EXPECT_TRUE(aliases(2_s, 2_s, 7200_s));
  EXPECT_TRUE(aliases(1_s, 2_s, 7200_s)) << "the second harmonic stands still";
  EXPECT_FALSE(aliases(10_s, 10.62_s, 7200_s)) << "42 beats of 171 s";
  EXPECT_TRUE(aliases(10_s, 10.62_s, 600_s));
}

/// The estimator by its definition, with dense matrices: x'Mz / x'Mx, M = W − W (W + λ D'D)⁻¹ W.
double dense_estimate(const Values& v, double ratio) {
  const std::size_t n = v.x.size();
  std::vector<std::vector<double>> a(n, std::vector<double>(n + 2));
  for (std::size_t i = 0; i < n; ++i) {
    a[i][i] = v.weight[i] + ratio * ((i > 0) + (i + 1 < n));
    if (i > 0) a[i][i - 1] = -ratio;
    if (i + 1 < n) a[i][i + 1] = -ratio;
    a[i][n] = v.weight[i] * v.x[i];
    a[i][n + 1] = v.rare[i] ? v.weight[i] : 0;
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const double f = a[r][i] / a[i][i];
      for (std::size_t c = i; c < n + 2; ++c) a[r][c] -= f * a[i][c];
    }
  }
  double xz = 0, xx = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!v.rare[i]) continue;
    xz += v.weight[i] * (v.x[i] - a[i][n] / a[i][i]);
    xx += v.weight[i] * (1 - a[i][n + 1] / a[i][i]);
  }
  return xz / xx;
}

TEST(Effect, EqualsTheDefinitionForOneOfTheRatiosTried) {
  Random random(5);
  for (int trial = 0; trial < 20; ++trial) {
    Values v;
    v.group = 5;
    double weights = 0, measured = 0;
    for (std::size_t i = 0; i < 40; ++i) {
      v.weight.push_back(random.chance(0.1) ? 0 : random.uniform(0.5, 1.5));
      weights += v.weight.back(), measured += v.weight.back() > 0;
      v.x.push_back(random.normal() + 0.1 * static_cast<double>(i));
      v.rare.push_back(i % 5 == random.below(5));
    }
    const auto made = log_effect(v, 0.95, 99, 1);
    ASSERT_TRUE(made);
    for (double& w : v.weight) w *= measured / weights;
    bool found = false;
    for (const double ratio : {1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4, 1e6}) {
      found |= std::fabs(dense_estimate(v, ratio) - made->value) < 1e-6;
    }
    EXPECT_TRUE(found) << trial;
    EXPECT_LE(made->low, made->value);
    EXPECT_GE(made->high, made->value);
  }
}

TEST(Effect, OneArmAloneGivesNothing) {
  Values v;
  v.x.assign(20, 0), v.weight.assign(20, 1), v.rare.assign(20, false);
  EXPECT_FALSE(log_effect(v, 0.95, 99, 1));
  v.rare.assign(20, true);
  EXPECT_FALSE(log_effect(v, 0.95, 99, 1));
}

}  // namespace
}  // namespace flyball::experiment
