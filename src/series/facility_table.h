#pragma once
// A whole table of a building's samples (facility_rows.h).

#include <cstdint>
#include <functional>
#include <string>

#include "base/byte_source.h"
#include "base/result.h"
#include "series/facility_rows.h"
#include "series/rows_in_time.h"

namespace flyball::series {

/// Whether rows that are not later than the one before are samples too.
enum class RowOrder : std::uint8_t { of_time, any };

struct FacilityTableCounts {
  FacilityRowCounts cells;
  RowOrderCounts order;
  bool cut = false;           ///< the last line has no end and was left out
  bool zone_assumed = false;  ///< stamps without zone were read as UTC
};
/// "3 values are impossible and left out; FILE:12: …"; empty if all was used.
std::string to_text(const FacilityTableCounts& counts);

/// All of a file. `each` gets the samples, in order of time unless any is asked for.
Result<FacilityTableCounts> read_facility(ByteSource& bytes, char separator, const FacilityMap& map,
                                          const std::string& path, const std::function<void(FacilitySample)>& each,
                                          RowOrder order = RowOrder::of_time);

}  // namespace flyball::series
