#include "facility/plant.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/random.h"
#include "facility/accuracy.h"
#include "facility/weather.h"

namespace flyball::facility {
namespace {

constexpr double kDay = 86400;

/// A plant of known physics: pumps, and chillers whose power grows with load and wet bulb; one sample every ten
/// minutes. From `shift_day` on it draws `shift` more.
std::vector<PlantSample> plant(int days, std::uint64_t seed, double shift_day = 1e9, double shift = 0,
                               double units_at = 1e9) {
  Random random(seed);
  std::vector<PlantSample> made;
  double weather = 0;
  for (int i = 0; i < days * 144; ++i) {
    const double t = i * 600.0, day = 2 * std::numbers::pi * t / kDay;
    weather = 0.995 * weather + 0.1 * random.normal();
    PlantSample s;
    s.at = WallTime(1'704'067'200'000'000'000) + Seconds(t);
    s.load = Watts(1e6 * (1 - 0.4 * std::cos(day) + 0.03 * random.normal()));
    s.air = Celsius(20 + 4 * std::sin(day) + weather);
    s.units_on = s.load.value() > units_at ? 3 : 1;
    const double n = s.units_on == 3 ? 2 : 1, q = s.load.value() / n / 1e6, b = (s.air->value() - 20) / 5;
    s.power = Watts(1e5 * n * (0.8 + q * (1.1 + 0.2 * b) + 0.2 * q * q) * (1 + 0.02 * random.normal()) *
                    (t > shift_day * kDay ? 1 + shift : 1));
    made.push_back(s);
  }
  return made;
}

Accuracy of(const std::vector<PlantForecast>& forecasts, std::span<const PlantInterval> intervals) {
  std::vector<Watts> measured, predicted;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    measured.push_back(intervals[i].mean_power());
    predicted.push_back(forecasts[i].power);
  }
  return accuracy(measured, predicted);
}

TEST(Plant, HoursNeedSamplesWeatherAndLoad) {
  auto samples = plant(2, 1);
  samples[0].air = std::nullopt;                                    // hour 0
  samples.erase(samples.begin() + 6, samples.begin() + 9);          // hour 1 has three samples
  for (std::size_t i = 9; i < 15; ++i) samples[i].load = Watts(1);  // hour 2 idles
  IntervalRule rule;
  rule.least_load = Watts(100);
  const Intervals made = intervals_of(samples, rule);
  EXPECT_EQ(made.without_weather, 1u);
  EXPECT_EQ(made.too_few_samples, 1u);
  EXPECT_EQ(made.idle.size(), 1u);
  EXPECT_EQ(made.counted.size(), 45u);
  ASSERT_TRUE(made.counted[0].before);
  EXPECT_EQ(made.counted[0].load_before, Watts(1));
  EXPECT_EQ(made.counted[0].start.nanoseconds() % 3'600'000'000'000, 0);
}

TEST(Plant, LearnsAPlantOfKnownPhysicsToItsNoise) {
  const auto hours = intervals_of(plant(60, 2, 1e9, 0, 1.2e6), {}).counted;
  const std::span all(hours);
  auto baseline = PlantBaseline::fit(all.first(30 * 24), {}).value();
  const auto forecasts = foretell_all(baseline, all.subspan(30 * 24));
  const Accuracy made = of(forecasts, all.subspan(30 * 24));
  // 2 % a sample, six of them: 0.8 % a root mean square, 0.65 % a mean.
  EXPECT_LT(made.mape_fraction, 0.009);
  EXPECT_LT(std::abs(made.nmbe_fraction), 0.002);
  int inside = 0;
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    const Watts power = all[30 * 24 + i].mean_power();
    inside += power >= forecasts[i].low && power <= forecasts[i].high ? 1 : 0;
  }
  EXPECT_NEAR(inside / static_cast<double>(forecasts.size()), 0.9, 0.04);
}

TEST(Plant, FollowsAShiftAfterTheDelayAndNotBefore) {
  const auto hours = intervals_of(plant(60, 3, 40, 0.08), {}).counted;
  const std::span all(hours);
  auto baseline = PlantBaseline::fit(all.first(30 * 24), {}).value();
  const auto forecasts = foretell_all(baseline, all.subspan(30 * 24));
  const auto error_of_day = [&](std::size_t day) {
    return of({forecasts.begin() + static_cast<long>((day - 30) * 24),
               forecasts.begin() + static_cast<long>((day - 29) * 24)},
              all.subspan(day * 24, 24))
        .nmbe_fraction;
  };
  EXPECT_LT(error_of_day(40), -0.06);  // nothing of it is a day old yet
  EXPECT_GT(error_of_day(43), -0.04);
  EXPECT_GT(error_of_day(50), -0.02);
}

TEST(Plant, AnEarlierForecastKnowsNothingOfLaterHours) {
  auto samples = plant(40, 4);
  const auto a = intervals_of(samples, {}).counted;
  for (std::size_t i = 35 * 144; i < samples.size(); ++i) samples[i].power *= 3;
  const auto b = intervals_of(samples, {}).counted;
  const auto run = [](std::span<const PlantInterval> hours) {
    auto baseline = PlantBaseline::fit(hours.first(30 * 24), {}).value();
    return foretell_all(baseline, hours.subspan(30 * 24));
  };
  const auto fa = run(a), fb = run(b);
  for (std::size_t i = 0; i < 6 * 24; ++i) EXPECT_EQ(fa[i].power, fb[i].power) << i;
  EXPECT_NE(fa[6 * 24 + 2].power, fb[6 * 24 + 2].power);
}

TEST(Plant, TheSameHoursMakeTheSameTextAndHash) {
  const auto a = intervals_of(plant(10, 7), {}).counted, b = intervals_of(plant(10, 8), {}).counted;
  const auto text = [](const auto& hours) { return PlantBaseline::fit(hours, {}).value().text(); };
  EXPECT_EQ(text(a), text(a));
  EXPECT_NE(text(a), text(b));
  EXPECT_EQ(hash_of(a), hash_of(a));
  EXPECT_NE(hash_of(a), hash_of(b));
}

TEST(Plant, RefusesWhatCannotTell) {
  const auto few = intervals_of(plant(1, 5), {}).counted;
  EXPECT_FALSE(PlantBaseline::fit(few, {}));
  auto flat = plant(10, 6);
  for (PlantSample& s : flat) s.load = Watts(5e5);
  const auto made = PlantBaseline::fit(intervals_of(flat, {}).counted, {});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().what.find("does not vary"), std::string::npos);
}

TEST(Weather, InterpolatesBridgesNothingLongAndKnowsWetBulbs) {
  const WallTime start(1'704'067'200'000'000'000);
  const Weather weather(
      {{start, Celsius(10)}, {start + Seconds(600), Celsius(12)}, {start + Seconds(20'000), Celsius(20)}});
  EXPECT_NEAR(weather.at(start + Seconds(300))->value(), 11, 1e-9);
  EXPECT_FALSE(weather.at(start + Seconds(10'000)));
  EXPECT_NEAR(weather.at(start + Seconds(4000))->value(), 12, 1e-9);
  EXPECT_NEAR(weather.at(start + Seconds(18'000))->value(), 20, 1e-9);
  EXPECT_FALSE(weather.at(start - Seconds(7200)));
  // Stull (2011), table of examples: 20 °C at 50 % is 13.7 °C.
  EXPECT_NEAR(wet_bulb(Celsius(20), 0.5).value(), 13.7, 0.05);
}

}  // namespace
}  // namespace flyball::facility
