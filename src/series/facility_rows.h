#pragma once
// Samples of a building in rows of a table, and back. Columns: "time" (RFC 3339), the numbers of
// core/facility_columns.h, "software", of racks "rack12_w" and "rack12_inlet_c", of jobs "job3_type", "job3_phase",
// "job3_gpus_fraction", "job3_tokens_per_s", "job3_utilisation_fraction" and "job3_loss"; both count from 1. A cell
// without a value is a field without one; what cannot be read ends it with line, column, value and remedy.

#include <cstdint>
#include <deque>
#include <functional>
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

/// Whether rows that are not later than the one before are samples too.
enum class RowOrder : std::uint8_t { of_time, any };

struct FacilityRowCounts {
  std::uint64_t rows = 0;               ///< that became samples
  std::uint64_t impossible = 0;         ///< values outside their column's range; the field is empty then
  std::uint64_t out_of_order = 0;       ///< rows left out: not later than the one before
  std::uint64_t far_back = 0;           ///< of these: more than a day before
  std::uint64_t ahead = 0;              ///< rows set aside: more than a day ahead, and those after them were not
  std::uint64_t without_time = 0;       ///< rows left out: no stamp, or one that names no instant
  std::uint64_t unknown_phases = 0;     ///< words that are no phase; it is unknown then
  bool cut = false;                     ///< the last line has no end and was left out
  bool zone_assumed = false;            ///< stamps without zone were read as UTC
  std::uint64_t hours_back = 0;         ///< stamps that go back by an hour as local time does in autumn
  std::string first_hour_back;          ///< "FILE:12: …" and the remedy
  std::vector<std::string> examples;    ///< the first few, "FILE:12: column 'it_w' is '-3'"
  std::string first_ahead, first_back;  ///< in the same words; empty if there are none
};

/// "3 values are impossible and left out; FILE:12: …"; empty if all was used.
std::string to_text(const FacilityRowCounts& counts);

/// A sample, and where its row is by whom it was read.
struct FacilityRow {
  FacilitySample sample;
  std::uint64_t place = 0;
};

/// In order of time one wrong clock must not end it: the first rows, and those more than a day ahead of the one before,
/// wait until enough rows follow them. What the rows after them go back behind is set aside.
class FacilityRows {
 public:
  /// `path` is for messages. An error where neither time nor any known column is there, or a mapped one is missing.
  static Result<FacilityRows> bind(std::span<const std::string_view> header, const FacilityMap& map, std::string path,
                                   RowOrder order = RowOrder::of_time);

  /// What can be used now, until the next call: nothing if the row waits, or was left out and counted; several if it
  /// was waited for. `line` is what messages say, `place` comes back with the sample.
  Result<std::span<FacilityRow>> take(std::span<const std::string_view> cells, std::uint64_t line,
                                      std::uint64_t place = 0);
  /// No row follows: the first ones need no others then; those that are ahead are set aside.
  std::span<FacilityRow> finish();
  /// Goes on behind what was read elsewhere: rows up to this time are not later.
  void resume_after(WallTime at) {
    last_ = at;
    stamps_.resume_after(at);
  }

  std::size_t width() const { return header_.size(); }
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
  FacilityRows(std::string path, StampReader stamps, RowOrder order)
      : path_(std::move(path)), stamps_(std::move(stamps)), order_(order) {}
  Result<> bind_columns(const FacilityMap& map);
  Result<> read_cell(const Bound& bound, std::string_view cell, std::uint64_t line, FacilitySample& sample);
  Result<bool> read_row(std::span<const std::string_view> cells, std::uint64_t line, FacilitySample& sample);
  std::string cell_text(std::uint64_t line, std::size_t cell, std::string_view text) const;
  void example(std::uint64_t line, std::size_t cell, std::string_view text);
  void look_for_autumn(std::uint64_t line, std::string_view stamp, WallTime at, bool unsure);

  struct Waiting {
    FacilityRow row;
    std::uint64_t line = 0;
    std::string stamp;
  };
  void put_in_order(Waiting row);
  void not_later(const Waiting& row, WallTime than);
  void set_aside_last();
  void release(std::size_t count);
  std::size_t newest_run() const;

  std::string path_;
  StampReader stamps_;
  RowOrder order_ = RowOrder::of_time;
  StampUnit stamp_unit_ = StampUnit::by_size;
  std::vector<std::string> header_;
  std::vector<Bound> bound_;
  std::vector<std::string> unknown_;
  std::size_t time_ = 0;
  std::optional<WallTime> row_before_;  ///< in the file, whatever became of it
  std::optional<WallTime> last_;        ///< of the newest that was given
  std::deque<Waiting> waiting_;   ///< in order of time
  std::vector<FacilityRow> ready_;
  FacilityRowCounts counts_;
};

/// A phase as flyball names it, or as jobs often call it ("train", "eval", "init").
std::optional<Phase> phase_in_words(std::string_view word);

/// All of a file. `each` gets the samples, in order of time unless any is asked for.
Result<FacilityRowCounts> read_facility(ByteSource& bytes, char separator, const FacilityMap& map,
                                        const std::string& path, const std::function<void(FacilitySample)>& each,
                                        RowOrder order = RowOrder::of_time);

}  // namespace flyball::series
