#include "base/zone.h"

#include <gtest/gtest.h>

namespace flyball {
namespace {

std::int64_t local(const char* text) { return parse_rfc3339(std::string(text) + "Z")->nanoseconds(); }

TEST(Zone, KnowsWinterAndSummer) {
  auto zone = Zone::find("Europe/Berlin");
  ASSERT_TRUE(zone) << zone.error().message();
  WallTime utc;
  EXPECT_EQ(zone->to_utc(local("2024-01-15T12:00:00"), Fold::refuse, utc), LocalTime::ok);
  EXPECT_EQ(format_rfc3339(utc), "2024-01-15T11:00:00.000Z");
  EXPECT_EQ(zone->to_utc(local("2024-07-15T12:00:00"), Fold::refuse, utc), LocalTime::ok);
  EXPECT_EQ(format_rfc3339(utc), "2024-07-15T10:00:00.000Z");
}

TEST(Zone, RepeatedHourFollowsTheRuleAndSkippedHourIsNoTime) {
  auto zone = Zone::find("Europe/Berlin");
  ASSERT_TRUE(zone);
  WallTime utc;
  const std::int64_t folded = local("2024-10-27T02:30:00");
  EXPECT_EQ(zone->to_utc(folded, Fold::refuse, utc), LocalTime::ambiguous);
  EXPECT_EQ(zone->to_utc(folded, Fold::earlier, utc), LocalTime::ok);
  EXPECT_EQ(format_rfc3339(utc), "2024-10-27T00:30:00.000Z");
  EXPECT_EQ(zone->to_utc(folded, Fold::later, utc), LocalTime::ok);
  EXPECT_EQ(format_rfc3339(utc), "2024-10-27T01:30:00.000Z");
  EXPECT_EQ(zone->to_utc(local("2024-03-31T02:30:00"), Fold::earlier, utc), LocalTime::skipped);
}

TEST(Zone, CountsTheHalfHoursOfOddDays) {
  auto zone = Zone::find("Europe/Berlin");
  ASSERT_TRUE(zone);
  WallTime first, last;
  zone->to_utc(local("2024-03-31T00:00:00"), Fold::refuse, first);
  zone->to_utc(local("2024-04-01T00:00:00"), Fold::refuse, last);
  EXPECT_EQ((last - first).value(), 46 * 1800);
  zone->to_utc(local("2024-10-27T00:00:00"), Fold::refuse, first);
  zone->to_utc(local("2024-10-28T00:00:00"), Fold::refuse, last);
  EXPECT_EQ((last - first).value(), 50 * 1800);
}

TEST(Zone, KeptOffsetIsTheRightOneAroundChanges) {
  auto kept = Zone::find("Europe/Berlin");
  ASSERT_TRUE(kept);
  // Every ten minutes over the whole of 2024, against a zone that has nothing to keep.
  for (std::int64_t t = local("2024-03-25T00:00:00"); t < local("2024-11-03T00:00:00"); t += 600'000'000'000) {
    auto fresh = Zone::find("Europe/Berlin");
    WallTime a, b;
    ASSERT_EQ(kept->to_utc(t, Fold::later, a), fresh->to_utc(t, Fold::later, b));
    ASSERT_EQ(a, b) << t;
  }
}

TEST(Zone, UnknownNameIsRefusedWithTheRemedy) {
  const auto zone = Zone::find("Mars/Olympus");
  ASSERT_FALSE(zone);
  EXPECT_NE(zone.error().message().find("IANA"), std::string::npos);
}

}  // namespace
}  // namespace flyball
