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
  const auto source = bytes_in_memory(text);
  const auto counts = read_facility(*source, ',', map, "x.csv", [&](FacilitySample s) { samples.push_back(s); });
  EXPECT_TRUE(counts) << counts.error().message();
  return samples;
}
std::string error_of(const std::string& text, const FacilityMap& map = {}) {
  const auto source = bytes_in_memory(text);
  const auto counts = read_facility(*source, ',', map, "x.csv", [](const FacilitySample&) {});
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
  const auto source = bytes_in_memory(text);
  const auto counts = read_facility(
      *source, ',', map, "x.csv", [&](FacilitySample s) { samples.push_back(s); }, RowOrder::any);
  ASSERT_TRUE(counts);
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples[0].jobs.at(0).phase, Phase::evaluation);
  EXPECT_EQ(samples[1].jobs.at(0).phase, Phase::training);
  EXPECT_TRUE(samples[2].jobs.empty());
  EXPECT_EQ(counts->cells.unknown_phases, 1U);
  EXPECT_EQ(counts->cells.examples.at(0), "x.csv:4: column 'phase' is 'mowing'");
  EXPECT_EQ(read(text, map).size(), 1U) << "by default only what is later than the row before";
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
  const auto source = bytes_in_memory(text);
  int samples = 0;
  const auto counts = read_facility(*source, ',', {}, "x.csv", [&](const FacilitySample&) { ++samples; });
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
  const auto source = bytes_in_memory(text);
  const auto counts = read_facility(*source, ',', {}, "x.csv", [&](FacilitySample s) { samples.push_back(s); });
  ASSERT_TRUE(counts);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_FALSE(samples[0].it);
  EXPECT_FALSE(samples[1].on_battery);
  EXPECT_EQ(counts->cells.impossible, 1U);
  EXPECT_EQ(counts->order.out_of_order, 1U);
  EXPECT_EQ(counts->cells.without_time, 1U);
}

/// A row a minute from `from` on.
std::string minutes(WallTime from, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += format_rfc3339(from + Seconds(60.0 * i)) + ",5\n";
  return text;
}
constexpr WallTime kBegin(1'767'225'600'000'000'000);
constexpr Seconds kDay(86400);
const std::string kHead = "time,it_w\n", kFuture = "2062-01-01T00:00:00Z,5\n";

FacilityTableCounts counts_of(const std::string& text) {
  const auto source = bytes_in_memory(text);
  return read_facility(*source, ',', {}, "x.csv", [](const FacilitySample&) {}).value();
}

TEST(FacilityRows, ARowOfTheFutureCostsItselfWhereverItIs) {
  for (int before = 0; before <= 60; ++before)
    for (int wrong = 1; wrong <= 5; ++wrong) {
      std::string text = kHead + minutes(kBegin, before);
      for (int i = 0; i < wrong; ++i) text += kFuture;
      text += minutes(kBegin + Seconds(60.0 * before), 60 - before);
      const FacilityTableCounts counts = counts_of(text);
      // Alone in its file, or before all others, it is as good as any.
      EXPECT_EQ(counts.order.rows, 60U) << before << " before " << wrong;
      EXPECT_EQ(counts.order.ahead + counts.order.out_of_order, static_cast<std::uint64_t>(wrong)) << before;
      EXPECT_EQ(counts.order.first_ahead, fmt::format("x.csv:{}: column 'time' is '2062-01-01T00:00:00Z'", before + 2));
    }
  EXPECT_EQ(read(kHead + kFuture).size(), 1U) << "alone there is nothing that it is ahead of";
}

TEST(FacilityRows, ThreeDaysAheadOnceAndBackLosesNoOther) {
  const std::string text =
      kHead + minutes(kBegin, 100) + minutes(kBegin + 3 * kDay, 1) + minutes(kBegin + Seconds(6000), 100);
  EXPECT_EQ(read(text).size(), 200U);
}

TEST(FacilityRows, AnOutageOfDaysIsSurvivedWithoutLosingARow) {
  const WallTime again = kBegin + 5 * kDay;
  EXPECT_EQ(read(kHead + minutes(kBegin, 100) + minutes(again, 50)).size(), 150U);
  // Also one with a wrong stamp in it.
  EXPECT_EQ(read(kHead + minutes(kBegin, 100) + minutes(again, 9) + kFuture + minutes(again + Seconds(540), 50)).size(),
            159U);
  EXPECT_EQ(
      read(kHead + minutes(kBegin, 100) + minutes(again, 19) + kFuture + minutes(again + Seconds(1140), 50)).size(),
      169U);
}

TEST(FacilityRows, AClockThatIsSetBackIsToldWithTheFirstRow) {
  const FacilityTableCounts counts = counts_of(kHead + minutes(kBegin, 200) + minutes(kBegin + Seconds(4800), 200));
  EXPECT_EQ(counts.order.rows, 280U);
  EXPECT_EQ(counts.order.out_of_order, 120U);
  EXPECT_EQ(counts.order.far_back, 0U);
  EXPECT_EQ(counts.order.first_back, "x.csv:202: column 'time' is '2026-01-01T01:20:00.000Z'");
}

/// A row a minute, hours of 26 October 2025 as a wall clock in Berlin shows them: the third comes twice.
std::string autumn_night(int step_minutes) {
  std::string text = kHead;
  for (const int hour : {1, 2, 2, 3})
    for (int minute = 0; minute < 60; minute += step_minutes)
      text += fmt::format("2025-10-26 {:02}:{:02}:00,5\n", hour, minute);
  return text;
}

TEST(FacilityRows, TheHourThatAutumnRepeatsIsReadTwiceInItsZone) {
  FacilityMap berlin;
  berlin.zone = "Europe/Berlin";
  for (const int step : {1, 5, 15, 30}) {
    const auto samples = read(autumn_night(step), berlin);
    ASSERT_EQ(samples.size(), 240U / static_cast<unsigned>(step));
    EXPECT_EQ(format_rfc3339(samples[0].at), "2025-10-25T23:00:00.000Z");
    for (std::size_t i = 1; i < samples.size(); ++i) EXPECT_EQ(samples[i].at, samples[i - 1].at + Seconds(60.0 * step));
  }
}

TEST(FacilityRows, AnHourThatAutumnRepeatsIsNamedWithItsRemedyWhereItCannotBeTold) {
  const auto counts_in = [](const std::string& text, const std::string& zone) {
    FacilityMap map;
    map.zone = zone;
    const auto source = bytes_in_memory(text);
    return read_facility(*source, ',', map, "x.csv", [](const FacilitySample&) {}).value();
  };
  const FacilityTableCounts unnamed = counts_in(autumn_night(1), "");
  EXPECT_EQ(unnamed.order.out_of_order, 60U);
  EXPECT_EQ(unnamed.cells.hours_back, 1U);
  const std::string told = to_text(unnamed);
  EXPECT_NE(told.find("x.csv:122: column 'time' is '2025-10-26 02:00:00': stamps without offset go back"), told.npos)
      << told;
  EXPECT_NE(told.find("zone = \"Europe/Berlin\""), told.npos) << told;
  // A row that stands twice goes back by less: it is left out as always, and no hour begins anew with it.
  const FacilityTableCounts twice =
      counts_in(kHead + "2025-10-26 02:10:00,5\n2025-10-26 02:20:00,5\n2025-10-26 02:20:00,5\n", "Europe/Berlin");
  EXPECT_EQ(twice.order.rows, 2U);
  EXPECT_NE(to_text(twice).find("x.csv:4: column 'time' is '2025-10-26 02:20:00', of the hour that the zone repeats"),
            std::string::npos)
      << to_text(twice);
  EXPECT_EQ(counts_in(autumn_night(1), "Europe/Berlin").cells.hours_back, 0U);
  EXPECT_EQ(to_text(counts_of(kHead + minutes(kBegin, 100) + minutes(kBegin + Seconds(3000), 100))).find("autumn"),
            std::string::npos)
      << "stamps with an offset";
}

}  // namespace
}  // namespace flyball::series
