#include "base/random.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/stats.h"

namespace flyball {
namespace {

// Computed by an independent implementation of xoshiro256++ and splitmix64. If these change, every seeded result of the
// program changes with them.
TEST(Random, GoldenNumbers) {
  Random zero(0);
  EXPECT_EQ(zero.bits(), 0x53175d61490b23dfULL);
  EXPECT_EQ(zero.bits(), 0x61da6f3dc380d507ULL);
  EXPECT_EQ(zero.bits(), 0x5c0fdf91ec9a7bfcULL);
  Random answer(42);
  EXPECT_EQ(answer.bits(), 0xd0764d4f4476689fULL);
  EXPECT_EQ(answer.bits(), 0x519e4174576f3791ULL);
  Random uniform(42);
  EXPECT_EQ(uniform.uniform(), 0.8143051451229099);
  EXPECT_EQ(uniform.uniform(), 0.3188210400616611);
  Random normal(42);
  EXPECT_DOUBLE_EQ(normal.normal(), -0.7689930538210061);
  EXPECT_DOUBLE_EQ(normal.normal(), 1.6661184587142);
}

TEST(Random, ForksAreReproducibleAndApart) {
  Random a(1);
  Random b(1);
  Random first = a.fork(7);
  Random same = b.fork(7);
  Random other = Random(1).fork(8);
  EXPECT_EQ(first.bits(), same.bits());
  EXPECT_NE(same.bits(), other.bits());
}

TEST(Random, MomentsAreRight) {
  Random random(3);
  RunningStats uniform;
  RunningStats normal;
  std::vector<int> counts(7, 0);
  constexpr int n = 200'000;
  int hits = 0;
  for (int i = 0; i < n; ++i) {
    const double u = random.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    uniform.add(u);
    normal.add(random.normal());
    ++counts[random.below(7)];
    hits += random.chance(0.25) ? 1 : 0;
  }
  // Five standard errors each.
  EXPECT_NEAR(uniform.mean(), 0.5, 0.0033);
  EXPECT_NEAR(uniform.variance(), 1.0 / 12, 0.001);
  EXPECT_NEAR(normal.mean(), 0, 0.012);
  EXPECT_NEAR(normal.variance(), 1, 0.016);
  for (const int count : counts) EXPECT_NEAR(count, n / 7.0, 830);
  EXPECT_NEAR(hits, n * 0.25, 970);
  EXPECT_EQ(random.below(1), 0U);
  EXPECT_FALSE(random.chance(0));
  EXPECT_TRUE(random.chance(1));
}

}  // namespace
}  // namespace flyball
