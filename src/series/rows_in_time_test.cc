// Rows of a table that grows: what each of them may be used for when nobody knows the next.
#include "series/rows_in_time.h"

#include <gtest/gtest.h>

#include "series/facility_table_test_data.h"

namespace flyball::series {
namespace {

struct Streamed {
  std::vector<FacilitySample> samples;
  RowOrderCounts order;
  FacilityRowCounts cells;
};

Streamed stream(const std::string& text, const std::string& zone = "") {
  FacilityMap map;
  map.zone = zone;
  Streamed made;
  const auto source = bytes_in_memory(text);
  CsvReader csv(*source);
  CsvRow row;
  EXPECT_TRUE(csv.next(row).value());
  auto rows = FacilityRows::bind(row.cells, map, "x.csv", ',');
  EXPECT_TRUE(rows) << rows.error().message();
  RowsInTime in_time("x.csv", rows->time_column());
  const auto keep = [&](std::span<FacilityRow> ready) {
    for (FacilityRow& each : ready) made.samples.push_back(std::move(each.sample));
  };
  while (csv.next(row).value()) {
    auto read = rows->read(row.cells, row.line);
    EXPECT_TRUE(read) << read.error().message();
    if (*read) keep(in_time.take(**std::move(read)));
  }
  keep(in_time.finish());
  made.order = in_time.take_counts();
  made.cells = rows->counts();
  return made;
}

TEST(RowsInTime, OnlyWhatIsLaterThanTheRowBefore) {
  EXPECT_EQ(stream(kHead + "2026-01-01T00:00:20Z,1\n2026-01-01T00:00:10Z,2\n2026-01-01T00:00:00Z,3\n").samples.size(),
            1U);
}

TEST(RowsInTime, ARowOfTheFutureCostsItselfWhereverItIs) {
  for (int before = 0; before <= 60; ++before)
    for (int wrong = 1; wrong <= 5; ++wrong) {
      std::string text = kHead + minutes(kBegin, before);
      for (int i = 0; i < wrong; ++i) text += kFuture;
      text += minutes(kBegin + Seconds(60.0 * before), 60 - before);
      const RowOrderCounts counts = stream(text).order;
      // Alone in its file, or before all others, it is as good as any.
      EXPECT_EQ(counts.rows, 60U) << before << " before " << wrong;
      EXPECT_EQ(counts.ahead + counts.out_of_order, static_cast<std::uint64_t>(wrong)) << before;
      EXPECT_EQ(counts.first_ahead, fmt::format("x.csv:{}: column 'time' is '2062-01-01T00:00:00Z'", before + 2));
    }
  EXPECT_EQ(stream(kHead + kFuture).samples.size(), 1U) << "alone there is nothing that it is ahead of";
}

TEST(RowsInTime, ThreeDaysAheadOnceAndBackLosesNoOther) {
  const std::string text =
      kHead + minutes(kBegin, 100) + minutes(kBegin + 3 * kDay, 1) + minutes(kBegin + Seconds(6000), 100);
  EXPECT_EQ(stream(text).samples.size(), 200U);
}

TEST(RowsInTime, AnOutageOfDaysIsSurvivedWithoutLosingARow) {
  const WallTime again = kBegin + 5 * kDay;
  EXPECT_EQ(stream(kHead + minutes(kBegin, 100) + minutes(again, 50)).samples.size(), 150U);
  // Also one with a wrong stamp in it.
  EXPECT_EQ(stream(kHead + minutes(kBegin, 100) + minutes(again, 9) + kFuture + minutes(again + Seconds(540), 50))
                .samples.size(),
            159U);
  EXPECT_EQ(stream(kHead + minutes(kBegin, 100) + minutes(again, 19) + kFuture + minutes(again + Seconds(1140), 50))
                .samples.size(),
            169U);
}

TEST(RowsInTime, AClockThatIsSetBackIsToldWithTheFirstRow) {
  const RowOrderCounts counts = stream(kHead + minutes(kBegin, 200) + minutes(kBegin + Seconds(4800), 200)).order;
  EXPECT_EQ(counts.rows, 280U);
  EXPECT_EQ(counts.out_of_order, 120U);
  EXPECT_EQ(counts.far_back, 0U);
  EXPECT_EQ(counts.first_back, "x.csv:202: column 'time' is '2026-01-01T01:20:00.000Z'");
}

TEST(RowsInTime, TheHourThatAutumnRepeatsIsReadTwiceInItsZone) {
  for (const int step : {1, 5, 15, 30}) {
    const auto samples = stream(autumn_night(step), "Europe/Berlin").samples;
    ASSERT_EQ(samples.size(), 240U / static_cast<unsigned>(step));
    EXPECT_EQ(format_rfc3339(samples[0].at), "2025-10-25T23:00:00.000Z");
    for (std::size_t i = 1; i < samples.size(); ++i) EXPECT_EQ(samples[i].at, samples[i - 1].at + Seconds(60.0 * step));
  }
}

TEST(RowsInTime, AnHourThatAutumnRepeatsIsNamedWithItsRemedyWhereItCannotBeTold) {
  const Streamed unnamed = stream(autumn_night(1));
  EXPECT_EQ(unnamed.order.out_of_order, 60U);
  EXPECT_EQ(unnamed.cells.hours_back, 1U);
  const std::string told = unnamed.cells.first_hour_back;
  EXPECT_NE(told.find("x.csv:122: column 'time' is '2025-10-26 02:00:00': stamps without offset go back"), told.npos)
      << told;
  EXPECT_NE(told.find("zone = \"Europe/Berlin\""), told.npos) << told;
  // A row that stands twice goes back by less: it is left out as always, and no hour begins anew with it.
  const Streamed twice =
      stream(kHead + "2025-10-26 02:10:00,5\n2025-10-26 02:20:00,5\n2025-10-26 02:20:00,5\n", "Europe/Berlin");
  EXPECT_EQ(twice.order.rows, 2U);
  EXPECT_NE(twice.cells.first_hour_back.find(
                "x.csv:4: column 'time' is '2025-10-26 02:20:00', of the hour that the zone repeats"),
            std::string::npos)
      << twice.cells.first_hour_back;
  EXPECT_EQ(stream(autumn_night(1), "Europe/Berlin").cells.hours_back, 0U);
  EXPECT_EQ(stream(kHead + minutes(kBegin, 100) + minutes(kBegin + Seconds(3000), 100)).cells.hours_back, 0U)
      << "stamps with an offset";
}

}  // namespace
}  // namespace flyball::series
