#include "facility/avoided.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/random.h"

namespace flyball::facility {
namespace {

/// A building whose balance points and loads are known; errors of `noise` of the mean day, each like the last by
/// `runs`.
std::vector<MeterDay> building(int first, int days, double factor, double noise, double runs, std::uint64_t seed) {
  Random random(seed);
  std::vector<MeterDay> made;
  double error = 0;
  for (int d = first; d < first + days; ++d) {
    MeterDay day{WallTime(1'420'070'400'000'000'000) + Seconds(86400.0 * d), {}, {}};
    double below = 0, above = 0;
    const double year = 12 - 14 * std::cos(2 * std::numbers::pi * d / 365.25) + 3 * random.normal();
    for (int h = 0; h < 24; ++h) {
      day.air.emplace_back(year + 5 * std::sin(2 * std::numbers::pi * (h - 9) / 24));
      below += std::max(15 - day.air.back().value(), 0.0) / 24;
      above += std::max(day.air.back().value() - 19, 0.0) / 24;
    }
    error = runs * error + std::sqrt(1 - runs * runs) * random.normal();
    day.energy = Joules(1e8 * factor * (1 + 0.3 * below + 0.8 * above) * 1.0) + Joules(1e8 * 3 * noise * error);
    made.push_back(std::move(day));
  }
  return made;
}

TEST(Avoided, FindsBalancePointsLoadsAndTheSaving) {
  const auto before = building(0, 365, 1, 0.05, 0, 1), after = building(380, 365, 0.88, 0.05, 0, 2);
  const AvoidedEnergy made = avoided_energy(before, after).value();
  EXPECT_NEAR(made.model.heating_balance.value(), 15, 1);
  EXPECT_NEAR(made.model.cooling_balance.value(), 19, 1);
  EXPECT_NEAR(made.model.base.value(), 1e8, 0.1e8);
  EXPECT_NEAR(made.model.heating.value(), 0.3e8, 0.02e8);
  EXPECT_NEAR(made.saved_fraction.value, 0.12, 0.01);
  EXPECT_LE(made.saved_fraction.low, 0.12);
  EXPECT_GE(made.saved_fraction.high, 0.12);
  EXPECT_TRUE(made.disqualified.empty()) << made.disqualified[0].what;
  EXPECT_LT(std::abs(made.nmbe_fraction), 1e-6);
}

// Nine in ten intervals of 90 % hold the truth, with independent errors and with errors that come in runs.
TEST(AvoidedProperty, IntervalsHoldTheirPromise) {
  for (const double runs : {0.0, 0.5}) {
    int inside = 0;
    constexpr int kRuns = 120;
    for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
      const auto before = building(0, 365, 1, 0.2, runs, 2 * seed),
                 after = building(380, 365, 0.9, 0.2, runs, 2 * seed + 1);
      const AvoidedEnergy made = avoided_energy(before, after).value();
      inside += made.saved_fraction.low <= 0.1 && made.saved_fraction.high >= 0.1 ? 1 : 0;
    }
    // 120 runs at 0.9: three standard deviations are 0.08.
    EXPECT_GE(inside / static_cast<double>(kRuns), 0.82) << "runs " << runs;
    EXPECT_LE(inside / static_cast<double>(kRuns), 0.98) << "runs " << runs;
  }
}

TEST(Avoided, SaysWhyNothingMayBeClaimed) {
  const auto codes = [](const AvoidedEnergy& made) {
    std::vector<std::string> found;
    for (const auto& why : made.disqualified) found.push_back(why.code);
    return found;
  };
  const auto year = building(0, 365, 1, 0.05, 0, 1);
  EXPECT_EQ(codes(avoided_energy(std::span(year).first(200), building(200, 60, 0.8, 0.05, 0, 2)).value()),
            std::vector<std::string>{"too_few_days"});
  EXPECT_EQ(codes(avoided_energy(year, building(380, 365, 1, 0.05, 0, 3)).value()),
            std::vector<std::string>{"saving_too_small"});
  auto gaps = building(380, 365, 0.8, 0.05, 0, 4);
  gaps.erase(gaps.begin() + 100, gaps.begin() + 160);
  EXPECT_EQ(codes(avoided_energy(year, gaps).value()), std::vector<std::string>{"gaps"});
  auto hot = building(380, 365, 0.8, 0.05, 0, 5);
  for (MeterDay& day : hot)
    for (Celsius& air : day.air) air += Celsius(15);
  EXPECT_EQ(codes(avoided_energy(year, hot).value()).front(), "weather_not_covered");
  EXPECT_EQ(codes(avoided_energy(building(0, 365, 1, 0.9, 0, 6), building(380, 365, 0.1, 0.05, 0, 7)).value()),
            std::vector<std::string>{"poor_fit"});
  EXPECT_FALSE(avoided_energy(std::span(year).first(20), year));
  EXPECT_FALSE(avoided_energy(year, {}));
}

TEST(Avoided, ADeadMeterAndOneThatStandsStillSaveNothing) {
  const auto codes = [](std::span<const MeterDay> before, std::span<const MeterDay> after) {
    std::vector<std::string> found;
    const AvoidedEnergy made = avoided_energy(before, after).value();
    for (const auto& why : made.disqualified)
      if (why.code.starts_with("meter_")) found.push_back(why.code);
    return found;
  };
  const auto with = [](std::vector<MeterDay> days, std::size_t first, std::size_t count, Joules energy) {
    for (std::size_t i = first; i < first + count; ++i) days[i].energy = energy;
    return days;
  };
  const std::vector<std::string> none, zero = {"meter_reads_zero"}, still = {"meter_stands_still"};
  const auto before = building(0, 365, 1, 0.05, 0, 1), after = building(380, 365, 0.8, 0.05, 0, 2);
  EXPECT_EQ(codes(before, after), none);
  EXPECT_EQ(codes(before, with(after, 0, 365, Joules(0))), zero);
  EXPECT_EQ(codes(before, with(after, 344, 21, Joules(0))), zero);
  EXPECT_EQ(codes(with(before, 300, 21, Joules(0)), after), zero);
  EXPECT_EQ(codes(before, with(after, 0, 365, Joules(2e8))), still);
  EXPECT_EQ(codes(before, with(after, 100, 3, Joules(2e8))), still);
  EXPECT_EQ(codes(with(before, 100, 5, Joules(2e8)), after), still);
}

// A coarse meter repeats itself by chance, and a boiler's rests in summer: neither is broken.
TEST(Avoided, ACoarseMeterAndOneAtRestAreNotBroken) {
  const auto coarse = [](std::vector<MeterDay> days) {
    for (MeterDay& day : days) day.energy = Joules(5e7 * std::round(day.energy.value() / 5e7));
    return days;
  };
  const auto boiler = [](std::vector<MeterDay> days, double factor) {
    Random random(11);
    for (MeterDay& day : days) {
      double below = 0;
      for (const Celsius air : day.air) below += std::max(15 - air.value(), 0.0) / 24;
      day.energy = Joules(1e8 * factor * below * (1 + 0.02 * random.normal()));
    }
    return days;
  };
  const auto before = building(0, 365, 1, 0.05, 0, 1), after = building(380, 365, 0.8, 0.05, 0, 2);
  for (const auto& [one, other] : {std::pair(coarse(before), coarse(after)), {boiler(before, 1), boiler(after, 0.8)}}) {
    const AvoidedEnergy made = avoided_energy(one, other).value();
    EXPECT_TRUE(made.disqualified.empty()) << made.disqualified[0].what;
  }
}

TEST(Avoided, ABuildingWithoutCoolingHasNone) {
  auto cold = building(0, 365, 1, 0.02, 0, 8), later = building(380, 365, 0.9, 0.02, 0, 9);
  for (auto* days : {&cold, &later})
    for (MeterDay& day : *days) {
      double below = 0;
      for (const Celsius air : day.air) below += std::max(15 - air.value(), 0.0) / 24;
      day.energy = Joules(1e8 * (days == &cold ? 1 : 0.9) * (1 + 0.3 * below));
    }
  const AvoidedEnergy made = avoided_energy(cold, later).value();
  EXPECT_NEAR(made.saved_fraction.value, 0.1, 0.002);
  EXPECT_TRUE(made.model.heats);
  EXPECT_LT(made.model.cooling.value(), 0.02e8);
}

}  // namespace
}  // namespace flyball::facility
