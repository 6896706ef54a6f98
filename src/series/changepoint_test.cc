#include "series/changepoint.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace flyball::series {
namespace {

WallTime at(double s) { return WallTime(1'700'000'000'000'000'000) + Seconds(s); }

std::vector<Point> levels(std::initializer_list<std::pair<int, double>> parts, double sd, std::uint64_t seed,
                          double ar = 0) {
  Random random(seed);
  std::vector<Point> points;
  int t = 0;
  double noise = 0;
  for (const auto& [n, level] : parts)
    for (int i = 0; i < n; ++i) {
      noise = ar * noise + std::sqrt(1 - ar * ar) * sd * random.normal();
      points.push_back({at(t++), level + noise});
    }
  return points;
}

TEST(ChangePoints, LevelsAreFoundWhereTheyChange) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto found = change_points(usable_samples(levels({{300, 400}, {40, 360}, {200, 400}, {100, 250}}, 10, seed)));
    ASSERT_EQ(found.segments.size(), 4u) << seed;
    EXPECT_NEAR((found.segments[1].start - at(300)).value(), 0, 2) << seed;
    EXPECT_NEAR((found.segments[2].start - at(340)).value(), 0, 2) << seed;
    EXPECT_NEAR((found.segments[3].start - at(540)).value(), 0, 1) << seed;
    EXPECT_NEAR(found.segments[3].mean, 250, 4);
    EXPECT_NEAR(found.noise_sd, 10, 2.5);
  }
}

TEST(ChangePoints, NoiseAloneHasNone) {
  int white = 0, correlated = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    white += change_points(usable_samples(levels({{800, 400}}, 10, seed))).segments.size() > 1;
    correlated += change_points(usable_samples(levels({{800, 400}}, 10, seed, 0.7))).segments.size() > 1;
  }
  EXPECT_LE(white, 2);
  EXPECT_LE(correlated, 10);
}

TEST(ChangePoints, ASpreadThatChangesIsFoundWhenAskedFor) {
  Random random(5);
  std::vector<Point> points;
  for (int i = 0; i < 600; ++i) points.push_back({at(i), 400 + (i < 400 ? 20 : 3) * random.normal()});
  const auto found = change_points(usable_samples(points), {.variance_too = true});
  ASSERT_EQ(found.segments.size(), 2u);
  EXPECT_NEAR((found.segments[1].start - at(400)).value(), 0, 6);
  EXPECT_NEAR(found.segments[1].sd, 3, 0.5);
}

TEST(ChangePoints, ConstantAndShortSeriesEndWell) {
  EXPECT_EQ(change_points(usable_samples(levels({{100, 400}}, 0, 1))).segments.size(), 1u);
  EXPECT_TRUE(change_points(usable_samples(levels({{5, 400}}, 0, 1))).segments.empty());
  const auto stepped = change_points(usable_samples(levels({{50, 400}, {50, 401}}, 0, 1)));
  ASSERT_EQ(stepped.segments.size(), 2u);
  EXPECT_EQ(stepped.segments[1].start, at(50));
}

TEST(ChangePoints, LongSeriesAreAveragedFirst) {
  const auto found = change_points(usable_samples(levels({{30'000, 400}, {30'000, 430}}, 10, 2)));
  EXPECT_GT(found.cell_samples, 1u);
  ASSERT_EQ(found.segments.size(), 2u);
  EXPECT_NEAR((found.segments[1].start - at(30'000)).value(), 0, 30);
}

}  // namespace
}  // namespace flyball::series
