#pragma once
// Tables of a building's samples, for this room's tests only.

#include <fmt/format.h>

#include <string>

#include "base/text.h"

namespace flyball::series {

constexpr WallTime kBegin(1'767'225'600'000'000'000);
constexpr Seconds kDay(86400);
inline const std::string kHead = "time,it_w\n", kFuture = "2062-01-01T00:00:00Z,5\n";

/// A row a minute from `from` on.
inline std::string minutes(WallTime from, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += format_rfc3339(from + Seconds(60.0 * i)) + ",5\n";
  return text;
}

/// A row a minute, hours of 26 October 2025 as a wall clock in Berlin shows them: the third comes twice.
inline std::string autumn_night(int step_minutes) {
  std::string text = kHead;
  for (const int hour : {1, 2, 2, 3})
    for (int minute = 0; minute < 60; minute += step_minutes)
      text += fmt::format("2025-10-26 {:02}:{:02}:00,5\n", hour, minute);
  return text;
}

}  // namespace flyball::series
