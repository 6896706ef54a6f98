// `slack` and its parts: the ladder of clocks, and ranks that wait.

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "policy/ladder.h"
#include "policy/model.h"
#include "policy/ranks.h"

namespace flyball::policy {
namespace {

/// A synchronous job: the slowest rank sets the pace, and a part of the step hides slower work.
class Job {
 public:
  Job(std::vector<double> work, double hidden, bool tells, std::uint64_t seed)
      : work_(std::move(work)), hidden_(hidden), tells_(tells), random_(seed) {
    for (std::size_t i = 0; i < work_.size(); ++i) {
      GpuObservation gpu;
      gpu.device = DeviceId::of("GPU-" + std::to_string(i));
      gpu.limit_enforced = gpu.maximum = Milliwatts(500'000);
      gpu.minimum = Milliwatts(200'000);
      gpus_.push_back(gpu);
    }
  }
  double energy() const { return energy_; }
  double steps() const { return steps_; }
  double slowest_share() const { return time_of(0) / pace(); }

  Observation next(bool clocks) {
    at_ = at_ + Seconds(10);
    const double step = pace();
    steps_ += 10 / step;
    Observation o;
    o.at = at_;
    o.interval = Seconds(10);
    o.remaining = Seconds(6 * 3600.0 - at_.seconds());
    o.phase = Phase::training;
    o.clocks_unlocked = clocks;
    o.tokens_per_second = 1000 / step * (1 + 0.003 * random_.normal());
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      GpuObservation& gpu = gpus_[i];
      const double x = clock(i) / kTop, busy = time_of(i) / step;
      const double power = (100 + 380 * x * x * x) * (busy + 0.35 * (1 - busy));
      energy_ += power * 10;
      gpu.power = Watts(power);
      gpu.energy = Joules(power * 10 * (1 + 0.002 * random_.normal()));
      gpu.sm_clock = Hertz(clock(i));
      if (tells_) gpu.wait_fraction = 1 - busy * (1 - 0.001 * random_.uniform());
    }
    o.gpus = gpus_;
    return o;
  }
  void set(const Proposal& proposal) {
    for (const GpuProposal& wish : proposal.gpus) {
      const auto gpu = std::find_if(gpus_.begin(), gpus_.end(), [&](const auto& g) { return g.device == wish.device; });
      if (wish.power_limit) gpu->limit_enforced = *wish.power_limit;
      if (wish.unlock_clocks) gpu->clock_ceiling.reset();
      if (wish.locked_clocks) gpu->clock_ceiling = wish.locked_clocks->high;
    }
  }

 private:
  static constexpr double kTop = 1.41e9;
  double clock(std::size_t i) const {
    const double by_limit = kTop * std::cbrt(std::min(1.0, ((*gpus_[i].limit_enforced).watts().value() - 100) / 380));
    return std::min(by_limit, gpus_[i].clock_ceiling ? gpus_[i].clock_ceiling->value() : kTop);
  }
  double time_of(std::size_t i) const { return work_[i] * (1 - hidden_) * kTop / clock(i); }
  double pace() const {
    double longest = 1;  // s
    for (std::size_t i = 0; i < work_.size(); ++i) longest = std::max(longest, time_of(i));
    return longest;
  }

  std::vector<double> work_;
  double hidden_;
  bool tells_;
  Random random_;
  MonoTime at_;
  std::vector<GpuObservation> gpus_;
  double energy_ = 0, steps_ = 0;
};

struct Outcome {
  double saved, lost, slowest_share;
};

Outcome run(Job job, bool clocks, bool slack = true, std::uint64_t seed = 1) {
  Objective objective;
  objective.max_loss_fraction = 0.012;
  const auto policy = std::move((slack ? Model::make_slack(objective) : Model::make(objective)).value());
  policy->reset(seed);
  Job base = job;
  for (int i = 0; i < 2160; ++i) {
    (void)base.next(clocks);
    job.set(policy->decide(job.next(clocks)));
  }
  return {1 - job.energy() / base.energy() / (job.steps() / base.steps()), 1 - job.steps() / base.steps(),
          job.slowest_share()};
}

TEST(Ladder, ClocksGoDownFromTheOneFoundAndEndInAReset) {
  Job job({1, 1}, 0, false, 1);
  Observation seen = job.next(true);
  const auto ladder = Ladder::of(seen, Lever::locked_clocks);
  ASSERT_TRUE(ladder);
  EXPECT_EQ(ladder->setting(ladder->top()), 1.41e9);
  EXPECT_EQ(ladder->setting(ladder->top() - 1), 1.395e9);
  EXPECT_LT(ladder->setting(0), 0.62 * 1.41e9);
  const std::vector<double> below = {0, 0.1};
  const Proposal lower = ladder->propose(ladder->top() - 4, below, "");
  EXPECT_EQ(lower.gpus[0].locked_clocks->high, Hertz(1.35e9));
  EXPECT_EQ(lower.gpus[1].locked_clocks->high, Hertz(1.215e9)) << "whole steps of 15 MHz";
  EXPECT_FALSE(lower.gpus[0].power_limit) << "limits stay as they are";
  const Proposal found = ladder->propose(ladder->top(), below, "");
  EXPECT_TRUE(found.gpus[1].unlock_clocks);
  EXPECT_FALSE(found.gpus[1].locked_clocks);
  job.set(lower);
  EXPECT_EQ(ladder->in_force(job.next(true)), 1.35e9) << "of the rank that sets the pace";
}

TEST(Ladder, LimitsNeverRiseAboveWhatWasFound) {
  Job job({1, 1}, 0, false, 1);
  Observation seen = job.next(false);
  seen.gpus[1].limit_enforced = Milliwatts(300'000);
  const auto ladder = Ladder::of(seen, Lever::power_limit);
  ASSERT_TRUE(ladder);
  for (std::size_t rung = 0; rung < ladder->size(); ++rung) {
    const Proposal proposal = ladder->propose(rung, {}, "");
    EXPECT_LE(*proposal.gpus[1].power_limit, Milliwatts(300'000));
    EXPECT_FALSE(proposal.gpus[0].locked_clocks || proposal.gpus[0].unlock_clocks);
  }
}

TEST(Ranks, TheOneThatSetsThePaceIsNeverSlowedAndNobodyWhoDoesNotTellIs) {
  Observation seen;
  for (const double wait : {0.1, 0.2, 0.1}) {
    GpuObservation gpu;
    gpu.wait_fraction = wait;
    seen.gpus.push_back(gpu);
  }
  Ranks ranks;
  for (int i = 0; i < 20; ++i) ranks.learn(seen);
  EXPECT_EQ(ranks.below()[0], 0);
  EXPECT_EQ(ranks.below()[2], 0);
  EXPECT_GT(ranks.below()[1], 0.1);
  ranks.reset();
  seen.gpus[2].wait_fraction = Sample<double>::absent(Status::missing);
  for (int i = 0; i < 20; ++i) ranks.learn(seen);
  EXPECT_TRUE(ranks.below().empty());
}

TEST(Slack, SlowsWhoWaitsByEitherLeverAndNobodyWaitsForThem) {
  // The first rank has a tenth more work than the seven others.
  const std::vector<double> work = {1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9};
  for (const bool clocks : {true, false}) {
    const Outcome together = run(Job(work, 0, false, 3), clocks);
    const Outcome apart = run(Job(work, 0, true, 3), clocks);
    EXPECT_GT(apart.saved, together.saved + 0.05) << clocks;
    EXPECT_LE(apart.lost, 0.0125) << clocks;
    EXPECT_GT(apart.slowest_share, 0.995) << "it sets the pace still";
  }
}

TEST(Slack, GoesToTheEndOfWhatTheStepHides) {
  const Outcome outcome = run(Job({1}, 0.1, true, 2), true);
  // At 0.9 of the clock nothing is lost, and 1.2 % more may be.
  const double free_power = (100 + 380 * 0.729) / ((100 + 380) * (0.9 + 0.35 * 0.1));
  EXPECT_GT(outcome.saved, 1 - free_power);
  EXPECT_LE(outcome.lost, 0.0125);
}

TEST(Slack, IsModelWhereThereIsNothingMoreToUse) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Outcome model = run(Job({1}, 0, true, seed), false, false, seed);
    const Outcome slack = run(Job({1}, 0, true, seed), false, true, seed);
    EXPECT_EQ(slack.saved, model.saved);
  }
}

}  // namespace
}  // namespace flyball::policy
