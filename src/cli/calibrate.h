#pragma once
// What the parts of `flyball calibrate fit` share.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/app.h"
#include "cli/calibrate_map.h"
#include "facility/building.h"
#include "facility/plant.h"
#include "facility/weather.h"
#include "report/json.h"

namespace flyball::cli {

/// As they stand on the command line; empty = not given.
struct CalibrateOptions {
  std::string train;
  std::vector<std::string> evaluate;
  std::vector<std::string> weather;
  std::string map;
  std::string delay;      ///< empty: 24 h, of a building 6 h
  std::string keep;       ///< why this version is kept
  std::string reproduce;  ///< hash of a kept version that this must make again
  std::string phases;     ///< of a building: which phase when
  std::string report;     ///< HTML page
  std::string feed_rating, cooling_rating, design_wet_bulb;
  std::string carbon;
  std::string change_from, change_to;  ///< of meters: the days of the change, which count on neither side
};

/// Samples of a plant with the weather that belongs to them.
struct PlantInput {
  std::vector<facility::PlantSample> samples;
  std::vector<std::string> warnings;
  std::uint64_t rows_left_out = 0;
  std::string weather_covers;  ///< `coverage_of`
};

Result<PlantInput> read_plant(const std::string& path, const PlantMap& map, const std::vector<std::string>& weather);

/// What was left out of a table, as warnings.
void tell(const Table& table, const std::string& path, std::vector<std::string>& warnings);
/// Air of all files; `columns`: the air, or dry bulb and humidity [%], which become wet bulb.
Result<facility::Weather> read_weather(const std::vector<std::string>& files, const StampRule& stamp,
                                       const std::vector<std::string>& columns, bool fahrenheit,
                                       std::vector<std::string>& warnings);
/// "air.csv covers 2024-01-01 to 2024-02-01": which files, and from when to when.
std::string coverage_of(const std::vector<std::string>& files, const facility::Weather& weather);

/// What became of a version.
struct KeptVersion {
  std::string hash, parent, inputs_hash;
  bool reproduced = false;
  bool only_said = false;  ///< --dry-run: nothing is kept
};
struct Learned {
  std::string subject;  ///< "plant NAME", "facility NAME"
  std::string content;
  std::string inputs_hash;
  WallTime valid_from;
};
/// Keeps what was learned in the ledger, or compares it with a kept version; an error where it is another one. Nothing
/// if neither is asked for.
Result<std::optional<KeptVersion>> keep_version(const CalibrateOptions& options, const Learned& learned,
                                                Context& context);

/// "Kept: version …" as a line, and as JSON; nothing and null where none was asked for.
std::string version_line(const std::optional<KeptVersion>& version);
report::Json version_json(const std::optional<KeptVersion>& version);

/// How the document of a fit begins.
report::Json fit_document(const std::string& kind, const std::string& format, const CalibrateOptions& options,
                          bool on_training, Seconds delay);

/// Records of a building in order of time; what was left out is in `warnings`.
Result<std::vector<facility::FacilityRecord>> read_facility(const std::vector<std::string>& files,
                                                            const FacilityMap& map, const CalibrateOptions& options,
                                                            std::vector<std::string>& warnings);

Result<> calibrate_savings(const CalibrateOptions& options, const MeterMap& map, Context& context);
Result<> calibrate_facility(const CalibrateOptions& options, const FacilityMap& map, Context& context);
Result<> calibrate_plant(const CalibrateOptions& options, const PlantMap& map, Context& context);

}  // namespace flyball::cli
