#include "series/integrate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "series/node_power_test_data.h"

namespace flyball::series {
namespace {

WallTime at(double seconds) { return WallTime(1'700'000'000'000'000'000) + Seconds(seconds); }

TEST(Integrate, TrapezoidIsExactForStraightLinesAndClipsInsideAStep) {
  const std::vector<Point> ramp{{at(0), 0}, {at(1), 10}, {at(3), 30}, {at(4), 40}};
  const Integral all = integrate_power(ramp);
  EXPECT_DOUBLE_EQ(all.energy.value(), 80);  // ∫ 10 t from 0 to 4
  EXPECT_DOUBLE_EQ(all.coverage_fraction(), 1);
  const Integral part = integrate_power(ramp, Interval{at(0.5), at(2)});
  EXPECT_NEAR(part.energy.value(), 5 * (4 - 0.25), 1e-9);
  EXPECT_NEAR(part.covered.value(), 1.5, 1e-9);
}

TEST(Integrate, AHoleAddsNothingUnlessBridgingIsAskedFor) {
  std::vector<Point> points;
  for (int i = 0; i <= 10; ++i) points.push_back({at(i), 100});
  for (int i = 30; i <= 40; ++i) points.push_back({at(i), 100});
  const Integral plain = integrate_power(points);
  EXPECT_DOUBLE_EQ(plain.energy.value(), 2000);
  EXPECT_DOUBLE_EQ(plain.coverage_fraction(), 0.5);
  EXPECT_EQ(plain.holes, 1u);
  EXPECT_DOUBLE_EQ(plain.longest_hole.value(), 20);
  EXPECT_DOUBLE_EQ(plain.mean_power().value(), 100);
  const Integral bridged = integrate_power(points, {}, {.periods = 3.5, .bridge = true});
  EXPECT_DOUBLE_EQ(bridged.energy.value(), 4000);
  EXPECT_DOUBLE_EQ(bridged.bridged.value(), 20);
  EXPECT_DOUBLE_EQ(bridged.coverage_fraction(), 0.5) << "bridging invents energy, not coverage";
}

TEST(Integrate, ClipsWiderThanTheRecordingHoldTheEdgeForOnePeriodAtMost) {
  std::vector<Point> points;
  for (int i = 0; i <= 10; ++i) points.push_back({at(2 * i), 50});
  const Integral near = integrate_power(points, Interval{at(-1), at(21)});
  EXPECT_DOUBLE_EQ(near.energy.value(), 1100);
  EXPECT_DOUBLE_EQ(near.edges.value(), 2);
  const Integral wide = integrate_power(points, Interval{at(-100), at(20)});
  EXPECT_DOUBLE_EQ(wide.edges.value(), 2);
  EXPECT_NEAR(wide.coverage_fraction(), 22.0 / 120, 1e-12);
  const Integral outside = integrate_power(points, Interval{at(100), at(200)});
  EXPECT_DOUBLE_EQ(outside.energy.value(), 0);
}

TEST(Integrate, BadPointsReachNoTotalAndAreCounted) {
  const std::vector<Point> points{{at(0), 100},  {at(1), 4e9, Status::garbage},
                                  {at(1), 100},  {at(1), 900},    // stamp seen before
                                  {at(50), 100},                  // far in the future
                                  {at(2), 100},  {at(1.5), 700},  // late
                                  {at(3), NAN},  {at(3), 100}};
  const Integral sum = integrate_power(points);
  EXPECT_DOUBLE_EQ(sum.energy.value(), 300);
  EXPECT_EQ(sum.skipped.not_ok, 2u);
  EXPECT_EQ(sum.skipped.duplicate, 1u);
  EXPECT_EQ(sum.skipped.disordered, 2u);
}

TEST(Integrate, NothingGivesNothing) {
  EXPECT_EQ(integrate_power(std::vector<Point>{}).energy.value(), 0);
  EXPECT_EQ(integrate_power(std::vector<Point>{{at(0), 5}}).energy.value(), 0);
  const Integral inverted = integrate_power(std::vector<Point>{{at(0), 5}, {at(1), 5}}, Interval{at(1), at(0)});
  EXPECT_EQ(inverted.energy.value(), 0);
  EXPECT_EQ(inverted.coverage_fraction(), 0);
}

TEST(Integrate, StreamingEqualsBatchOnJitteredSeriesWithHolesAndBadStamps) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    std::vector<Point> points;
    double t = 0;
    for (int i = 0; i < 60; ++i) {
      t += random.uniform(0.8, 1.2) + (random.chance(0.05) ? 10 : 0);
      points.push_back({at(t), random.uniform(0, 500), random.chance(0.1) ? Status::failed : Status::ok});
      if (random.chance(0.05)) points.push_back(points.back());
    }
    const Integral reference = integrate_power(points);
    const Interval clip{at(10.3), at(t - 7.7)};
    PowerIntegrator whole(reference.period), clipped(reference.period, clip);
    for (const Point& p : points) {
      whole.add(p);
      clipped.add(p);
    }
    ASSERT_NEAR(whole.result().energy.value(), reference.energy.value(), 1e-6) << "seed " << seed;
    ASSERT_EQ(whole.result().skipped.total(), reference.skipped.total()) << "seed " << seed;
    const Integral clipped_batch = integrate_power(points, clip);
    ASSERT_NEAR(clipped.result().energy.value(), clipped_batch.energy.value(), 1e-6) << "seed " << seed;
    ASSERT_NEAR(clipped.result().coverage_fraction(), clipped_batch.coverage_fraction(), 1e-9) << "seed " << seed;
    ASSERT_EQ(clipped.result().used, clipped_batch.used) << "seed " << seed;
  }
}

TEST(Integrate, StreamingDropsAFutureStampNotWhatFollowsIt) {
  PowerIntegrator sum(Seconds(1));
  for (double t : {0.0, 1.0, 2.0, 5000.0, 3.0, 4.0}) sum.add({at(t), 100});
  EXPECT_DOUBLE_EQ(sum.result().energy.value(), 400);
  EXPECT_EQ(sum.result().skipped.disordered, 1u);
}

TEST(Integrate, CumulativeAgreesWithClippedIntegrals) {
  Random random(7);
  std::vector<Point> points;
  double t = 0;
  for (int i = 0; i < 200; ++i)
    points.push_back({at(t += random.uniform(0.5, 1.5) + (i % 50 == 49 ? 30 : 0)), random.uniform(0, 100)});
  const Samples samples = usable_samples(points);
  const Cumulative cumulative(samples);
  std::size_t hint = 0;
  for (int i = 0; i < 500; ++i) {
    const double a = random.uniform(0, samples.t_s.back());
    const double b = random.uniform(a, samples.t_s.back());
    const auto area = cumulative.between(a, b, hint);
    const Integral reference = integrate_power(samples, Interval{samples.instant_of(a), samples.instant_of(b)});
    ASSERT_NEAR(area.energy_j, reference.energy.value(), 1e-4);
    ASSERT_NEAR(area.covered_s, reference.covered.value(), 1e-6);
  }
}

// S1: the published totals of the GPT-3 runs, as run mean of node energy clipped at run_start and run_stop, plus the
// declared interconnect of 59,570 W.
TEST(Integrate, GptRunsGiveThePublishedEnergy) {
  const auto runs = test::node_power("64x_gpt3");
  if (runs.empty()) GTEST_SKIP() << "shared data not there";
  ASSERT_EQ(runs.size(), 2u);
  double ac = 0, dc = 0;
  for (const auto& [name, run] : runs) {
    const Interval clip = run.run();
    const Joules interconnect = Watts(59570) * clip.length();
    Joules sums[2] = {interconnect, interconnect};
    double coverage = 1;
    for (const auto* nodes : {&run.ac, &run.dc})
      for (const auto& [node, points] : *nodes) {
        const Integral sum = integrate_power(points, clip);
        sums[nodes == &run.dc] += sum.energy;
        coverage = std::min(coverage, sum.coverage_fraction());
      }
    EXPECT_GT(coverage, 0.998);
    ac += sums[0].value() / 2;
    dc += sums[1].value() / 2;
  }
  RecordProperty("ac_ratio", std::to_string(ac / 1699340340.0));
  RecordProperty("dc_ratio", std::to_string(dc / 1676757080.0));
  std::printf("S1: AC %.5f DC %.5f of the published totals\n", ac / 1699340340.0, dc / 1676757080.0);
  EXPECT_NEAR(ac / 1699340340.0, 1, 0.001);
  EXPECT_NEAR(dc / 1676757080.0, 1, 0.0015);
}

}  // namespace
}  // namespace flyball::series
