#pragma once
// What a watt saved in the GPUs saves again in cooling and delivery: stated, or from a kept baseline of the building.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "cli/app.h"
#include "report/run_report.h"

namespace flyball::cli {

struct ReliefOptions {
  std::string relief;    ///< "12%"; empty: not stated
  std::string facility;  ///< hash of a version that `calibrate fit --keep` kept
  std::string wet_bulb;  ///< the air now; empty: as that baseline's days had it
};

/// Of a version's content: of all its days, or of the third of them whose air is nearest to `air`.
Result<report::CoolingRelief> relief_of(std::string_view content, std::optional<Celsius> air);
/// Nothing where neither is given.
Result<std::optional<report::CoolingRelief>> read_relief(const ReliefOptions& options, const std::string& ledger_path);

}  // namespace flyball::cli
