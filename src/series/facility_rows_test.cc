// Samples of a building through a table and back.
#include "series/facility_table.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace flyball::series {
namespace {

std::vector<FacilitySample> read(const std::string& text, const FacilityMap& map = {}) {
  std::vector<FacilitySample> samples;
  const auto counts =
      read_facility(open_memory(text), ',', map, "x.csv", [&](FacilitySample s) { samples.push_back(s); });
  EXPECT_TRUE(counts) << counts.error().message();
  return samples;
}
std::string error_of(const std::string& text, const FacilityMap& map = {}) {
  const auto counts = read_facility(open_memory(text), ',', map, "x.csv", [](const FacilitySample&) {});
  EXPECT_FALSE(counts);
  return counts ? "" : counts.error().message();
}

TEST(FacilityRows, WhatIsWrittenIsRead) {
  FacilitySample sample;
  sample.at = WallTime(1'767'225'600'000'000'000);
  sample.it = Watts(512'345.5);
  sample.supply = Celsius(-1.5);
  sample.on_battery = false;
  sample.ecc_errors = 1234567;
  sample.software = "driver 1, \"beta\"";
  sample.racks = {{Watts(10), Celsius(20)}, {std::nullopt, Celsius(21)}};
  sample.jobs = {{"a", Phase::training, 0.5, 12.0, std::nullopt, 2.5}};
  const std::string text = facility_line(facility_header(2, 2)) + facility_line(facility_cells(sample, 2, 2));
  const std::vector<FacilitySample> samples = read(text);
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(facility_cells(samples[0], 2, 2), facility_cells(sample, 2, 2));
  EXPECT_FALSE(samples[0].utility);
  EXPECT_FALSE(samples[0].racks[1].power);
  ASSERT_EQ(samples[0].jobs.size(), 1U);
  EXPECT_EQ(samples[0].jobs[0].phase, Phase::training);
}

TEST(FacilityRows, AMapNamesColumnsAndUnits) {
  FacilityMap map;
  map.columns = {{"time", {"stamp", 1, 0}}, {"it_w", {"IT", 1000, 0}}, {"supply_c", {"T", 1 / 1.8, -32 / 1.8}}};
  const auto samples = read("stamp,IT,T,it_w\n2026-01-01T00:00:00Z,500,50,7\n", map);
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_DOUBLE_EQ(samples[0].it->value(), 500e3);
  EXPECT_NEAR(samples[0].supply->value(), 10, 1e-9);
}

TEST(FacilityRows, ForeignWordsColumnsByPlaceAndAnyOrder) {
  FacilityMap map;
  map.columns = {{"time", {"#1", 1, 0}}, {"it_w", {"#3", 1, 0}}, {"job1_phase", {"phase", 1, 0}}};
  const std::string text =
      "when,phase,IT\n2026-01-01T00:00:20Z,eval,3\n2026-01-01T00:00:10Z,train,2\n2026-01-01T00:00:00Z,mowing,1\n";
  std::vector<FacilitySample> samples;
  const auto counts = read_facility(
      open_memory(text), ',', map, "x.csv", [&](FacilitySample s) { samples.push_back(s); }, RowOrder::any);
  ASSERT_TRUE(counts);
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples[0].jobs.at(0).phase, Phase::evaluation);
  EXPECT_EQ(samples[1].jobs.at(0).phase, Phase::training);
  EXPECT_TRUE(samples[2].jobs.empty());
  EXPECT_EQ(counts->cells.unknown_phases, 1U);
  EXPECT_EQ(counts->cells.examples.at(0), "x.csv:4: column 'phase' is 'mowing'");
  EXPECT_EQ(read(text, map).size(), 3U) << "by default in order of time";
  map.columns["it_w"].name = "#4";
  EXPECT_NE(error_of(text, map).find("there is no column '#4'"), std::string::npos);
}

TEST(FacilityRows, ErrorsNameLineColumnValueAndRemedy) {
  EXPECT_NE(error_of("time,it_w\n2026-01-01T00:00:00Z,12\n2026-01-01T00:01:00Z,lots\n")
                .find("x.csv:3: column 'it_w' is 'lots'"),
            std::string::npos);
  EXPECT_NE(error_of("time,it_w\nyesterday,12\n").find("column 'time' is 'yesterday'"), std::string::npos);
  EXPECT_NE(error_of("when,it_w\n1,2\n").find("--map"), std::string::npos);
  EXPECT_NE(error_of("time,power\n1,2\n").find("no column is known"), std::string::npos);
  EXPECT_NE(error_of("time,it_w,it_w\n1,2,3\n").find("two columns"), std::string::npos);
  EXPECT_NE(error_of("time,it_w\n2026-01-01T00:00:00Z,12,13\n").find("3 cells"), std::string::npos);
  EXPECT_NE(error_of("").find("empty"), std::string::npos);
}

TEST(FacilityRows, ALastLineWithoutItsEndIsNoReading) {
  const std::string text = "time,it_w\n2026-01-01T00:00:00Z,592233\n2026-01-01T00:00:10Z,592";
  int samples = 0;
  const auto counts = read_facility(open_memory(text), ',', {}, "x.csv", [&](const FacilitySample&) { ++samples; });
  ASSERT_TRUE(counts);
  EXPECT_EQ(samples, 1);
  EXPECT_TRUE(counts->cut);
}

TEST(FacilityRows, PowersThatCannotFlowBackAreNotNegative) {
  const std::string text = "time,it_w,utility_w\n2026-01-01T00:00:00Z,-5,-6\n";
  const auto samples = read(text);
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_FALSE(samples[0].it);
  EXPECT_EQ(samples[0].utility->value(), -6) << "a feed that takes back what is generated";
}

TEST(FacilityRows, WhatCannotBeIsLeftOutAndCounted) {
  const std::string text =
      "time,it_w,on_battery\n2026-01-01T00:00:00Z,N/A,0\n2026-01-01T00:01:00Z,5,7\n2026-01-01T00:00:30Z,6,0\n,7,0\n";
  std::vector<FacilitySample> samples;
  const auto counts =
      read_facility(open_memory(text), ',', {}, "x.csv", [&](FacilitySample s) { samples.push_back(s); });
  ASSERT_TRUE(counts);
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_FALSE(samples[0].it);
  EXPECT_EQ(samples[1].it->value(), 6);
  EXPECT_FALSE(samples[2].on_battery);
  EXPECT_EQ(counts->cells.impossible, 1U);
  EXPECT_EQ(counts->sorted, 1U);
  EXPECT_EQ(counts->cells.without_time, 1U);
}

}  // namespace
}  // namespace flyball::series
