#pragma once
// A building's samples in anyone's CSV: which column is what, and the rows themselves.

#include <functional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/filesystem.h"
#include "base/result.h"
#include "series/facility_rows.h"
#include "series/facility_table.h"

namespace flyball::cli {

/// The keys `columns.OURS = "theirs"` and `units.OURS` of a map. None of them: the table has our names.
Result<series::FacilityMap> facility_columns_of(const Config& config);
/// --map FILE; what the map says beside columns, units and zone is for `calibrate fit`.
Result<series::FacilityMap> read_facility_map(const std::string& path, Filesystem& files);
/// What --help says of columns and map.
extern const char* const kFacilityMapHelp;

/// All samples of a file, also .gz or .zst; what was left out becomes a warning.
Result<> read_facility_file(const std::string& path, const series::FacilityMap& map, series::RowOrder order,
                            std::vector<std::string>& warnings, const std::function<void(FacilitySample)>& each);

}  // namespace flyball::cli
