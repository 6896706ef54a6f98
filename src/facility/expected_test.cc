#include "facility/expected.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace flyball::facility {
namespace {

constexpr double kBlock = 600;
WallTime at(std::size_t block) { return WallTime(0) + Seconds(kBlock * static_cast<double>(block)); }

/// y = 3 + 2 x + noise; a third condition never occurs.
std::vector<Lesson> line(std::size_t count, double noise, std::uint64_t seed = 1) {
  Random random(seed);
  std::vector<Lesson> made;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = random.uniform(-1, 1);
    made.push_back({at(i), {1, x, 0}, 3 + 2 * x + noise * random.normal()});
  }
  return made;
}
const std::vector<double> kPrior = {5, 5, 5};

TEST(Expected, TooFewLessonsExpectNothing) {
  for (const std::size_t count : {0, 1, 47}) {
    Expected expected = Expected::learn(line(count, 0.1), kPrior, 0.01);
    EXPECT_FALSE(expected.learned()) << count;
    const Surprise surprise = expected.take(at(count), std::vector<double>{1, 0, 0}, 100);
    EXPECT_FALSE(surprise.known) << count;
    EXPECT_EQ(surprise.z, 0) << count;
  }
  EXPECT_TRUE(Expected::learn(line(48, 0.1), kPrior, 0.01).learned());
}

TEST(Expected, SaysHowFarABlockLiesFromTheLine) {
  Expected expected = Expected::learn(line(1000, 0.1), kPrior, 0.01);
  EXPECT_NEAR(expected.sd(), 0.1, 0.02);
  const Surprise usual = expected.take(at(1000), std::vector<double>{1, 0.5, 0}, 4.0);
  EXPECT_TRUE(usual.known);
  EXPECT_NEAR(usual.expected, 4.0, 0.03);
  const Surprise fault = expected.take(at(1001), std::vector<double>{1, 0.5, 0}, 5.0);
  EXPECT_NEAR(fault.difference, 1, 0.03);
  EXPECT_GT(fault.z, 5);
  EXPECT_NEAR(fault.z, fault.difference / fault.sd, 1e-12);
}

TEST(Expected, AGapOfWeeksChangesNothing) {
  Expected soon = Expected::learn(line(500, 0.1), kPrior, 0.01), late = soon;
  const std::vector<double> x = {1, 0.2, 0};
  EXPECT_DOUBLE_EQ(soon.take(at(500), x, 4).z, late.take(at(500 + 4032), x, 4).z);
}

TEST(Expected, WhatIsKnownIsNotLearnedAgain) {
  Expected expected = Expected::learn(line(500, 0.1), kPrior, 0.01);
  const std::vector<double> x = {1, 0, 0};
  const double before = expected.take(at(500), x, 4).expected;
  for (std::size_t i = 501; i < 3000; ++i) expected.take(at(i), x, 4);
  EXPECT_DOUBLE_EQ(expected.take(at(3000), x, 4).expected, before) << "a fault that lasts became the rule";
}

TEST(Expected, NewConditionsTeachUnlessAbsurd) {
  Expected expected = Expected::learn(line(500, 0.1), kPrior, 0.01);
  const std::vector<double> x = {1, 0, 1};
  EXPECT_TRUE(Expected(expected).take(at(500), x, 1e6).known) << "so far away is judged";
  EXPECT_FALSE(expected.take(at(500), x, 4).known);
  for (std::size_t i = 501; i < 600; ++i) expected.take(at(i), x, 4);
  const Surprise known = expected.take(at(600), x, 4);
  EXPECT_TRUE(known.known);
  EXPECT_NEAR(known.expected, 4, 0.1);
}

TEST(Expected, WithoutScatterTheLeastSdStands) {
  const Expected expected = Expected::learn(line(500, 0), kPrior, 0.01);
  EXPECT_NEAR(expected.sd(), 0.01, 1e-9);
}

TEST(Expected, AFewWildBlocksAreNoNoiseUnlessTheChannelIsRare) {
  std::vector<Lesson> lessons = line(500, 0.1);
  for (std::size_t i = 0; i < lessons.size(); i += 50) lessons[i].y += 20;
  EXPECT_LT(Expected::learn(lessons, kPrior, 0.01).sd(), 0.3);
  EXPECT_GT(Expected::learn(lessons, kPrior, 0.01, true).sd(), 2);
}

TEST(VarianceInflation, IsOneForNoiseAndMoreForLongRuns) {
  EXPECT_EQ(variance_inflation({}, 0), 1);
  EXPECT_EQ(variance_inflation(std::vector<double>{7}, 7), 1);
  EXPECT_EQ(variance_inflation(std::vector<double>(100, 7), 7), 1);
  double white_mean = 0, runs_mean = 0;
  constexpr int kSeeds = 20;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Random random(seed);
    std::vector<double> white, runs;
    double v = 0;
    for (int i = 0; i < 2000; ++i) {
      white.push_back(random.normal());
      runs.push_back(v = 0.8 * v + random.normal());
    }
    white_mean += variance_inflation(white, 0) / kSeeds;
    runs_mean += variance_inflation(runs, 0) / kSeeds;
  }
  EXPECT_LT(white_mean, 2);
  EXPECT_NEAR(runs_mean, 9, 3) << "(1 + 0.8) / (1 - 0.8)";
}

}  // namespace
}  // namespace flyball::facility
