#include "base/clock.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace flyball {
namespace {

WallTime parsed(std::string_view text) { return parse_rfc3339(text).value(); }

TEST(Rfc3339, KnownInstants) {
  EXPECT_EQ(parsed("1970-01-01T00:00:00Z").nanoseconds(), 0);
  EXPECT_EQ(parsed("2026-01-01T00:00:00Z").nanoseconds(), 1'767'225'600'000'000'000);
  EXPECT_EQ(parsed("2024-02-29T12:00:00Z") - parsed("2024-02-28T12:00:00Z"), Seconds(86400));
  EXPECT_EQ(parsed("1969-12-31T23:59:59.5Z").nanoseconds(), -500'000'000);
  EXPECT_EQ(format_rfc3339(WallTime(-500'000'000)), "1969-12-31T23:59:59.500Z");
  EXPECT_EQ(format_rfc3339(WallTime(1'767'225'600'250'999'999)), "2026-01-01T00:00:00.250Z");
}

TEST(Rfc3339, ZonesNameTheSameInstant) {
  const WallTime noon = parsed("2026-12-01T12:00:00Z");
  for (const char* same : {"2026-12-01T13:00:00+01:00", "2026-12-01T06:30:00-05:30", "2026-12-02T02:00:00+1400",
                           "2026-12-01t12:00:00z", "2026-12-01 12:00:00.000000000Z", "2026-12-01T12:00:00-00:00"}) {
    EXPECT_EQ(parsed(same), noon) << same;
  }
}

TEST(Rfc3339, FractionsDownToNanoseconds) {
  EXPECT_EQ(parsed("1970-01-01T00:00:00.000000001Z").nanoseconds(), 1);
  EXPECT_EQ(parsed("1970-01-01T00:00:00.5Z").nanoseconds(), 500'000'000);
  EXPECT_EQ(parsed("1970-01-01T00:00:00.1234567899Z").nanoseconds(), 123'456'789) << "further digits are cut";
}

TEST(Rfc3339, WhatNamesNoInstantIsRefused) {
  for (const char* bad :
       {"", "2026-12-01", "2026-12-01T12:00:00", "2026-12-01T12:00Z", "2026-13-01T12:00:00Z", "2026-02-29T12:00:00Z",
        "2026-12-01T24:00:00Z", "2026-12-01T12:60:00Z", "2026-12-01T12:00:00.Z", "2026-12-01T12:00:00ZZ",
        "2026-12-01T12:00:00+24:00", "2026-12-01T12:00:00+1", "1066-10-14T12:00:00Z", "9999-01-01T00:00:00Z",
        "2026-1-01T12:00:00Z", "2026-12-01T-1:00:00Z", "+026-12-01T12:00:00Z"}) {
    const auto result = parse_rfc3339(bad);
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().code, ErrorCode::input);
    EXPECT_FALSE(result.error().remedy.empty());
  }
}

TEST(Rfc3339, EveryMillisecondReadsBack) {
  EXPECT_TRUE(rc::check([](std::int32_t seconds, std::uint16_t milliseconds) {
    const WallTime t(static_cast<std::int64_t>(seconds) * 1'000'000'000 + (milliseconds % 1000) * 1'000'000LL);
    RC_ASSERT(parsed(format_rfc3339(t)) == t);
  }));
  EXPECT_TRUE(rc::check([](const std::string& bytes) { parse_rfc3339(bytes); }));
}

TEST(TimePoint, DifferencesAreSeconds) {
  const MonoTime start(1'000'000'000);
  EXPECT_EQ(start + Seconds(0.5), MonoTime(1'500'000'000));
  EXPECT_EQ(start - Seconds(2), MonoTime(-1'000'000'000));
  EXPECT_EQ(MonoTime(1'500'000'000) - start, Seconds(0.5));
  EXPECT_LT(start, start + Seconds(1e-9));
}

TEST(VirtualClock, MovesOnlyWhenToldAndOnlyForward) {
  VirtualClock clock;
  EXPECT_EQ(format_rfc3339(clock.wall()), "2026-01-01T00:00:00.000Z");
  clock.advance(Seconds(10));
  EXPECT_EQ(clock.now(), MonoTime(10'000'000'000));
  clock.sleep_until(MonoTime(5));
  EXPECT_EQ(clock.now(), MonoTime(10'000'000'000));
  clock.sleep_until(MonoTime(12'000'000'000));
  EXPECT_EQ(clock.now(), MonoTime(12'000'000'000));
}

TEST(VirtualClock, AWallStepLeavesMonotonicTimeAlone) {
  VirtualClock clock;
  const MonoTime before = clock.now();
  const WallTime wall = clock.wall();
  clock.step_wall(Seconds(-3600));
  EXPECT_EQ(clock.now(), before);
  EXPECT_EQ(clock.wall() - wall, Seconds(-3600));
}

TEST(SystemClock, MonotonicTimeNeverFallsAndSleepsReturn) {
  SystemClock clock;
  MonoTime last = clock.now();
  for (int i = 0; i < 1000; ++i) {
    const MonoTime now = clock.now();
    ASSERT_GE(now, last);
    last = now;
  }
  clock.sleep_until(last - Seconds(1));  // past: at once
  const MonoTime until = clock.now() + Seconds(0.002);
  clock.sleep_until(until);
  EXPECT_GE(clock.now(), until);
}

}  // namespace
}  // namespace flyball
