// Numbers, values with units, times and names as people and files write them: never a crash, never a number that is
// not finite, and what is written reads back.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/text.h"
#include "core/reading.h"

namespace {

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto number = flyball::parse_double(text)) {
    require(std::isfinite(*number));
    require(flyball::parse_double(flyball::format_exact(*number)) == *number);
  }
  if (const auto number = flyball::parse_int(text)) {
    require(flyball::parse_int(std::to_string(*number)) == *number);
  }
  if (const auto power = flyball::parse_watts(text)) {
    require(power->finite());
    require(!flyball::format(*power).empty());
  }
  if (const auto energy = flyball::parse_joules(text)) {
    require(energy->finite());
  }
  if (const auto time = flyball::parse_seconds(text)) {
    require(time->finite());
  }
  if (const auto time = flyball::parse_rfc3339(text)) {
    const auto written = flyball::format_rfc3339(*time);  // to the millisecond
    const auto again = flyball::parse_rfc3339(written);
    require(again && flyball::format_rfc3339(*again) == written);
  }
  if (const auto signal = flyball::parse_signal(text)) {
    require(flyball::to_string(*signal) == text);
  }
  for (const auto part : flyball::split(text, ',')) {
    require(flyball::trim(part).size() <= part.size());
  }
  return 0;
}
