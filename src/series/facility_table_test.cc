// A whole table comes in order of time however its rows stand, without what a wrong clock wrote.
#include "series/facility_table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "series/facility_table_test_data.h"

namespace flyball::series {
namespace {

struct Whole {
  std::vector<WallTime> times;
  FacilityTableCounts counts;
};

Result<Whole> try_whole(const std::string& text, RowOrder order = RowOrder::of_time, const std::string& zone = "",
                        const FacilityTableLimits& limits = {}) {
  FacilityMap map;
  map.zone = zone;
  Whole made;
  FLYBALL_ASSIGN(made.counts, read_facility(
                                  open_memory(text), ',', map, "x.csv",
                                  [&](const FacilitySample& s) { made.times.push_back(s.at); }, order, limits));
  EXPECT_EQ(made.counts.rows, made.times.size());
  return made;
}
Whole whole(const std::string& text, RowOrder order = RowOrder::of_time, const std::string& zone = "") {
  auto made = try_whole(text, order, zone);
  EXPECT_TRUE(made) << made.error().message();
  return made ? *std::move(made) : Whole{};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n'))
    if (!line.empty()) lines.emplace_back(std::string(line) + "\n");
  return lines;
}
std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

TEST(FacilityTable, NewestFirstAndShuffledReadAsOldestFirst) {
  const Whole ordered = whole(kHead + minutes(kBegin, 500));
  EXPECT_EQ(ordered.counts.sorted, 0U);
  EXPECT_EQ(to_text(ordered.counts), "");
  std::vector<std::string> lines = lines_of(minutes(kBegin, 500));
  std::reverse(lines.begin(), lines.end());
  const Whole reversed = whole(kHead + joined(lines));
  EXPECT_EQ(reversed.times, ordered.times);
  EXPECT_EQ(reversed.counts.sorted, 499U);
  EXPECT_NE(to_text(reversed.counts).find("499 rows are not later than one before them and were sorted by time"),
            std::string::npos);
  Random random(5);
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = lines.size(); i > 1; --i) std::swap(lines[i - 1], lines[random.below(i)]);
    EXPECT_EQ(whole(kHead + joined(lines)).times, ordered.times);
  }
}

TEST(FacilityTable, RowsOfAWrongClockCostThemselvesWhereverTheyAre) {
  const std::vector<std::string> rows = lines_of(minutes(kBegin, 60));
  const Whole right = whole(kHead + joined(rows));
  for (const char* wrong : {"2062-01-01T00:00:00Z,5\n", "2001-01-01T00:00:00Z,5\n"})
    for (std::size_t at = 0; at <= rows.size(); ++at)
      for (const std::size_t count : {1U, 5U, 30U}) {
        std::vector<std::string> lines = rows;
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), count, wrong);
        const Whole made = whole(kHead + joined(lines));
        EXPECT_EQ(whole(kHead + joined(lines), RowOrder::any).times, right.times) << at;
        EXPECT_EQ(made.times, right.times) << at << " " << count << " " << wrong;
        EXPECT_EQ(made.counts.apart, count) << "a clock that stands still confirms nothing";
        EXPECT_EQ(made.counts.first_apart,
                  fmt::format("x.csv:{}: column 'time' is '{}'", at + 2, std::string(wrong, 20)));
      }
  EXPECT_EQ(whole(kHead + kFuture).times.size(), 1U) << "alone there is nothing that it is apart from";
}

TEST(FacilityTable, AnOutageOfDaysLosesNoRowAndRareRowsAreAllThereIs) {
  EXPECT_EQ(whole(kHead + minutes(kBegin, 100) + minutes(kBegin + 5 * kDay, 20)).times.size(), 120U);
  const Whole few = whole(kHead + minutes(kBegin, 100) + minutes(kBegin + 5 * kDay, 19));
  EXPECT_EQ(few.times.size(), 100U);
  EXPECT_NE(to_text(few.counts).find("19 rows are more than a day from all others"), std::string::npos);
  std::string weekly = kHead;
  for (int i = 0; i < 50; ++i) weekly += minutes(kBegin + 7.0 * i * kDay, 1);
  EXPECT_EQ(whole(weekly).times.size(), 50U);
}

TEST(FacilityTable, ATimeThatIsThereTwiceCountsOnceInOrderAndAsItStandsInAny) {
  const std::string text = kHead + minutes(kBegin, 30) + minutes(kBegin, 1) + minutes(kBegin + Seconds(30), 1);
  const Whole made = whole(text);
  EXPECT_EQ(made.times.size(), 31U);
  EXPECT_EQ(made.counts.repeated, 1U);
  EXPECT_EQ(made.counts.sorted, 1U);
  EXPECT_EQ(made.counts.first_repeated, "x.csv:32: column 'time' is '2026-01-01T00:00:00.000Z'");
  const Whole any = whole(text, RowOrder::any);
  EXPECT_EQ(any.times.size(), 32U);
  EXPECT_EQ(any.times.back(), kBegin + Seconds(30));
}

TEST(FacilityTable, TheHourThatAutumnRepeatsIsReadTwiceInItsZone) {
  for (const RowOrder order : {RowOrder::of_time, RowOrder::any}) {
    const Whole made = whole(autumn_night(1), order, "Europe/Berlin");
    EXPECT_EQ(made.times.size(), 240U);
    EXPECT_TRUE(std::is_sorted(made.times.begin(), made.times.end()));
    EXPECT_EQ(to_text(made.counts), "");
    EXPECT_NE(to_text(whole(autumn_night(1), order).counts).find("as local time does in autumn"), std::string::npos);
  }
}

TEST(FacilityTable, WhatItHoldsIsBoundedWithARemedy) {
  std::vector<std::string> lines = lines_of(minutes(kBegin, 100));
  std::reverse(lines.begin(), lines.end());
  const std::string text = kHead + joined(lines);
  EXPECT_TRUE(try_whole(text, RowOrder::of_time, "", {100, 99}));
  const auto held = try_whole(text, RowOrder::of_time, "", {100, 98});
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, ErrorCode::input);
  EXPECT_NE(held.error().message().find("x.csv:100: more than 98 rows"), std::string::npos) << held.error().message();
  EXPECT_NE(held.error().message().find("tac"), std::string::npos);
  const auto many = try_whole(text, RowOrder::of_time, "", {99, 99});
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().message().find("more than 99 rows"), std::string::npos);
  EXPECT_TRUE(try_whole(text, RowOrder::any, "", {100, 0})) << "nothing has to wait";
}

TEST(FacilityTable, AFileThatIsWrittenToMeanwhile) {
  const std::string text = kHead + minutes(kBegin, 50), longer = text + minutes(kBegin + kDay, 5),
                    other = kHead + minutes(kBegin + Seconds(1), 50);
  const auto read_as = [&](const std::string& second) {
    int opened = 0;
    return read_facility([&] { return open_memory(++opened == 1 ? text : second)(); }, ',', {}, "x.csv",
                         [](const FacilitySample&) {});
  };
  EXPECT_EQ(read_as(longer).value().rows, 50U);
  for (const std::string& changed : {other, kHead + minutes(kBegin, 20)}) {
    const auto made = read_as(changed);
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().message().find("changed while it was read"), std::string::npos);
  }
}

}  // namespace
}  // namespace flyball::series
