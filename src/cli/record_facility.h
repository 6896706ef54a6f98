#pragma once
#include "base/result.h"
#include "cli/app.h"
#include "cli/facility_twin.h"

namespace flyball::cli {

/// What a simulated building's meters say, as CSV that `calibrate` reads, in `path`.
Result<> record_facility(const FacilityTwinOptions& options, Seconds interval, const std::string& path,
                         Context& context);

}  // namespace flyball::cli
