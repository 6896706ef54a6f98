#pragma once
// A whole table of a building's samples (facility_rows.h). It is read twice: first its stamps alone, which tell in
// which order its rows are and which of them a wrong clock wrote, then its rows. Only rows that stand before one that
// is to come first are held in memory.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/byte_source.h"
#include "base/result.h"
#include "series/facility_rows.h"

namespace flyball::series {

/// How samples come: each later than the one before, or as the rows stand.
enum class RowOrder : std::uint8_t { of_time, any };

struct FacilityTableCounts {
  FacilityRowCounts cells;
  std::uint64_t rows = 0;                   ///< that became samples
  std::uint64_t sorted = 0;                 ///< of these: not later than one that stands before it
  std::uint64_t repeated = 0;               ///< left out: a time that was already there
  std::uint64_t apart = 0;                  ///< set aside: more than a day from all others, and few
  std::string first_repeated, first_apart;  ///< "FILE:12: column 'time' is '…'"; empty if there are none
  bool cut = false;                         ///< the last line has no end and was left out
  bool zone_assumed = false;                ///< stamps without zone were read as UTC
};
/// "3 values are impossible and left out; FILE:12: …"; empty if all was used.
std::string to_text(const FacilityTableCounts& counts);

struct FacilityTableLimits {
  std::size_t rows = 20'000'000;
  std::size_t held = 2'000'000;  ///< in memory at a time, a kilobyte or two each
};

/// The bytes from their beginning, each time anew.
using OpenBytes = std::function<Result<std::unique_ptr<ByteSource>>()>;
/// `text` must outlive it.
inline OpenBytes open_memory(std::string_view text) {
  return [text]() -> Result<std::unique_ptr<ByteSource>> { return bytes_in_memory(text); };
}
/// All of a table. A run of rows that has fewer than kConfirmingRows, is shorter than another and more than a day from
/// all others is set aside.
Result<FacilityTableCounts> read_facility(const OpenBytes& open, char separator, const FacilityMap& map,
                                          const std::string& path, const std::function<void(FacilitySample)>& each,
                                          RowOrder order = RowOrder::of_time, const FacilityTableLimits& limits = {});

}  // namespace flyball::series
