#include "facility/pue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <utility>

#include "base/random.h"

namespace flyball::facility {
namespace {

/// A week by the hour: IT load by day and night, the facility 1.3 times that.
std::vector<EnergyInterval> week() {
  std::vector<EnergyInterval> made;
  Random random(1);
  for (int h = 0; h < 168; ++h) {
    const double it = 1e9 * (1 + 0.5 * std::sin(2 * std::numbers::pi * h / 24)) * (1 + 0.01 * random.normal());
    made.push_back({WallTime(1'704'067'200'000'000'000) + Seconds(3600.0 * h),
                    Seconds(3600),
                    Joules(1.3 * it),
                    Joules(it),
                    {},
                    {},
                    {}});
  }
  return made;
}

TEST(Pue, OverTimeWithItsInterval) {
  auto hours = week();
  hours[3].it = std::nullopt;
  const PueReport made = pue_over_time(hours);
  ASSERT_TRUE(made.intervals[0].pue);
  EXPECT_NEAR(made.intervals[0].pue->value, 1.3, 1e-9);
  EXPECT_NEAR(made.intervals[0].pue->half_width(), 1.3 * 1.96 * 0.00816, 1e-4);
  EXPECT_EQ(made.intervals[3].code, "no_reading");
  EXPECT_NEAR(made.coverage_fraction, 167.0 / 168, 1e-12);
  EXPECT_NEAR(made.overall->value, 1.3, 1e-9);
  EXPECT_TRUE(made.code.empty());
}

TEST(Pue, MeteredStorageAndGenerationAreCountedFirst) {
  auto hours = week();
  for (std::size_t h = 20; h < 30; ++h) {
    hours[h].utility = *hours[h].utility - Joules(8e8);
    hours[h].discharged = Joules(5e8);
    hours[h].generated = Joules(3e8);
  }
  const PueReport made = pue_over_time(hours);
  EXPECT_TRUE(made.code.empty()) << made.diagnosis;
  EXPECT_NEAR(made.intervals[25].pue->value, 1.3, 1e-9);
}

TEST(Pue, BelowOneIsADiagnosisAndNoNumber) {
  auto battery = week();
  for (std::size_t h = 20; h < 30; ++h) battery[h].utility = *battery[h].utility * 0.3;
  PueReport made = pue_over_time(battery);
  EXPECT_EQ(made.code, "storage_or_generation");
  EXPECT_FALSE(made.intervals[25].pue);
  EXPECT_TRUE(made.intervals[50].pue);

  auto clocks = week();
  for (std::size_t h = 0; h < clocks.size(); ++h) clocks[h].utility = week()[(h + 6) % 168].utility;
  made = pue_over_time(clocks);
  EXPECT_EQ(made.code, "clocks");
  EXPECT_NE(made.diagnosis.find("later"), std::string::npos) << made.diagnosis;
  EXPECT_FALSE(made.overall);

  auto exchanged = week();
  for (EnergyInterval& hour : exchanged) std::swap(hour.it, hour.utility);
  made = pue_over_time(exchanged);
  EXPECT_EQ(made.code, "scale");
  EXPECT_NE(made.diagnosis.find("exchanged"), std::string::npos) << made.diagnosis;

  auto too_much = week();
  for (EnergyInterval& hour : too_much) hour.it = *hour.it * 0.001;
  made = pue_over_time(too_much);
  EXPECT_EQ(made.code, "scale");
  EXPECT_FALSE(made.overall);
  EXPECT_FALSE(made.intervals[5].pue);

  for (const double scale : {1000.0, 10.0, 2.0}) {
    auto wrong = week();
    for (EnergyInterval& hour : wrong) hour.utility = *hour.utility * (1 / scale);
    made = pue_over_time(wrong);
    EXPECT_EQ(made.code, "scale") << scale;
    EXPECT_FALSE(made.overall);
  }

  auto meters = week();
  for (std::size_t h = 0; h < meters.size(); ++h) {
    meters[h].utility = *meters[h].utility * (h % 3 == 0 ? 0.01 : 0.5);
    meters[h].generated = Joules(0);
    meters[h].discharged = Joules(0);
  }
  EXPECT_EQ(pue_over_time(meters).code, "meters");
}

}  // namespace
}  // namespace flyball::facility
