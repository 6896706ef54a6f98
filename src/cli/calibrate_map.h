#pragma once
// Which column of whose CSV means what, and in which unit: built in for known formats, from a file for all others.

#include <string>
#include <variant>
#include <vector>

#include "base/filesystem.h"
#include "base/result.h"
#include "base/units.h"
#include "cli/calibrate_table.h"
#include "series/facility_rows.h"

namespace flyball::cli {

/// A plant or a facility: what it carries and what it draws.
struct PlantMap {
  std::string format;  ///< "cooling_plant", or the map's file
  std::string time;
  std::string load, power;
  Watts load_unit, power_unit;     ///< what 1 in the column is
  Watts least_load;                ///< intervals below are idle and counted apart
  std::vector<std::string> units;  ///< on (> 0.5) or off, in their order; none: one unit, on where the load is > 0
  std::string weather_time;
  std::string wet_bulb;            ///< or, where that is empty, from the two
  std::string dry_bulb, humidity;  ///< humidity in percent
  bool fahrenheit = false;
  std::string zone;
};

/// A meter of energy, and the air that belongs to it.
struct MeterMap {
  std::string format;
  std::string start, energy;  ///< the energy from this stamp to the next
  Joules energy_unit;         ///< what 1 in the column is
  std::string weather_time, dry_bulb;
  bool fahrenheit = false;
  std::string zone;
};

/// A building and its jobs.
struct FacilityMap {
  std::string format;         ///< "facility", or the map's name or file
  series::FacilityMap table;  ///< columns of the samples
  std::string job;            ///< type of a job where no column says it
  std::string phase_start = "start", phase_stop = "stop", phase_label = "label", phase_job_type;  ///< of --phases
  std::string weather_time = "time", wet_bulb = "wet_bulb_c", dry_bulb, humidity;                 ///< of --weather
  bool fahrenheit = false;
  bool means = true;  ///< powers are means since the row before, not values at their stamp
};
using AnyMap = std::variant<PlantMap, MeterMap, FacilityMap>;

/// --map FILE: a configuration file (base/config.h) with the keys that `flyball calibrate fit --help` lists.
/// Says what it is about by the table that it has: [plant], [meter] or, of a building, [columns].
Result<AnyMap> read_map(const std::string& path, Filesystem& files);
/// By the header of the file; an error names the columns that it has.
Result<AnyMap> known_map(const std::string& path);

}  // namespace flyball::cli
