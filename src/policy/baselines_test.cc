// The simple policies on a plant whose truth is known: what each finds, what it never does, and what it costs.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "base/random.h"
#include "policy/policy.h"

namespace flyball::policy {
namespace {

using namespace literals;

constexpr double kMaxLoss = 0.012;

/// Rate as a function of the limit and of time, power as a function of the limit; two GPUs that move together.
struct Plant {
  std::function<double(double watts)> rate = [](double w) {
    return w >= 200 ? 1000 - 0.05 * (250 - w) : 997.5 - 3 * (200 - w);
  };
  std::function<double(double watts)> power = [](double w) { return std::min(w, 240.0); };
  std::function<double(double watts)> utilisation = [](double) { return 1.0; };
  std::function<Phase(int)> phase = [](int) { return Phase::training; };
  double noise = 0;
  double drift_sd = 0;  ///< OU, 1 h
  int intervals_per_step = 1;
  bool baseline_blocks = false;  ///< every tenth interval at the limits found, as a switchback does it
  Milliwatts minimum{100'000}, found{250'000};

  struct Run {
    std::vector<Milliwatts> limits;  ///< that held, interval by interval
    double loss = 0, saved = 0;
  };

  Run run(Policy& policy, int intervals, std::uint64_t seed) const {
    Random random(seed);
    policy.reset(seed);
    Run result;
    Milliwatts wished = found;
    double drift = drift_sd * random.normal(), tokens = 0, energy = 0, tokens0 = 0, energy0 = 0;
    for (int i = 0; i < intervals; ++i) {
      const bool baseline = baseline_blocks && i % 10 == 0;
      const Milliwatts limit = baseline ? found : wished;
      const double decay = std::exp(-10.0 / 3600);
      drift = decay * drift + drift_sd * std::sqrt(1 - decay * decay) * random.normal();
      Observation o;
      o.interval = 10_s;
      o.phase = phase(i);
      const bool dip = o.phase != Phase::training;
      const double true_rate = rate(limit.watts().value()) * (1 + drift) * (dip ? 0.05 : 1);
      if (i % intervals_per_step == 0) o.tokens_per_second = true_rate * (1 + noise * random.normal());
      for (const char* name : {"GPU-a", "GPU-b"}) {
        GpuObservation gpu;
        gpu.device = DeviceId::of(name);
        gpu.power = Watts(power(limit.watts().value()));
        gpu.energy = *gpu.power * o.interval;
        gpu.utilisation_fraction = dip ? 0 : utilisation(limit.watts().value());
        gpu.limit_enforced = limit;
        gpu.minimum = minimum;
        gpu.maximum = found;
        o.gpus.push_back(gpu);
      }
      tokens += true_rate, energy += power(limit.watts().value());
      tokens0 += rate(found.watts().value()) * (1 + drift), energy0 += power(found.watts().value());
      result.limits.push_back(limit);
      if (baseline) {
        policy.observe_baseline(o);
        continue;
      }
      const Proposal proposal = policy.decide(o);
      for (const GpuProposal& wish : proposal.gpus) {
        EXPECT_LE(*wish.power_limit, found) << policy.name();
        EXPECT_GE(*wish.power_limit, minimum) << policy.name();
      }
      if (!proposal.gpus.empty()) wished = *proposal.gpus.front().power_limit;
    }
    result.loss = 1 - tokens / tokens0;
    result.saved = 1 - energy / energy0 / (tokens / tokens0);
    return result;
  }
};

std::unique_ptr<Policy> policy_of(const std::string& name) {
  Objective objective;
  objective.max_loss_fraction = kMaxLoss;
  auto made = make(name, objective);
  EXPECT_TRUE(made) << made.error().message();
  return std::move(*made);
}

const std::vector<std::string> kAll = {"sweep", "threshold", "hysteresis", "utilisation", "pi", "bandit"};
/// Those that weigh tokens against watts.
const std::vector<std::string> kMeasuring = {"sweep", "pi", "bandit"};

TEST(Baselines, ThoseThatWeighNeedAnObjective) {
  for (const std::string& name : kMeasuring) {
    EXPECT_FALSE(make(name, {})) << name;
    EXPECT_FALSE(make(name, {1.0, 0.01})) << name;
    EXPECT_FALSE(make(name, {{}, 1.5})) << name;
  }
  EXPECT_FALSE(make("pi", {2.0, {}})) << "a weight names no loss to steer to";
  EXPECT_TRUE(make("bandit", {2.0, {}}));
  for (const char* name : {"threshold", "hysteresis", "utilisation"}) EXPECT_TRUE(make(name, {})) << name;
}

TEST(Baselines, AreListed) {
  for (const std::string& name : kAll) {
    const auto known = descriptions();
    EXPECT_TRUE(std::any_of(known.begin(), known.end(), [&](const Description& d) { return d.form == name; })) << name;
  }
}

TEST(Baselines, StayBetweenTheMinimumAndWhatWasFound) {
  // The plant itself expects it of every wish; curves, noise, utilisation and missing rates are of all kinds.
  for (const std::string& name : kAll) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Random random(seed + 1000);
      Plant plant;
      const double slope = random.uniform(-2, 8), busy = random.uniform(0, 1.2);
      plant.rate = [slope](double w) { return std::max(1.0, 1000 - slope * (250 - w)); };
      plant.utilisation = [busy](double w) { return busy * 250 / w; };
      plant.noise = random.uniform(0, 0.2);
      plant.minimum = Milliwatts(static_cast<std::int64_t>(random.uniform(50'000, 250'000)));
      plant.intervals_per_step = static_cast<int>(1 + random.below(4));
      plant.baseline_blocks = random.chance(0.5);
      plant.run(*policy_of(name), 400, seed);
    }
  }
}

TEST(Baselines, SameSeedSameWishesAndResetForgets) {
  for (const std::string& name : kAll) {
    Plant plant;
    plant.noise = 0.01;
    auto policy = policy_of(name);
    const auto first = plant.run(*policy, 500, 3).limits;
    EXPECT_EQ(first, plant.run(*policy, 500, 3).limits) << name;
    EXPECT_EQ(first, plant.run(*policy_of(name), 500, 3).limits) << name;
  }
}

TEST(Baselines, BoardsNotKnownYetAreLeftAlone) {
  for (const std::string& name : kAll) {
    auto policy = policy_of(name);
    policy->reset(1);
    Observation o;
    o.gpus.resize(2);
    EXPECT_TRUE(policy->decide(o).gpus.empty()) << name;
    policy->observe_baseline(o);
  }
}

TEST(Baselines, ACheckpointMovesNothing) {
  // While the job writes a checkpoint it stands nearly still and its GPUs are idle.
  for (const std::string& name : kAll) {
    Plant plant;
    plant.noise = 0.003;
    plant.phase = [](int i) { return i % 50 == 49 ? Phase::checkpoint : Phase::training; };
    const auto limits = plant.run(*policy_of(name), 600, 1).limits;
    for (std::size_t i = 49; i + 1 < limits.size(); i += 50) EXPECT_EQ(limits[i + 1], limits[i]) << name << ' ' << i;
  }
}

TEST(UtilisationRules, AnUntoldDipIsPassedOver) {
  for (const char* name : {"threshold", "hysteresis", "utilisation"}) {
    Plant plant;
    int interval = 0;  // two of twelve intervals are a checkpoint that nobody tells of
    plant.utilisation = [&interval](double) { return (interval++ / 2) % 12 < 2 ? 0.0 : 0.97; };
    const auto run = plant.run(*policy_of(name), 300, 1);
    for (const Milliwatts limit : run.limits) ASSERT_EQ(limit, plant.found) << name;
  }
}

TEST(UtilisationRules, FullUtilisationKeepsTheLimitFound) {
  for (const char* name : {"threshold", "hysteresis", "utilisation"}) {
    EXPECT_EQ(Plant().run(*policy_of(name), 300, 1).limits.back(), 250'000_mW) << name;
  }
}

TEST(UtilisationRules, AnUnderUsedGpuIsLowered) {
  Plant plant;
  plant.utilisation = [](double) { return 0.5; };
  EXPECT_EQ(plant.run(*policy_of("threshold"), 300, 1).limits.back(), 100'000_mW);
  EXPECT_EQ(plant.run(*policy_of("hysteresis"), 300, 1).limits.back(), 100'000_mW);
  EXPECT_EQ(plant.run(*policy_of("utilisation"), 300, 1).limits.back(), Milliwatts(131'579));  // 250 · 0.5 / 0.95
}

TEST(UtilisationRules, TheThresholdHuntsWhereHysteresisRests) {
  // Slower clocks fill the time: 75 % at 250 W, 94 % at 200 W.
  Plant plant;
  plant.utilisation = [](double w) { return 0.75 * 250 / w; };
  const auto changes = [&](const char* name) {
    const auto limits = plant.run(*policy_of(name), 600, 1).limits;
    int count = 0;
    for (std::size_t i = 301; i < limits.size(); ++i) count += limits[i] != limits[i - 1];
    return count;
  };
  EXPECT_GT(changes("threshold"), 10);
  EXPECT_EQ(changes("hysteresis"), 0);
}

TEST(Pi, SettlesWhereTheLossIsTheOneAllowed) {
  auto policy = policy_of("pi");
  const auto run = Plant().run(*policy, 600, 1);
  // 1 − 0.012 of 1000 tokens/s is reached at 196.8 W.
  std::size_t there = 0;
  for (std::size_t i = 200; i < 600; ++i) there += std::abs(run.limits[i].value() - 196'833) < 1000 ? 1 : 0;
  EXPECT_GT(there, 350u);
  EXPECT_LE(run.loss, kMaxLoss);
}

TEST(Pi, BuysABaselineEveryHalfHourUnlessItIsGivenOne) {
  const auto at_found = [](bool given) {
    Plant plant;
    plant.baseline_blocks = given;
    const auto limits = plant.run(*policy_of("pi"), 2160, 1).limits;
    return std::count(limits.begin() + 100, limits.end(), plant.found);
  };
  EXPECT_NEAR(static_cast<double>(at_found(false)), 2060.0 / 187 * 7, 10);
  EXPECT_EQ(at_found(true), 206) << "the blocks alone";
}

TEST(Bandit, FindsTheKnee) {
  const auto run = Plant().run(*policy_of("bandit"), 1000, 1);
  const auto held = std::count(run.limits.end() - 500, run.limits.end(), 200'000_mW);
  EXPECT_GT(held, 400);
}

TEST(Bandit, ByAlphaTakesWhatTheWeightSays) {
  const auto most_held = [](double alpha) {
    Objective objective;
    objective.alpha = alpha;
    Plant plant;
    plant.noise = 0.003;
    const auto run = plant.run(**make("bandit", objective), 1000, 1);
    return std::count(run.limits.end() - 500, run.limits.end(), 200'000_mW) > 400;
  };
  EXPECT_TRUE(most_held(5.0));
  EXPECT_FALSE(most_held(0.0)) << "without a price on loss, lower limits save more";
}

TEST(Bandit, ForgetsWhatIsNoLongerTrue) {
  Plant plant;
  int calls = 0;  // halfway the job becomes one on which no limit costs anything down to 150 W
  plant.rate = [&calls](double w) {
    ++calls;
    const double knee = calls > 2 * 1500 ? 150 : 200;
    return w >= knee ? 1000 : 1000 - 3 * (knee - w);
  };
  plant.noise = 0.003;
  const auto limits = plant.run(*policy_of("bandit"), 4000, 1).limits;
  EXPECT_GT(std::count(limits.begin() + 1000, limits.begin() + 1500, 200'000_mW), 350);
  EXPECT_GT(std::count(limits.end() - 500, limits.end(), 150'000_mW), 350);
}

TEST(Baselines, UnderNoiseAndDriftLossIsKeptAndSomethingIsSaved) {
  for (const std::string& name : kMeasuring) {
    for (const double noise : {0.003, 0.01}) {
      Plant plant;
      plant.noise = noise;
      plant.drift_sd = 0.005;
      int over = 0, far_over = 0;
      double saved = 0;
      constexpr int kRuns = 60;
      for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
        const auto run = plant.run(*policy_of(name), 2160, seed);
        over += run.loss > kMaxLoss;
        far_over += run.loss > 0.02;
        saved += run.saved / kRuns;
      }
      EXPECT_LE(over, kRuns / 4) << noise;
      EXPECT_EQ(far_over, 0) << noise;
      EXPECT_GT(saved, 0.08) << noise;
    }
  }
}

}  // namespace
}  // namespace flyball::policy
