#include "evaluate/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace flyball::evaluate {
namespace {

curve::MeasuredCurve measured(const std::string& network, double steepness) {
  curve::MeasuredCurve made{"board", network + " job", network, {}};
  for (int w = 100; w <= 250; w += 25) {
    const double slow = w < 220 ? 1 + steepness * std::pow((220.0 - w) / 100, 1.7) : 1;
    made.points.push_back({Milliwatts(w * 1000), Seconds(slow), Watts(std::min(w, 220))});
  }
  return made;
}

curve::MeasuredCurve flat() {
  curve::MeasuredCurve made{"board", "flat job", "flat", {}};
  for (int w = 100; w <= 250; w += 25) made.points.push_back({Milliwatts(w * 1000), Seconds(1), Watts(60)});
  return made;
}

Options options(std::vector<std::string> policies) {
  Options made;
  made.policies = std::move(policies);
  made.objective.max_loss_fraction = 0.012;
  made.seeds = 2;
  return made;
}

TEST(Evaluate, NoControlSavesNothingAndTheBestMixIsTheUpperBound) {
  const auto done = evaluate_curves({measured("a", 0.4), measured("b", 0.8)},
                                    options({"none", "static", "static:150W", "sweep", "model", "oracle"}));
  ASSERT_TRUE(done) << done.error().message();
  const auto summaries = summarize(*done);
  ASSERT_EQ(summaries.size(), 6u);
  EXPECT_NEAR(summaries[0].saved_fraction, 0, 1e-12);
  EXPECT_NEAR(summaries[0].loss_fraction, 0, 1e-12);
  const double ideal = summaries[5].saved_fraction;
  for (const std::size_t causal_within_bound : {1u, 4u})
    EXPECT_LE(summaries[causal_within_bound].saved_fraction, ideal);
  EXPECT_GT(summaries[4].pooled_ratio.value, 0.85);
  EXPECT_GT(summaries[2].loss_fraction, 0.05);  // a limit that takes no bound
  EXPECT_TRUE(summaries[1].hindsight && summaries[5].hindsight && !summaries[4].hindsight);
}

TEST(Evaluate, SavesNothingWhereThereIsNothingToSave) {
  const auto done = evaluate_curves({flat()}, options({"model", "sweep", "bandit", "pi"}));
  ASSERT_TRUE(done);
  for (const Summary& summary : summarize(*done)) {
    EXPECT_NEAR(summary.saved_fraction, 0, 0.001) << summary.policy;
    EXPECT_NEAR(summary.loss_fraction, 0, 0.001) << summary.policy;
    EXPECT_FALSE(summary.median_decisions) << "there is nothing to reach";
  }
}

TEST(Evaluate, ThreadsChangeNothing) {
  Options one = options({"model", "sweep"}), two = one;
  one.threads = 1;
  two.threads = 2;
  const auto a = evaluate_curves({measured("a", 0.4), flat()}, one),
             b = evaluate_curves({measured("a", 0.4), flat()}, two);
  for (std::size_t p = 0; p < 2; ++p) {
    for (std::size_t i = 0; i < a->policies[p].scores.size(); ++i) {
      EXPECT_EQ(a->policies[p].scores[i].saved_fraction, b->policies[p].scores[i].saved_fraction);
    }
  }
}

TEST(Evaluate, WhoLostTooMuchIsScaledToTheBound) {
  const auto done = evaluate_curves({measured("a", 0.4)}, options({"model", "static:150W"}));
  const auto comparisons = compare(*done, "model");
  ASSERT_EQ(comparisons.size(), 1u);
  EXPECT_EQ(comparisons[0].ahead_fraction, 1);
  EXPECT_GT(comparisons[0].pooled_ratio, 1);
}

TEST(Evaluate, RefusesWhatItDoesNotKnow) {
  EXPECT_FALSE(evaluate_curves({flat()}, options({"magic"})));
  EXPECT_FALSE(evaluate_curves({flat()}, options({})));
  Options brief = options({"none"});
  brief.duration = Seconds(60);
  EXPECT_FALSE(evaluate_curves({flat()}, brief));
}

TEST(Oracle, FindsAMixWhereNoSingleLimitIsAllowed) {
  // Flat below a step: any limit below the highest loses 5 %.
  std::vector<curve::Point> points;
  for (int w = 100; w <= 250; w += 25)
    points.push_back({Milliwatts(w * 1000), Seconds(w < 250 ? 1 / 0.95 : 1), Watts(w)});
  const auto truth = curve::Curve::monotone(points);
  Objective objective;
  objective.max_loss_fraction = 0.01;
  EXPECT_EQ(best_static(*truth, objective, Watts(25)).saved_fraction, 0);
  const Ideal mix = best_mix(*truth, objective);
  EXPECT_NEAR(mix.loss_fraction, 0.01, 1e-9);
  EXPECT_GT(mix.saved_fraction, 0.1);
  EXPECT_TRUE(mix.binds);
}

TEST(CurvePlant, HasOneCourseOfNoiseWhateverTheLimit) {
  const auto truth = curve::Curve::monotone(measured("a", 0.4).points);
  const auto tokens = [&](Milliwatts limit) {
    VirtualClock clock;
    CurvePlant plant(*truth, {}, 9, clock);
    EXPECT_TRUE(plant.set_power_limit(DeviceId::of("GPU-curve"), limit));
    clock.advance(Seconds(3600));
    return plant.tokens();
  };
  EXPECT_NEAR(tokens(Milliwatts(150'000)) / tokens(Milliwatts(250'000)), truth->speed_fraction(Watts(150)), 1e-9);
}

}  // namespace
}  // namespace flyball::evaluate
