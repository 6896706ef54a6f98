#include "twin/clock_preset.h"

#include <fmt/format.h>

#include <iterator>

namespace flyball::twin {
namespace {

constexpr ClockPoint point(int megahertz, double time, double watts) {
  return {Hertz(megahertz * 1e6), time, Watts(watts)};
}

// Residuals against the 38 measured clocks, median / worst: time 0.03 / 0.49 %, power 0.21 / 1.08 %.
constexpr ClockPoint kGpt3[] = {
    point(855, 1.5285, 236.1),  point(900, 1.4520, 245.0),  point(960, 1.3676, 259.6),  point(1020, 1.2907, 272.3),
    point(1080, 1.2224, 285.5), point(1140, 1.1640, 313.7), point(1200, 1.1114, 344.8), point(1260, 1.0648, 386.2),
    point(1320, 1.0263, 435.8), point(1365, 1.0055, 465.0), point(1410, 1.0000, 477.9),
};
// The same: time 0.04 / 0.66 %, power 0.33 / 1.11 %.
constexpr ClockPoint kBloom[] = {
    point(855, 1.5071, 226.5),  point(900, 1.4322, 236.9),  point(960, 1.3547, 247.7),  point(1020, 1.2785, 261.3),
    point(1080, 1.2114, 270.3), point(1140, 1.1546, 297.2), point(1200, 1.1035, 332.5), point(1260, 1.0583, 371.4),
    point(1320, 1.0219, 419.3), point(1365, 1.0051, 453.6), point(1410, 1.0000, 467.4),
};

constexpr std::string_view kSource =
    "ml-energy/zeus branch kronos @1b1c4a9, sosp24_data: time and energy of a pipeline stage by locked clock, A100-SXM";
constexpr std::string_view kMethod =
    "forward and backward of all 8 stages summed at each clock; knots of a monotone cubic by least squares, time in "
    "logs";
constexpr ClockPreset kPresets[] = {
    {"parametric", "the formula at GpuParameters", "", "", {}},
    {"a100-sxm-gpt3-175b", kSource, "Apache-2.0", kMethod, kGpt3},
    {"a100-sxm-bloom", kSource, "Apache-2.0", kMethod, kBloom},
};

}  // namespace

Result<ClockPreset> clock_preset(std::string_view name) {
  for (const ClockPreset& each : kPresets) {
    if (each.name == name) return each;
  }
  return fail(ErrorCode::input, fmt::format("there is no clock curve '{}'", name.substr(0, 60)), "preset",
              fmt::format("use one of: {}", fmt::join(clock_preset_names(), " ")));
}

std::vector<std::string> clock_preset_names() {
  std::vector<std::string> names;
  for (const ClockPreset& each : kPresets) names.emplace_back(each.name);
  return names;
}

}  // namespace flyball::twin
