#pragma once
// Power usage effectiveness over time, with its interval; and where it comes out below 1, which cannot be, the reason
// instead of a number.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/stats.h"
#include "base/units.h"

namespace flyball::facility {

/// One interval of the facility's meters; nothing: not metered, or no reading.
struct EnergyInterval {
  WallTime start;
  Seconds length;
  std::optional<Joules> utility, it;
  std::optional<Joules> generated;            ///< on site, behind the utility's meter
  std::optional<Joules> charged, discharged;  ///< of UPS batteries and other storage
};

struct PueOptions {
  /// Standard uncertainty of a reading. Class 1 meters (IEC 62053-21) may err by 1 %: uniform, so 1 % / √3.
  double utility_uncertainty_fraction = 0.00577, it_uncertainty_fraction = 0.00577;
  double level = 0.95;
};

struct PueInterval {
  WallTime start;
  Seconds length;
  std::optional<Estimate> pue;  ///< nothing: see `code`
  /// "" or why there is none: "no_reading", "storage_or_generation", "clocks", "scale", "meters"
  std::string code;
};

struct PueReport {
  std::vector<PueInterval> intervals;
  /// Energy-weighted, over the intervals that have one; nothing where none has or where the diagnosis is about meters.
  std::optional<Estimate> overall;
  double coverage_fraction = 0;  ///< of the time, with a number
  std::string code;              ///< what is wrong where something is below 1; else empty
  std::string diagnosis;         ///< in words, with the remedy
};

/// The facility's energy is utility + generated + discharged − charged. An interval is below 1 when its whole estimate
/// is. Then, in this order: storage or generation that no meter shows (it comes and goes); clocks that differ (a shift
/// by whole intervals mends it); a scale that a meter can have (mends all intervals alike); else the meters themselves.
PueReport pue_over_time(std::span<const EnergyInterval> intervals, const PueOptions& options = {});

}  // namespace flyball::facility
