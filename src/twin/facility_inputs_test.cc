// Weather and schedules.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "base/temp_dir.h"
#include "twin/facility_load.h"
#include "twin/facility_test_support.h"

namespace flyball::twin {
namespace {

TEST(FacilityWeather, WetBulbIsThatOfTheTables) {
  EXPECT_NEAR(wet_bulb_of(Celsius(20), 0.5).value(), 13.7, 0.4);  // Stull's own example
  EXPECT_NEAR(wet_bulb_of(Celsius(30), 0.7).value(), 25.4, 0.5);
  EXPECT_LE(wet_bulb_of(Celsius(5), 0.99), Celsius(5));
}

TEST(FacilityWeather, AMadeUpYearHasItsSeasons) {
  const WallTime start(1'767'225'600'000'000'000);  // 2026-01-01
  const auto year = synthetic_weather(1, start, Seconds(365 * kDay));
  EXPECT_EQ(year.size(), 365U * 24 + 2);
  double january = 0, july = 0, gap = 0;
  for (const WeatherSample& hour : year) {
    const double day = (hour.at - start).value() / kDay;
    if (day < 31) january += hour.dry_bulb.value() / (31 * 24);
    if (day >= 181 && day < 212) july += hour.dry_bulb.value() / (31 * 24);
    EXPECT_LE(hour.wet_bulb, hour.dry_bulb);
    gap = std::max(gap, (hour.dry_bulb - hour.wet_bulb).value());
  }
  EXPECT_NEAR(january, -1.5, 3);
  EXPECT_NEAR(july, 23.5, 3);
  EXPECT_GT(gap, 4);
  EXPECT_NE(synthetic_weather(2, start, Seconds(kDay))[5].dry_bulb, year[5].dry_bulb);
}

TEST(FacilityWeather, IsReadFromFiles) {
  auto fahrenheit = bytes_in_memory("dt,tempF\n2015-11-22T00:00:00-06:00,32\n2015-11-22T01:00:00-06:00,50\n");
  const auto read = read_weather(*fahrenheit);
  ASSERT_TRUE(read) << read.error().message();
  ASSERT_EQ(read->size(), 2U);
  EXPECT_NEAR((*read)[1].dry_bulb.value(), 10, 1e-9);
  EXPECT_LT((*read)[1].wet_bulb, (*read)[1].dry_bulb);
  const WallTime start(1'777'248'000'000'000'000);
  EXPECT_EQ(shift_weather(*read, (*read)[0].at, start)[0].at, start);

  auto full = bytes_in_memory("time,dry_bulb_c,wet_bulb_c\n2026-05-01T00:00:00Z,20,15\n2026-05-01T02:00:00Z,24,17\n");
  WeatherCursor cursor(*read_weather(*full));
  EXPECT_NEAR(cursor.at(*parse_rfc3339("2026-05-01T01:00:00Z")).wet_bulb.value(), 16, 1e-9);
  EXPECT_NEAR(cursor.at(*parse_rfc3339("2026-05-03T01:00:00Z")).dry_bulb.value(), 24, 1e-9) << "the last one holds";

  auto damp = bytes_in_memory("time,dry_bulb_c,relative_humidity_fraction\n2026-05-01T00:00:00Z,20,0.5\n");
  EXPECT_NEAR((*read_weather(*damp))[0].wet_bulb.value(), 13.7, 0.4);
  for (const char* bad : {"", "time,rain\n", "time,dry_bulb_c\n", "time,dry_bulb_c\n2026-05-01T00:00:00Z\n",
                          "time,dry_bulb_c\nnoon,20\n", "time,dry_bulb_c\n2026-05-01T00:00:00Z,warm\n",
                          "time,dry_bulb_c\n2026-05-02T00:00:00Z,20\n2026-05-01T00:00:00Z,20\n"}) {
    auto source = bytes_in_memory(bad);
    EXPECT_FALSE(read_weather(*source)) << bad;
  }
}

TEST(FacilityWeather, AMeasuredYearCoolsForFreeInWinterAlone) {
  const std::string folder = shared_data_folder();
  if (folder.empty()) GTEST_SKIP() << "the measured data are not here (FLYBALL_SHARED)";
  auto file = open_bytes(folder + "/building_meters/il-tempF.csv.gz");
  ASSERT_TRUE(file) << file.error().message();
  const auto year = read_weather(**file);
  ASSERT_TRUE(year) << year.error().message();
  EXPECT_GT(year->size(), 8000U);
  const auto pue_from = [&year](const char* date) {
    FacilitySetup setup;
    setup.length = Seconds(2 * kDay);
    setup.start = *parse_rfc3339(date);
    setup.weather = *year;
    Facility facility = make(setup);
    double it = 0, total = 0;
    for (std::uint64_t i = 0; i < facility.steps(); ++i) {
      facility.step();
      it += facility.truth().it.value();
      total += facility.truth().total().value();
    }
    return total / it;
  };
  const double winter = pue_from("2016-01-11T00:00:00Z"), summer = pue_from("2016-07-18T00:00:00Z");
  EXPECT_NEAR(winter, 1.13, 0.03);
  EXPECT_GT(summer, winter + 0.06);
}

TEST(FacilitySchedule, TheDefaultIsSound) {
  for (const double days : {0.5, 3.0, 7.0, 30.0, 90.0}) {
    const auto jobs = default_schedule(Seconds(days * kDay));
    EXPECT_TRUE(check(jobs)) << days;
    EXPECT_LE(std::max_element(jobs.begin(), jobs.end(), [](auto& a, auto& b) { return a.stop < b.stop; })->stop,
              Seconds(days * kDay));
  }
  std::set<std::string> types;
  for (const ScheduledJob& job : default_schedule(Seconds(7 * kDay))) types.insert(job.type);
  EXPECT_EQ(types.size(), job_type_names().size()) << "within a week each type is seen";
  EXPECT_FALSE(check({{"finetune", 0, 0.6, Seconds(0), Seconds(10)}, {"vision", 0.5, 0.2, Seconds(5), Seconds(15)}}));
  EXPECT_FALSE(check({{"finetune", 0.6, 0.6, Seconds(0), Seconds(10)}}));
  EXPECT_FALSE(check({{"finetune", 0, 0.6, Seconds(10), Seconds(10)}}));
  EXPECT_FALSE(check({{"chess", 0, 0.6, Seconds(0), Seconds(10)}}));
}

TEST(FacilitySchedule, PhasesTakeTheirTimeAndPower) {
  const JobType type = *job_type("pretrain-large");
  JobRun run(type, {type.name, 0, 1, Seconds(0), Seconds(1e9)}, Random(1));
  std::map<Phase, double> time, energy;
  constexpr double kStep = 10, kTime = 10 * 86400;
  for (double t = 0; t < kTime; t += kStep) {
    const JobRun::Step step = run.advance(kStep, 1, false);
    time[step.phase] += kStep;
    energy[step.phase] += step.gpu_w * kStep;
  }
  EXPECT_NEAR(time[Phase::startup], type.startup.value(), 10);
  const double cycle = 3600 + 90 + 2 * 40;  // training, an evaluation, two checkpoints
  EXPECT_NEAR(time[Phase::evaluation], kTime * 90 / cycle, 0.05 * kTime * 90 / cycle);
  EXPECT_NEAR(time[Phase::checkpoint], kTime * 80 / cycle, 0.2 * kTime * 80 / cycle) << "to whole steps of 10 s";
  const double mean = 684 - 0.097 * (684 - 534);
  EXPECT_NEAR(energy[Phase::training] / time[Phase::training], mean, 0.01 * mean);
  EXPECT_NEAR(energy[Phase::checkpoint] / time[Phase::checkpoint], 125, 60);
}

TEST(FacilitySchedule, AWindowOfTenSecondsBeatsWithAStepOfElevenAndEnergyIsKept) {
  const JobType type = *job_type("pretrain-large");
  JobRun coarse(type, {type.name, 0, 1, Seconds(0), Seconds(1e9)}, Random(1));
  JobRun fine = coarse;
  double coarse_j = 0, fine_j = 0, low = 1e9, high = 0;
  for (int i = 0; i < 170; ++i) {
    const double watts = coarse.advance(10, 1, false).gpu_w;
    coarse_j += 10 * watts;
    if (i > 60) low = std::min(low, watts), high = std::max(high, watts);
    for (int j = 0; j < 10; ++j) fine_j += fine.advance(1, 1, false).gpu_w;
  }
  EXPECT_NEAR(coarse_j, fine_j, 1e-6 * fine_j);
  EXPECT_GT(high - low, 5) << "aliased";
}

}  // namespace
}  // namespace flyball::twin
