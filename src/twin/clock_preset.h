#pragma once
// Measured clock curves that come with the program: how long work takes and how much it draws at each locked clock.
// Fitted knots with source and licence, never a measured file.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace flyball::twin {

struct ClockPoint {
  Hertz clock;
  double time = 1;  ///< of the same work, relative to the highest clock
  Watts power;      ///< mean of one GPU while it works
};

struct ClockPreset {
  std::string_view name;
  std::string_view source;
  std::string_view licence;
  std::string_view method;
  std::span<const ClockPoint> points;  ///< ascending in the clock; empty: the parametric model
};

/// "parametric", "a100-sxm-gpt3-175b" or "a100-sxm-bloom".
Result<ClockPreset> clock_preset(std::string_view name);
std::vector<std::string> clock_preset_names();

}  // namespace flyball::twin
