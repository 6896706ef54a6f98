#include "base/units.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <type_traits>

namespace flyball {
namespace {

using namespace literals;

template <class A, class B>
concept Addable = requires(A a, B b) { a + b; };
template <class A, class B>
concept Multipliable = requires(A a, B b) { a* b; };

// What must not compile does not.
static_assert(!Addable<Watts, Joules>);
static_assert(!Addable<Watts, double>);
static_assert(!Addable<Watts, Milliwatts>);
static_assert(!Multipliable<Watts, Watts>);
static_assert(!std::is_convertible_v<double, Watts>);
static_assert(!std::is_convertible_v<Watts, double>);
static_assert(!std::is_convertible_v<Watts, Milliwatts>);
static_assert(std::is_same_v<decltype(Watts() * Seconds()), Joules>);
static_assert(std::is_same_v<decltype(Watts() / Watts()), double>);

TEST(Units, EnergyPowerAndTimeBelongTogether) {
  EXPECT_EQ(250_W * 4_s, 1000_J);
  EXPECT_EQ(4_s * 250_W, 1000_J);
  EXPECT_EQ(1000_J / 4_s, 250_W);
  EXPECT_EQ(1000_J / 250_W, 4_s);
  EXPECT_EQ(1410_MHz, Hertz(1.41e9));
}

TEST(Units, ArithmeticAndOrder) {
  Watts power = 100_W;
  power += 50_W;
  power -= 30_W;
  power *= 2;
  power /= 4;
  EXPECT_EQ(power, 60_W);
  EXPECT_EQ(-power, 0_W - 60_W);
  EXPECT_LT(59.9_W, power);
  EXPECT_FALSE((power / 0.0).finite());
}

TEST(Milliwatts, RoundsToTheNearest) {
  EXPECT_EQ(Milliwatts::from(Watts(250.0004)), 250000_mW);
  EXPECT_EQ(Milliwatts::from(Watts(250.0006)), 250001_mW);
  EXPECT_EQ(Milliwatts::from(Watts(-0.0006)), Milliwatts(-1));
  EXPECT_EQ(Milliwatts(250001).watts(), Watts(250.001));
}

TEST(Milliwatts, WhatDoesNotFitIsTheLargest) {
  const Milliwatts largest(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(Milliwatts::from(Watts(1e300)), largest);
  EXPECT_EQ(Milliwatts::from(Watts(std::numeric_limits<double>::quiet_NaN())), largest);
  EXPECT_EQ(Milliwatts::from(Watts(std::numeric_limits<double>::infinity())), largest);
}

TEST(Milliwatts, ThereAndBackIsTheSame) {
  EXPECT_TRUE(rc::check(
      [](std::int32_t value) { RC_ASSERT(Milliwatts::from(Milliwatts(value).watts()) == Milliwatts(value)); }));
}

}  // namespace
}  // namespace flyball
