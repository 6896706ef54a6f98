#pragma once
// What the parts of `flyball calibrate fit` share.

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/app.h"
#include "cli/calibrate_map.h"
#include "facility/plant.h"
#include "report/json.h"

namespace flyball::cli {

/// As they stand on the command line; empty = not given.
struct CalibrateOptions {
  std::string train;
  std::vector<std::string> evaluate;
  std::vector<std::string> weather;
  std::string map;
  std::string delay = "24h";
  std::string baseline_until;  ///< of meters: the last day before the change
  std::string reporting_from;
};

/// Samples of a plant with the weather that belongs to them.
struct PlantInput {
  std::vector<facility::PlantSample> samples;
  std::vector<std::string> warnings;
  std::uint64_t rows_left_out = 0;
};

Result<PlantInput> read_plant(const std::string& path, const PlantMap& map, const std::vector<std::string>& weather);

Result<> calibrate_plant(const CalibrateOptions& options, const PlantMap& map, Context& context);

}  // namespace flyball::cli
