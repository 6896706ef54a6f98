#include "facility/lag.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>

#include "base/random.h"

namespace flyball::facility {
namespace {

struct Case {
  double step, dead, first, second;
};

/// A load that jumps now and then, and a plant that answers it with a quarter, after those times; noise of the output
/// in shares of the answer, each error `runs` like the last.
std::pair<std::vector<double>, std::vector<double>> simulate(const Case& c, double noise, double runs,
                                                             std::uint64_t seed) {
  Random random(seed);
  std::vector<double> load;
  double level = 1;
  const int samples = c.step < 5 ? 5000 : 6000;
  for (int i = 0; i < samples; ++i) {
    if (random.chance(c.step / (c.step < 5 ? 300 : 1800))) level = random.uniform(0.4, 1);
    load.push_back(1e6 * (level + 0.01 * random.normal()));
  }
  auto cooling = respond(load, Seconds(c.step), Seconds(c.dead), Seconds(c.first), Seconds(c.second));
  double error = 0;
  for (double& v : cooling) {
    error = runs * error + std::sqrt(1 - runs * runs) * random.normal();
    v = 3e5 + 0.25 * (v + 1e6 * noise * error);
  }
  return {load, cooling};
}

/// Bar H5: within 10 %, seconds to tens of minutes.
TEST(Lag, TimesFromSecondsToTensOfMinutesAreFound) {
  double worst = 0;
  for (const Case& c : {Case{1, 5, 20, 0}, Case{1, 3, 8, 0}, Case{10, 60, 300, 0}, Case{10, 120, 900, 240},
                        Case{10, 30, 600, 0}, Case{60, 300, 1200, 0}})
    for (const std::uint64_t seed : {1, 2}) {
      const auto [load, cooling] = simulate(c, 0.01, 0, seed);
      const Lags made = find_lags(load, cooling, Seconds(c.step));
      const std::string of =
          fmt::format("{} + {} + {} s, seed {}: {} {} {} {}", c.dead, c.first, c.second, seed, made.dead_time_s.value,
                      made.first_lag_s.value, made.second_lag_s.value, made.note);
      EXPECT_TRUE(made.identifiable) << of;
      const auto check = [&](const Estimate& time, double truth) {
        // A lag that is not there must stay small beside the other.
        EXPECT_NEAR(time.value, truth, truth > 0 ? 0.1 * truth : 0.1 * c.first) << of;
        if (truth > 0) worst = std::max(worst, std::abs(time.value / truth - 1));
      };
      check(made.dead_time_s, c.dead);
      check(made.first_lag_s, c.first);
      check(made.second_lag_s, c.second);
      check(made.total_s, c.dead + c.first + c.second);
      EXPECT_NEAR(made.gain, 0.25, 0.01) << of;
    }
  std::printf("bar: H5 dead time and lags, 5 s to 21 min, noise 1 %% of the answer, worst of 12 = %.1f %%\n",
              100 * worst);
}

TEST(Lag, SaysWhereOnlyTheSumIsSure) {
  const Case c{10, 60, 300, 0};
  const auto [load, cooling] = simulate(c, 0.1, 0, 3);
  const Lags made = find_lags(load, cooling, Seconds(c.step));
  EXPECT_TRUE(made.identifiable);
  EXPECT_NEAR(made.total_s.value, 360, 36);
  EXPECT_NE(made.note.find("only their sum"), std::string::npos) << made.note;
}

TEST(Lag, DriftingErrorsDoNotPassForSlowness) {
  const Case c{10, 60, 300, 0};
  const auto [load, cooling] = simulate(c, 0.05, 0.98, 4);
  const Lags made = find_lags(load, cooling, Seconds(c.step));
  EXPECT_TRUE(made.identifiable) << made.note;
  EXPECT_NEAR(made.total_s.value, 360, 54);
  EXPECT_LE(made.total_s.low, 360);
  EXPECT_GE(made.total_s.high, 360);
}

/// Machines that are switched for other reasons than the load: what is told then must hold the truth, or nothing be
/// told.
TEST(Lag, WhatElseMovesTheOutputMakesTheTimesLessSure) {
  int told = 0, held = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    auto [load, cooling] = simulate({10, 60, 300, 0}, 0.02, 0.9, seed);
    Random random(seed + 100);
    double switched = 0;
    for (double& power : cooling) {
      if (random.chance(10 / 2700.0)) switched = random.uniform(0, 4e4);
      power += switched;
    }
    const Lags made = find_lags(load, cooling, Seconds(10));
    if (!made.identifiable) continue;
    ++told;
    held += made.total_s.low <= 360 && 360 <= made.total_s.high;
  }
  EXPECT_GE(held, told - 2) << told << " of 20 told";
  EXPECT_GE(told, 5) << "and not for ever silent";
}

TEST(Lag, NotIdentifiableWhereDataCannotTell) {
  const std::vector<double> flat(500, 7.0);
  EXPECT_EQ(find_lags(flat, flat, Seconds(10)).note, "the input does not move");
  EXPECT_FALSE(find_lags(std::vector<double>(10, 1), std::vector<double>(10, 1), Seconds(10)).identifiable);
  Random random(5);
  std::vector<double> load, noise;
  for (int i = 0; i < 3000; ++i) {
    load.push_back(random.uniform());
    noise.push_back(random.normal());
  }
  EXPECT_FALSE(find_lags(load, noise, Seconds(10)).identifiable);
  auto holes = load;
  holes[100] = std::nan("");
  EXPECT_FALSE(find_lags(holes, noise, Seconds(10)).identifiable);
  // Drowned.
  const auto [moves, answer] = simulate({10, 120, 900, 240}, 1.0, 0.98, 6);
  EXPECT_FALSE(find_lags(moves, answer, Seconds(10)).identifiable);
}

TEST(Lag, RespondsAsTheEquationsSay) {
  std::vector<double> step(200, 1.0);
  step[0] = 0;
  const auto one = respond(step, Seconds(1), Seconds(0), Seconds(10), Seconds(0));
  EXPECT_NEAR(one[11], 1 - std::exp(-1), 1e-12);
  const auto two = respond(step, Seconds(1), Seconds(4), Seconds(10), Seconds(5));
  // 1 − (a e^(−t/a) − b e^(−t/b)) / (a − b), fifteen seconds after the answer begins.
  EXPECT_NEAR(two[20], 1 - (10 * std::exp(-1.5) - 5 * std::exp(-3.0)) / 5, 1e-12);
  EXPECT_EQ(two[5], 0);
  const auto half = respond(step, Seconds(1), Seconds(0.5), Seconds(0), Seconds(0));
  EXPECT_EQ(half[0], 0);
  EXPECT_TRUE(respond({}, Seconds(1), Seconds(0), Seconds(0), Seconds(0)).empty());
}

}  // namespace
}  // namespace flyball::facility
