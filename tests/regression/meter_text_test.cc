// Meters' files from the field: apparent power beside real power, a management controller that says 0 W, feeds of two
// levels in one file, and an export in a language that writes decimals with a comma.
#include <gtest/gtest.h>

#include <string>

#include "base/byte_source.h"
#include "series/reader.h"

namespace flyball::series {
namespace {

struct Read {
  ReadSummary summary;
  Recording recording;
};

Read read(const std::string& text) {
  RecordingSink sink;
  const auto summary = read_bytes(bytes_in_memory(text), "meter.csv", {}, sink);
  EXPECT_TRUE(summary) << summary.error().message();
  return {summary.value_or(ReadSummary{}), std::move(sink.recording)};
}

double good_sum(const Series& series) {
  double sum = 0;
  for (const Point& p : series.points) sum += p.status == Status::ok ? p.value : 0;
  return sum;
}

TEST(MeterText, ApparentPowerIsNoPower) {
  const Read r = read("time,meter,power_va,power_w,power_factor\n1715960300,pdu-1,1000,900,0.9\n");
  ASSERT_EQ(r.recording.series.size(), 1U);
  EXPECT_EQ(good_sum(r.recording.series[0]), 900);
  bool told = false;
  for (const std::string& warning : r.summary.warnings) told = told || warning.find("power_va") != std::string::npos;
  EXPECT_TRUE(told);
}

TEST(MeterText, ANodeThatAnswersDoesNotDrawNothing) {
  const Read r = read("run,node,time_ms,ac_w\nr,1,1715960300000,0\nr,1,1715960302000,2500\nr,1,1715960304000,0\n");
  ASSERT_EQ(r.recording.series.size(), 1U);
  ASSERT_EQ(r.recording.series[0].points.size(), 3U);
  EXPECT_EQ(r.recording.series[0].points[0].status, Status::garbage);
  EXPECT_EQ(good_sum(r.recording.series[0]), 2500);
  EXPECT_NE(refusals_text(r.summary).find("the meter had no value"), std::string::npos);
}

TEST(MeterText, LevelsOfTheTreeAreSeriesOfTheirOwn) {
  const Read r = read("time,feed_w,pdu_w,rack_w\n1715960300,30000,29000,28000\n1715960301,30100,29100,28100\n");
  ASSERT_EQ(r.recording.series.size(), 3U);
  EXPECT_EQ(r.recording.series[0].key.scope, Scope::feed);
  EXPECT_EQ(r.recording.series[1].key.scope, Scope::pdu);
  EXPECT_EQ(r.recording.series[2].key.scope, Scope::rack);
}

TEST(MeterText, AnExportWithSemicolonsCommasAndTheDayFirstIsRead) {
  const Read r = read(
      "timestamp;node;power_kw\r\n17.05.2024 15:38:00;rack-1;12,5\r\n17.05.2024 15:38:10;rack-1;-12,5\r\n"
      "17.05.2024 15:38:20;rack-1;12,25\r\n");
  ASSERT_EQ(r.recording.series.size(), 1U);
  EXPECT_EQ(r.recording.series[0].points.size(), 3U);
  EXPECT_DOUBLE_EQ(good_sum(r.recording.series[0]), 24'750);
  EXPECT_NE(refusals_text(r.summary).find("from line 3 on"), std::string::npos) << refusals_text(r.summary);
}

}  // namespace
}  // namespace flyball::series
