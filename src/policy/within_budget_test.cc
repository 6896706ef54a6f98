#include "policy/within_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace flyball::policy {
namespace {

using namespace literals;

constexpr Watts kBudget{2400};

std::vector<GpuObservation> boards(std::size_t n) {
  std::vector<GpuObservation> gpus(n);
  for (std::size_t i = 0; i < n; ++i) {
    gpus[i].device = DeviceId::of("GPU-" + std::to_string(i));
    gpus[i].limit_enforced = 400'000_mW;
    gpus[i].minimum = 100'000_mW;
    gpus[i].maximum = 400'000_mW;
  }
  return gpus;
}

Watts sum_of(const Proposal& proposal) {
  Watts sum;
  for (const GpuProposal& gpu : proposal.gpus) sum += gpu.power_limit->watts();
  return sum;
}

/// Wishes anything at all.
class Wild final : public Policy {
 public:
  std::string name() const override { return "wild"; }
  void reset(std::uint64_t seed) override { random = Random(seed); }
  Proposal decide(const Observation& observation) override {
    Proposal proposal;
    for (const GpuObservation& gpu : observation.gpus) {
      if (random.chance(0.2)) continue;
      proposal.gpus.push_back({gpu.device, {}});
      if (random.chance(0.8))
        proposal.gpus.back().power_limit = Milliwatts(static_cast<std::int64_t>(random.below(900'000)));
    }
    return proposal;
  }
  Random random{1};
};

TEST(DivideByWeight, GivesAllAndKeepsTheBounds) {
  Random random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::size_t n = 1 + random.below(9);
    std::vector<double> weights(n), low(n), high(n);
    double least = 0, most = 0;
    for (std::size_t i = 0; i < n; ++i) {
      weights[i] = 0.6 + 0.4 * random.uniform();
      low[i] = 50 + 100 * random.uniform();
      high[i] = low[i] + 300 * random.uniform();
      least += low[i];
      most += high[i];
    }
    const double total = least + (most - least) * 1.2 * random.uniform();
    const auto parts = divide_by_weight(total, weights, low, high);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_GE(parts[i], low[i]);
      EXPECT_LE(parts[i], high[i]);
      sum += parts[i];
    }
    EXPECT_LE(sum, total + 1e-6);
    EXPECT_NEAR(sum, std::min(total, most), 1e-6);
  }
}

TEST(WithinBudget, WhateverIsWishedForTheSumHolds) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    WithinBudget policy(kBudget, std::make_unique<Wild>(), "budget:2400W:wild");
    policy.reset(seed);
    Observation o;
    o.interval = 10_s;
    o.gpus = boards(8);
    const auto start = policy.at_start(o.gpus);
    ASSERT_TRUE(start);
    EXPECT_EQ(sum_of(*start), kBudget - Watts(8)) << "boards round to a watt";
    for (int i = 0; i < 200; ++i) {
      o.phase = random.chance(0.8) ? Phase::training : Phase::checkpoint;
      for (GpuObservation& gpu : o.gpus) {
        gpu.power =
            random.chance(0.9) ? Sample<Watts>(Watts(400 * random.uniform())) : Sample<Watts>::absent(Status::lost);
        gpu.wait_fraction = 0.5 * random.uniform();
        if (random.chance(0.05)) gpu.limit_enforced = Sample<Milliwatts>::absent(Status::failed);
      }
      const Proposal proposal = policy.decide(o);
      ASSERT_EQ(proposal.gpus.size(), 8u);
      ASSERT_LE(sum_of(proposal), kBudget) << "seed " << seed;
      for (const GpuProposal& gpu : proposal.gpus) {
        EXPECT_GE(*gpu.power_limit, 100'000_mW);
        EXPECT_LE(*gpu.power_limit, 400'000_mW);
        const auto at =
            std::find_if(o.gpus.begin(), o.gpus.end(), [&](const auto& g) { return g.device == gpu.device; });
        at->limit_enforced = *gpu.power_limit;
      }
    }
  }
}

/// Eight boards of which some can use no more than `most` W.
Proposal settled(double most) {
  const auto policy = make("budget:2.4kW:none", {});
  EXPECT_TRUE(policy);
  (*policy)->reset(1);
  Observation o;
  o.interval = 10_s;
  o.phase = Phase::training;
  o.gpus = boards(8);
  Proposal now = *(*policy)->at_start(o.gpus);
  for (int i = 0; i < 60; ++i) {
    for (std::size_t j = 0; j < 8; ++j) {
      const double limit = now.gpus[j].power_limit->watts().value();
      o.gpus[j].limit_enforced = *now.gpus[j].power_limit;
      o.gpus[j].power = Watts(std::min(j < 4 ? most : 400.0, limit));
    }
    now = (*policy)->decide(o);
  }
  return now;
}

TEST(WithinBudget, WhatABoardCannotUseGoesToOthers) {
  const Proposal now = settled(200);
  EXPECT_NEAR(now.gpus[0].power_limit->watts().value(), 220, 2);
  EXPECT_NEAR(now.gpus[7].power_limit->watts().value(), 380, 2);
  EXPECT_LE(sum_of(now), kBudget);
}

TEST(WithinBudget, EqualNeedsGetEqualShares) {
  for (const GpuProposal& gpu : settled(400).gpus) EXPECT_EQ(*gpu.power_limit, 299'000_mW);
}

TEST(WithinBudget, ARankThatWaitsForOthersGetsLess) {
  const auto policy = make("budget:2.4kW:none", {});
  ASSERT_TRUE(policy);
  (*policy)->reset(1);
  Observation o;
  o.interval = 10_s;
  o.phase = Phase::training;
  o.gpus = boards(8);
  Proposal now = *(*policy)->at_start(o.gpus);
  for (int i = 0; i < 120; ++i) {
    double slowest = 0;
    std::vector<double> busy(8);
    for (std::size_t j = 0; j < 8; ++j) {  // the last one has 10 % more work; time goes with 1/limit
      busy[j] = (j == 7 ? 1.1 : 1.0) * 300 / now.gpus[j].power_limit->watts().value();
      slowest = std::max(slowest, busy[j]);
    }
    for (std::size_t j = 0; j < 8; ++j) {
      o.gpus[j].limit_enforced = *now.gpus[j].power_limit;
      o.gpus[j].power = now.gpus[j].power_limit->watts();
      o.gpus[j].wait_fraction = 1 - busy[j] / slowest;
    }
    now = (*policy)->decide(o);
  }
  EXPECT_GT(*now.gpus[7].power_limit, *now.gpus[0].power_limit + 20'000_mW);
  EXPECT_LE(sum_of(now), kBudget);
}

TEST(WithinBudget, RefusesWhatCannotHold) {
  const auto policy = make("budget:700W:none", {});
  ASSERT_TRUE(policy);
  const auto start = (*policy)->at_start(boards(8));
  ASSERT_FALSE(start);
  EXPECT_EQ(start.error().code, ErrorCode::refused);
  auto unknown = boards(2);
  unknown[1].minimum = Sample<Milliwatts>::absent(Status::failed);
  EXPECT_EQ((*policy)->at_start(unknown).error().code, ErrorCode::unsupported);
  for (const char* spec : {"budget:", "budget:0W:none", "budget:2kW", "budget:2kW:", "budget:x:none",
                           "budget:2kW:budget:1kW:none", "budget:2kW:oracle"}) {
    EXPECT_FALSE(make(spec, {})) << spec;
  }
}

}  // namespace
}  // namespace flyball::policy
