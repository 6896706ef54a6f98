#include "series/counter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace flyball::series {
namespace {

MonoTime mono(double s) { return MonoTime(0) + Seconds(s); }
WallTime at(double s) { return WallTime(1'700'000'000'000'000'000) + Seconds(s); }

struct Feed {
  CounterReader reader;
  CounterStep operator()(double t, double value, Status status = Status::ok) {
    return reader.read(mono(t), Joules(value), status);
  }
};

TEST(Counter, TheFirstReadHasNoPowerTheSecondHas) {
  Feed f;
  EXPECT_EQ(f(10, 5000).event, CounterEvent::first);
  const auto step = f(12, 5600);
  EXPECT_EQ(step.event, CounterEvent::advance);
  EXPECT_DOUBLE_EQ(step.power().value(), 300);
}

TEST(Counter, RepeatsAreNoInformationAndDoNotShortenTheNextSpan) {
  Feed f;
  f(0, 0);
  for (double t : {0.02, 0.04, 0.06, 0.08}) {
    const auto step = f(t, 0);
    EXPECT_EQ(step.event, CounterEvent::repeat);
    EXPECT_FALSE(step.has_power());
  }
  EXPECT_DOUBLE_EQ(f(0.1, 30).power().value(), 300);
}

TEST(Counter, FailedAndLateReadsNeverShowKilowatts) {
  Feed f;
  f(0, 0);
  f(1, 300);
  EXPECT_EQ(f(2, 0, Status::failed).event, CounterEvent::unusable);
  EXPECT_EQ(f(3, 9e15, Status::failed).event, CounterEvent::unusable);
  EXPECT_DOUBLE_EQ(f(9, 2700).power().value(), 300) << "over the measured eight seconds";
  EXPECT_EQ(f(9, 2710).event, CounterEvent::unusable) << "no time has passed";
  EXPECT_EQ(f(5, 2800).event, CounterEvent::unusable) << "time ran backwards";
  EXPECT_DOUBLE_EQ(f(10, 3000).power().value(), 300);
}

TEST(Counter, ASingleDipIsIgnored) {
  Feed f;
  f(0, 1000);
  EXPECT_EQ(f(1, 12).event, CounterEvent::fall_pending);
  const auto step = f(2, 1600);
  EXPECT_EQ(step.event, CounterEvent::dip_ignored);
  EXPECT_DOUBLE_EQ(step.increment.value(), 600);
  EXPECT_DOUBLE_EQ(step.power().value(), 300);
}

TEST(Counter, AResetIsConfirmedByTheRiseThatFollows) {
  Feed f;
  f(0, 1e6);
  EXPECT_EQ(f(1, 200).event, CounterEvent::fall_pending);
  EXPECT_EQ(f(2, 200).event, CounterEvent::repeat) << "not yet confirmed";
  const auto step = f(3, 800);
  EXPECT_EQ(step.event, CounterEvent::reset);
  EXPECT_DOUBLE_EQ(step.increment.value(), 600);
  EXPECT_DOUBLE_EQ(step.span.value(), 2);
  EXPECT_DOUBLE_EQ(step.lost.value(), 1);
  EXPECT_DOUBLE_EQ(f(4, 1100).power().value(), 300);
}

TEST(Counter, AnUpwardSpikeOrSentinelIsNoEnergyAndNoBaseline) {
  Feed f;
  f(0, 1000);
  EXPECT_EQ(f(1, 4294967295.0).event, CounterEvent::implausible);
  const auto step = f(2, 1600);
  EXPECT_EQ(step.event, CounterEvent::dip_ignored);
  EXPECT_DOUBLE_EQ(step.increment.value(), 600);
}

TEST(Counter, AJumpThatStaysIsANewBaseline) {
  Feed f;
  f(0, 1000);
  EXPECT_EQ(f(1, 1e9).event, CounterEvent::implausible);
  const auto step = f(2, 1e9 + 300);
  EXPECT_DOUBLE_EQ(step.increment.value(), 300);
  EXPECT_DOUBLE_EQ(step.lost.value(), 1);
}

TEST(Counter, WrapsOnlyWithAKnownModulusAndSaysWhenItMayHaveBeenSeveral) {
  const CounterOptions rapl{Joules(65'536), Watts(500)};
  Feed f{CounterReader(rapl)};
  f(0, 65'000);
  EXPECT_EQ(f(10, 1'464).event, CounterEvent::fall_pending);
  const auto once = f(11, 1'664);
  EXPECT_EQ(once.event, CounterEvent::wrapped);
  EXPECT_DOUBLE_EQ(once.power().value(), 200);
  const auto many = f(400, 30'000);  // 390 s × 500 W is more than the range
  EXPECT_EQ(many.event, CounterEvent::wrap_ambiguous);
  EXPECT_FALSE(many.has_power());
  EXPECT_DOUBLE_EQ(f(410, 32'000).power().value(), 200);
  Feed without;
  without(0, 65'000);
  EXPECT_EQ(without(10, 1'464).event, CounterEvent::fall_pending);
}

// Whatever happens to the reads, the booked energy is never more than what flowed, and all of it if nothing happened.
TEST(Counter, RandomTroubleNeverInventsEnergy) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const bool clean = seed % 10 == 0;
    const double modulus = seed % 2 == 0 ? 50'000 : 0;
    std::vector<Point> points;
    double t = 0, energy = 0, base = random.uniform(0, 40'000);
    for (int i = 0; i < 200; ++i) {
      const double dt = random.uniform(0.1, 3) + (!clean && random.chance(0.02) ? 40 : 0);
      t += dt;
      energy += dt * random.uniform(50, 700);
      if (!clean && modulus == 0 && random.chance(0.01))
        base = -energy;  // reset; in a long gap it could pass for a wrap
      double value = base + energy;
      if (modulus > 0) value = std::fmod(value, modulus);
      Status status = Status::ok;
      if (!clean && random.chance(0.03)) value = random.chance(0.5) ? 0 : 4294967295.0;
      if (!clean && random.chance(0.05)) status = Status::failed;
      points.push_back({at(t), value, status});
    }
    const CounterOptions options{Joules(modulus), Watts(800)};
    const auto sum = integrate_counter(points, options);
    ASSERT_LE(sum.energy.value(), energy * 1.0001) << "seed " << seed;
    for (const Point& p : sum.power) ASSERT_LE(p.value, 800) << "seed " << seed;
    if (!clean) continue;
    ASSERT_GT(sum.coverage_fraction(), 0.999) << "seed " << seed;
  }
}

TEST(Counter, ClipsDivideAnIncrementByTime) {
  const std::vector<Point> points{{at(0), 0}, {at(10), 1000}, {at(20), 2000}};
  const auto sum = integrate_counter(points, {}, Interval{at(5), at(12)});
  EXPECT_DOUBLE_EQ(sum.energy.value(), 700);
  EXPECT_DOUBLE_EQ(sum.coverage_fraction(), 1);
}

std::vector<Point> flat(double watts, double dt = 1, int n = 600) {
  std::vector<Point> points;
  for (int i = 0; i <= n; ++i) points.push_back({at(i * dt), watts});
  return points;
}
std::vector<Point> rising(double watts, double scale = 1, int stuck_from = 1 << 30) {
  std::vector<Point> points;
  for (int i = 0; i <= 600; ++i) points.push_back({at(i), 5000 * scale + watts * scale * std::min(i, stuck_from)});
  return points;
}

TEST(Counter, AgainstIntegratedPowerSaysWhichOneCounts) {
  const auto agree = compare_counter(rising(300), flat(303));
  EXPECT_FALSE(agree.diverges);
  EXPECT_EQ(agree.counts, Believed::counter);
  const auto aliased = compare_counter(rising(300), flat(360));
  EXPECT_TRUE(aliased.diverges);
  EXPECT_EQ(aliased.counts, Believed::counter);
  EXPECT_NEAR(aliased.ratio, 300.0 / 360, 1e-9);
  const auto stuck = compare_counter(rising(300, 1, 200), flat(300));
  EXPECT_TRUE(stuck.diverges);
  EXPECT_EQ(stuck.counts, Believed::integral) << stuck.reason;
  const auto dead = compare_counter(rising(0), flat(300));
  EXPECT_EQ(dead.counts, Believed::integral) << dead.reason;
  const auto units = compare_counter(rising(300, 0.001), flat(300));
  EXPECT_EQ(units.counts, Believed::neither) << units.reason;
  EXPECT_NE(units.reason.find("unit"), std::string::npos);
  const auto none = compare_counter(std::vector<Point>{}, flat(300));
  EXPECT_EQ(none.counts, Believed::integral);
}

}  // namespace
}  // namespace flyball::series
