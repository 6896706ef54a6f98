#pragma once
#include <string>

#include "base/filesystem.h"
#include "base/result.h"
#include "series/facility_rows.h"

namespace flyball::cli {

/// --map FILE of a table of samples: a configuration file with `zone`, `columns.OURS = "theirs"` and `units.OURS`.
Result<series::FacilityMap> read_facility_map(const std::string& path, Filesystem& files);
/// What --help says of it.
extern const char* const kFacilityMapHelp;

}  // namespace flyball::cli
