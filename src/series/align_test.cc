#include "series/align.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "series/fleet_sum.h"
#include "series/node_power_test_data.h"

namespace flyball::series {
namespace {

WallTime at(double s) { return WallTime(1'700'000'000'000'000'000) + Seconds(s); }

// A load that wanders, as a function of true time.
struct Load {
  std::vector<double> level;
  explicit Load(std::uint64_t seed) {
    Random random(seed);
    double x = 0;
    for (int i = 0; i < 6000; ++i) level.push_back(x = 0.95 * x + random.normal());
  }
  double operator()(double t) const { return level[static_cast<std::size_t>(std::clamp(t, 0.0, 5999.0))]; }
};

Samples seen(const Load& load, double offset, double drift, double noise, std::uint64_t seed, double dt = 1) {
  Random random(seed);
  std::vector<Point> points;
  for (double t = 200; t < 3800; t += dt)
    points.push_back({at(t + offset + drift * t), 500 + 50 * load(t) + noise * random.normal()});
  return usable_samples(points);
}

TEST(Align, OffsetIsFoundWithinASampleAndStatedWithItsSign) {
  for (double offset : {-90.0, -7.0, 0.0, 3.0, 60.0}) {
    const Load load(1);
    const Alignment a = align(seen(load, 0, 0, 10, 2), seen(load, offset, 0, 10, 3));
    EXPECT_TRUE(a.identifiable) << a.note;
    EXPECT_NEAR(a.offset_s.value, offset, 0.5);
    EXPECT_LT(std::fabs(a.drift.value), 1e-4);
  }
}

TEST(Align, DriftIsFound) {
  const Load load(4);
  const Alignment a = align(seen(load, 0, 0, 10, 2), seen(load, 5, 0.001, 10, 3));
  ASSERT_TRUE(a.identifiable) << a.note;
  EXPECT_NEAR(a.drift.value, 0.001, 2e-4);
  EXPECT_LT(a.drift.low, 0.001);
  EXPECT_GT(a.drift.high, 0.001);
}

TEST(Align, PeriodicOrUnrelatedFeedsAreNotIdentifiable) {
  std::vector<Point> a, b, c;
  Random random(5);
  for (int i = 0; i < 2000; ++i) {
    a.push_back({at(i), 500 + 100 * std::sin(i * 0.6) + random.normal()});
    b.push_back({at(i + 3), 500 + 100 * std::sin(i * 0.6) + random.normal()});
    c.push_back({at(i), 500 + random.normal()});
  }
  EXPECT_FALSE(align(usable_samples(a), usable_samples(b)).identifiable);
  EXPECT_FALSE(align(usable_samples(a), usable_samples(c)).identifiable);
  EXPECT_FALSE(align(usable_samples(a), Samples{}).identifiable);
}

TEST(Align, PermutedNodesAreMatchedAndTwinsAreNot) {
  Random random(6);
  const Load common(1);
  std::vector<Samples> a, b;
  const std::vector<std::size_t> order{3, 0, 2, 1};
  std::vector<Load> own;
  for (std::uint64_t k = 0; k < 4; ++k) own.emplace_back(10 + k);
  const auto node = [&](std::size_t k, std::uint64_t seed, double noise) {
    Random r(seed);
    std::vector<Point> points;
    for (double t = 0; t < 2000; t += 2)
      points.push_back({at(t), 500 + 60 * common(t) + 15 * own[k](t) + noise * r.normal()});
    return usable_samples(points);
  };
  for (std::size_t k = 0; k < 4; ++k) a.push_back(node(k, k, 10));
  for (std::size_t k = 0; k < 4; ++k) b.push_back(node(order[k], 50 + k, 10));
  const auto matches = match_identities(a, b);
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(matches[i].b) << i;
    EXPECT_EQ(order[*matches[i].b], i);
  }
  b[1] = b[0];  // two series that are the same feed
  const auto doubtful = match_identities(a, b);
  EXPECT_FALSE(doubtful[order[0]].b);
}

// Nodes of one job do the same at the same time; what is left of the measured AC and DC series once that is taken out
// does not tell them apart, and 30 of the 64 logs were published twice. So nobody is matched, and nobody wrongly; a set
// of meters is matched with itself, but for the copies.
TEST(Align, MeasuredNodesAreMatchedOnlyWhereTheDataCanTell) {
  const auto runs = test::node_power("64x_gpt3");
  if (runs.empty()) GTEST_SKIP() << "shared data not there";
  const auto& run = runs.begin()->second;
  std::vector<Samples> ac, dc, distinct;
  for (const auto& [name, points] : run.ac) {
    ac.push_back(usable_samples(points));
    dc.push_back(usable_samples(run.dc.at(name)));
    const auto same = [&](const Samples& o) { return o.value == ac.back().value; };
    if (std::none_of(distinct.begin(), distinct.end(), same)) distinct.push_back(ac.back());
  }
  EXPECT_EQ(distinct.size(), 34u);
  const auto across = match_identities(ac, dc);
  for (std::size_t i = 0; i < across.size(); ++i) EXPECT_EQ(across[i].b.value_or(i), i);
  const auto self = match_identities(distinct, distinct);
  for (std::size_t i = 0; i < self.size(); ++i) EXPECT_EQ(self[i].b, i);
  for (const Match& m : match_identities(ac, ac)) EXPECT_TRUE(!m.b || m.margin > 5);
}

}  // namespace
}  // namespace flyball::series
