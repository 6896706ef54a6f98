#include "policy/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/random.h"

namespace flyball::policy {
namespace {

using namespace literals;

/// A job whose rate and power at a limit are known functions; 10 s a decision.
struct Plant {
  std::function<double(double)> rate;   // tokens/s at W
  std::function<double(double)> power;  // W drawn at W
  double noise = 0;
  Milliwatts minimum{100'000};
  Milliwatts found{250'000};
  int intervals_per_step = 1;

  struct Run {
    Milliwatts last;
    std::vector<Milliwatts> tried;  // in order, without repeats
    double tokens = 0, energy = 0, seconds = 0;
  };

  Run run(Policy& policy, int decisions, std::uint64_t seed, Phase phase = Phase::training) const {
    Random random(seed);
    policy.reset(seed);
    Run result{found, {}};
    for (int i = 0; i < decisions; ++i) {
      const double watts = result.last.watts().value();
      Observation o;
      o.interval = 10_s;
      o.phase = phase;
      if (i % intervals_per_step == 0) o.tokens_per_second = rate(watts) * (1 + noise * random.normal());
      GpuObservation gpu;
      gpu.device = DeviceId::of("GPU-a");
      gpu.power = Watts(power(watts));
      gpu.energy = Watts(power(watts)) * o.interval;
      gpu.limit_enforced = result.last;
      gpu.minimum = minimum;
      gpu.maximum = found;
      o.gpus = {gpu};
      result.tokens += rate(watts) * 10;
      result.energy += power(watts) * 10;
      result.seconds += 10;
      for (const GpuProposal& wish : policy.decide(o).gpus) {
        if (wish.power_limit && *wish.power_limit != result.last) {
          result.last = *wish.power_limit;
          result.tried.push_back(result.last);
        }
      }
    }
    return result;
  }
};

/// Flat above 200 W, then ever slower; draws what it may.
Plant knee() {
  return {[](double w) { return w >= 200 ? 1000 - 0.05 * (250 - w) : 997.5 - 3 * (200 - w); },
          [](double w) { return std::min(w, 240.0); }};
}

std::unique_ptr<Policy> sweep_with_loss(double fraction) {
  Objective objective;
  objective.max_loss_fraction = fraction;
  auto policy = make("sweep", objective);
  EXPECT_TRUE(policy) << policy.error().message();
  return std::move(*policy);
}

TEST(Registry, KnowsItsNamesAndExplainsOthers) {
  EXPECT_EQ((*make("none", {}))->name(), "none");
  EXPECT_EQ((*make("static:250W", {}))->name(), "static:250W");
  for (const char* bad : {"", "stat", "static", "static:", "static:250", "static:-5W", "static:0W", "sweep2", "None"}) {
    const auto made = make(bad, {});
    ASSERT_FALSE(made) << bad;
    EXPECT_EQ(made.error().code, ErrorCode::input) << bad;
    EXPECT_FALSE(made.error().remedy.empty() && made.error().what.find("above") == std::string::npos) << bad;
  }
  EXPECT_NE(make("bandits", {}).error().message().find("static:WATTS"), std::string::npos);
}

TEST(Registry, SweepNeedsExactlyOneObjectiveInItsRange) {
  EXPECT_FALSE(make("sweep", {}));
  EXPECT_FALSE(make("sweep", {1.0, 0.01}));
  EXPECT_FALSE(make("sweep", {-1.0, {}}));
  EXPECT_FALSE(make("sweep", {{}, 1.0}));
  EXPECT_FALSE(make("sweep", {{}, std::nan("")}));
  EXPECT_TRUE(make("sweep", {2.0, {}}));
}

TEST(None, WishesNothing) {
  auto policy = *make("none", {});
  Observation o;
  o.gpus.resize(1);
  EXPECT_TRUE(policy->decide(o).gpus.empty());
}

TEST(Static, WishesItsLimitForEveryGpu) {
  auto policy = *make("static:187.5 W", {});
  Observation o;
  o.gpus.resize(3);
  const Proposal proposal = policy->decide(o);
  ASSERT_EQ(proposal.gpus.size(), 3u);
  for (const auto& gpu : proposal.gpus) EXPECT_EQ(gpu.power_limit, 187'500_mW);
}

TEST(Sweep, FindsTheKneeOfAKnownCurve) {
  auto policy = sweep_with_loss(0.012);
  const auto run = knee().run(*policy, 300, 1);
  EXPECT_EQ(run.last, 200'000_mW);
  // 225 and 200 allowed; 175 loses 7.75 %, so that nothing below it is tried.
  EXPECT_EQ(run.tried, (std::vector<Milliwatts>{225'000_mW, 200'000_mW, 175'000_mW, 200'000_mW}));
}

TEST(Sweep, ByAlphaTakesWhatTheWeightSays) {
  // At 175 W: saved = 1 − (175/240)/(0.9225) = 21.0 %, lost 7.75 %; at 200 W: saved 16.5 %, lost 0.25 %.
  const auto at = [](double alpha) {
    Objective objective;
    objective.alpha = alpha;
    return knee().run(**make("sweep", objective), 300, 1).last;
  };
  EXPECT_EQ(at(5.0), 200'000_mW);
  EXPECT_LT(at(0.0), 200'000_mW);
}

TEST(Sweep, RespectsTheLossUnderNoise) {
  int over = 0;
  constexpr int kRuns = 200;
  for (int seed = 0; seed < kRuns; ++seed) {
    Plant plant = knee();
    plant.noise = 0.01;
    auto policy = sweep_with_loss(0.012);
    const auto run = plant.run(*policy, 2160, static_cast<std::uint64_t>(seed));
    const double loss = 1 - run.tokens / (plant.rate(250) * run.seconds);
    if (loss > 0.012) ++over;
  }
  EXPECT_LE(over, kRuns / 20);
}

TEST(Sweep, ItsOwnCostCounts) {
  auto policy = sweep_with_loss(0.012);
  const Plant plant = knee();
  const auto run = plant.run(*policy, 100, 1);
  EXPECT_LT(run.tokens, plant.rate(200) * run.seconds);
}

TEST(Sweep, NoiseAloneIsSeldomTakenForASaving) {
  const Plant flat{[](double) { return 1000.0; }, [](double) { return 90.0; }, 0.003};
  int left = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    auto policy = sweep_with_loss(0.012);
    if (flat.run(*policy, 300, seed).last != flat.found) ++left;
  }
  EXPECT_LE(left, 20);
}

TEST(Sweep, GridEndsAtTheBoardsMinimumAndNeverGoesAboveWhatWasFound) {
  Plant plant = knee();
  plant.rate = [](double) { return 1000.0; };
  plant.minimum = 137'500_mW;
  plant.found = 240'000_mW;
  auto policy = sweep_with_loss(0.012);
  const auto run = plant.run(*policy, 400, 1);
  EXPECT_EQ(run.tried, (std::vector<Milliwatts>{225'000_mW, 200'000_mW, 175'000_mW, 150'000_mW, 137'500_mW}));
}

TEST(Sweep, NeverMeasuredMeansTheLimitFoundStays) {
  auto policy = sweep_with_loss(0.012);
  EXPECT_EQ(knee().run(*policy, 400, 1, Phase::evaluation).last, 250'000_mW);
}

TEST(Sweep, StepsLongerThanManyIntervalsAreWaitedFor) {
  auto policy = sweep_with_loss(0.012);
  Plant plant = knee();
  plant.intervals_per_step = 7;
  EXPECT_EQ(plant.run(*policy, 2000, 1).last, 200'000_mW);
}

TEST(Sweep, ResetForgets) {
  auto policy = sweep_with_loss(0.012);
  const auto first = knee().run(*policy, 200, 1);
  const auto second = knee().run(*policy, 200, 1);
  EXPECT_EQ(first.tried, second.tried);
}

TEST(Sweep, AGpuFoundLowerIsNotRaised) {
  auto policy = sweep_with_loss(0.012);
  Observation o;
  o.interval = 10_s;
  for (const char* name : {"GPU-a", "GPU-b"}) {
    GpuObservation gpu;
    gpu.device = DeviceId::of(name);
    gpu.limit_enforced = o.gpus.empty() ? 250'000_mW : 180'000_mW;
    gpu.minimum = 100'000_mW;
    o.gpus.push_back(gpu);
  }
  const Proposal proposal = policy->decide(o);
  ASSERT_EQ(proposal.gpus.size(), 2u);
  EXPECT_EQ(proposal.gpus[0].power_limit, 250'000_mW);
  EXPECT_EQ(proposal.gpus[1].power_limit, 180'000_mW);
}

TEST(Policies, TakeANewObjectiveOrRefuseItAsMakeWould) {
  const Objective bound{.alpha = {}, .max_loss_fraction = 0.01}, weight{.alpha = 2, .max_loss_fraction = {}};
  for (const char* spec : {"model", "sweep", "bandit"}) {
    const auto policy = make(spec, bound);
    ASSERT_TRUE(policy);
    EXPECT_TRUE((*policy)->set_objective(weight)) << spec;
    EXPECT_TRUE((*policy)->set_objective(bound)) << spec;
    EXPECT_FALSE((*policy)->set_objective({})) << spec;
    EXPECT_FALSE((*policy)->set_objective({.alpha = 2, .max_loss_fraction = 0.01})) << spec;
  }
  const auto pi = make("pi", bound);
  ASSERT_TRUE(pi);
  EXPECT_FALSE((*pi)->set_objective(weight)) << "it steers a loss";
  EXPECT_TRUE((*pi)->set_objective({.alpha = {}, .max_loss_fraction = 0.02}));
}

}  // namespace
}  // namespace flyball::policy
