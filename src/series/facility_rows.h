#pragma once
// Samples of a building in rows of a table, and back. Columns: "time" (RFC 3339), the numbers of
// core/facility_columns.h, "software", of racks "rack12_w" and "rack12_inlet_c", of jobs "job3_type", "job3_phase",
// "job3_gpus_fraction", "job3_tokens_per_s", "job3_utilisation_fraction" and "job3_loss"; both count from 1. A cell
// without a value is a field without one; what cannot be read ends it with line, column, value and remedy.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/csv.h"
#include "base/result.h"
#include "core/facility.h"
#include "core/facility_columns.h"
#include "series/decimal_mark.h"
#include "series/reader_stamp.h"

namespace flyball::series {

inline constexpr std::string_view kTimeColumn = "time", kSoftwareColumn = "software";
constexpr std::size_t kMostRacks = 4096, kMostJobs = 32;

/// What a column's name stands for, and what it can hold.
struct FacilityField {
  enum class Of : std::uint8_t { whole, rack_power, rack_inlet, job, job_type, job_phase, software };
  Of of = Of::whole;
  const FacilityColumn* whole = nullptr;
  std::size_t index = 0;   ///< of the rack or job, from 0
  std::size_t number = 0;  ///< of a job's
  double low = 0, high = 0;
};
/// Nothing: no such column.
std::optional<FacilityField> find_facility_field(std::string_view name);

/// All columns of a table with so many racks and jobs, stamp first.
std::vector<std::string> facility_header(std::size_t racks, std::size_t jobs);
/// The cells under them; what is not known is empty.
std::vector<std::string> facility_cells(const FacilitySample& sample, std::size_t racks, std::size_t jobs);
/// A row of a table, its line end included.
std::string facility_line(std::span<const std::string> cells);

/// Which column of another's table is which of ours: value = cell × scale + offset.
struct FacilityMap {
  struct Column {
    std::string name;  ///< as the header has it, or "#3" for the third
    double scale = 1, offset = 0;
  };
  std::map<std::string, Column> columns;  ///< by our names; empty: the table has ours
  std::string zone;                       ///< of stamps that carry none; empty: UTC
};

/// What of the cells could not be used.
struct FacilityRowCounts {
  std::uint64_t impossible = 0;       ///< values outside their column's range; the field is empty then
  std::uint64_t without_time = 0;     ///< rows left out: no stamp, or one that names no instant
  std::uint64_t unknown_phases = 0;   ///< words that are no phase; it is unknown then
  std::uint64_t hours_back = 0;       ///< stamps that go back by an hour as local time does in autumn
  std::uint64_t falling = 0;          ///< rows that are earlier than the one before them, whatever became of it
  std::vector<std::string> examples;  ///< the first few, "FILE:12: column 'it_w' is '-3'"
  std::string first_hour_back;        ///< in the same words, and the remedy; empty if there are none
};

/// A sample, and where its row is.
struct FacilityRow {
  FacilitySample sample;
  std::uint64_t place = 0;  ///< by whom it was read
  std::uint64_t line = 0;
  std::string stamp;  ///< as it was written
};
/// "FILE:12: column 'it_w' is '-3'".
std::string cell_in_words(const std::string& path, std::uint64_t line, const std::string& column,
                          std::string_view cell);

/// What each row says, whatever those before it said.
class FacilityRows {
 public:
  /// `path` is for messages; behind semicolons commas stand before decimals. An error where neither time nor any known
  /// column is there, or a mapped one is missing.
  static Result<FacilityRows> bind(std::span<const std::string_view> header, const FacilityMap& map, std::string path,
                                   char separator);

  /// Nothing: left out, and counted. `line` is what messages say, `place` comes back with the sample.
  Result<std::optional<FacilityRow>> read(std::span<const std::string_view> cells, std::uint64_t line,
                                          std::uint64_t place = 0);
  /// Only when it is; what the other cells hold is not looked at.
  Result<std::optional<WallTime>> read_time(std::span<const std::string_view> cells, std::uint64_t line);
  /// Goes on behind what was read elsewhere.
  void resume_after(WallTime at) { stamps_.resume_after(at); }

  const std::string& path() const { return path_; }
  const std::string& time_column() const { return header_[time_]; }
  const FacilityRowCounts& counts() const { return counts_; }
  /// And counts from nought again.
  FacilityRowCounts take_counts() { return std::exchange(counts_, {}); }
  bool zone_assumed() const { return stamps_.assumed_utc(); }
  /// Columns of the table that are read.
  std::vector<std::string> known() const;
  /// Columns of the table that are none of ours.
  std::span<const std::string> unknown() const { return unknown_; }

 private:
  struct Bound {
    std::size_t cell = 0;
    FacilityField field;
    double scale = 1, offset = 0;
  };
  FacilityRows(std::string path, StampReader stamps, char separator)
      : path_(std::move(path)), stamps_(std::move(stamps)), numbers_(separator) {}
  Result<> bind_columns(const FacilityMap& map);
  Result<> read_cell(const Bound& bound, std::string_view cell, std::uint64_t line, FacilitySample& sample);
  std::string cell_text(std::uint64_t line, std::size_t cell, std::string_view text) const;
  void example(std::uint64_t line, std::size_t cell, std::string_view text);
  void look_for_autumn(std::uint64_t line, std::string_view stamp, WallTime at, bool unsure);

  std::string path_;
  StampReader stamps_;
  DecimalMark numbers_;
  StampUnit stamp_unit_ = StampUnit::by_size;
  std::vector<std::string> header_;
  std::vector<Bound> bound_;
  std::vector<std::string> unknown_;
  std::size_t time_ = 0;
  std::optional<WallTime> row_before_;  ///< whatever became of it
  bool rising_ = false;                 ///< it was later than the one before it
  FacilityRowCounts counts_;
};

/// A phase as flyball names it, or as jobs often call it ("train", "eval", "init").
std::optional<Phase> phase_in_words(std::string_view word);

}  // namespace flyball::series
