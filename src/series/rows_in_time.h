#pragma once
// Rows that come one after the other, in order of time. One wrong clock must not end it: the first rows, and those more
// than a day ahead of the one before, wait until enough rows follow them; what the rows after them go back behind is
// set aside. For a file that grows; of one that is whole more is known (facility_table.h).

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "series/facility_rows.h"

namespace flyball::series {

/// So many rows, one after the other, are no slip of a clock.
constexpr std::size_t kConfirmingRows = 20;
/// By more than a day: a building is seldom out of sight for longer; a clock that is set wrong is by hours (a zone) up
/// to decades.
bool far_ahead(WallTime later, WallTime earlier);

struct RowOrderCounts {
  std::uint64_t rows = 0;               ///< given on
  std::uint64_t out_of_order = 0;       ///< left out: not later than the one before
  std::uint64_t far_back = 0;           ///< of these: more than a day before
  std::uint64_t ahead = 0;              ///< set aside: more than a day ahead, and those after them were not
  std::string first_ahead, first_back;  ///< "FILE:12: column 'time' is '…'"; empty if there are none
};

class RowsInTime {
 public:
  /// Both are for messages.
  RowsInTime(std::string path, std::string time_column) : path_(std::move(path)), column_(std::move(time_column)) {}

  /// What can be used now, until the next call: nothing if the row waits, or was left out and counted; several if it
  /// was waited for.
  std::span<FacilityRow> take(FacilityRow row);
  /// No row follows: the first ones need no others then; those that are ahead are set aside.
  std::span<FacilityRow> finish();
  /// Goes on behind what was read elsewhere: rows up to this time are not later.
  void resume_after(WallTime at) { last_ = at; }
  /// What waits is from a file that is left: its places are 0, the beginning of the next.
  void forget_places() {
    for (FacilityRow& row : waiting_) row.place = 0;
  }
  /// And counts from nought again.
  RowOrderCounts take_counts() { return std::exchange(counts_, {}); }

 private:
  void put_in_order(FacilityRow row);
  void not_later(const FacilityRow& row, WallTime than);
  void set_aside_last();
  void release(std::size_t count);
  std::size_t newest_run() const;
  std::string in_words(const FacilityRow& row) const { return cell_in_words(path_, row.line, column_, row.stamp); }

  std::string path_, column_;
  std::optional<WallTime> last_;     ///< of the newest that was given
  std::deque<FacilityRow> waiting_;  ///< in order of time
  std::vector<FacilityRow> ready_;
  RowOrderCounts counts_;
};

}  // namespace flyball::series
