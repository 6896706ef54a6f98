#include "facility/frozen.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace flyball::facility {
namespace {

std::vector<double> moving(std::size_t count, double resolution) {
  Random random(1);
  std::vector<double> made;
  for (std::size_t i = 0; i < count; ++i)
    made.push_back(resolution * std::round((500 + 5 * random.normal()) / resolution));
  return made;
}

TEST(Frozen, AMeterThatStandsStillIsFoundButForItsFirstReading) {
  auto readings = moving(5000, 0.1);
  for (std::size_t i = 2000; i < 2200; ++i) readings[i] = 499.25;
  const auto found = frozen_stretches(readings);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].first, 2001U);
  EXPECT_EQ(found[0].count, 199U);
}

TEST(Frozen, WhatIsUsualForAMeterIsNot) {
  EXPECT_TRUE(frozen_stretches(moving(5000, 0.1)).empty());
  EXPECT_TRUE(frozen_stretches(moving(5000, 10)).empty()) << "a coarse one repeats itself";
  EXPECT_TRUE(frozen_stretches(std::vector<double>(5000, 7)).empty()) << "one that never moves tells nothing of it";
  EXPECT_TRUE(frozen_stretches(std::vector<double>(5000, std::nan(""))).empty());
  EXPECT_TRUE(frozen_stretches({}).empty());
  auto short_one = moving(5000, 0.1);
  for (std::size_t i = 100; i < 150; ++i) short_one[i] = 480;
  EXPECT_TRUE(frozen_stretches(short_one).empty());
}

}  // namespace
}  // namespace flyball::facility
