#pragma once
// Stamps of other people's files, for whoever reads them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "series/reader_intake.h"

namespace flyball::series {

/// What a bare number in a stamp column counts since 1970. `by_size` takes it from the magnitude: the years 2000 to
/// 2100 in s, ms, µs and ns do not overlap.
enum class StampUnit : std::uint8_t { by_size, s, ms, us, ns };
/// From a column's name: "time_ms", "timestamp_us", "epoch_s"; by_size if it tells nothing.
StampUnit stamp_unit_of(std::string_view lower_case_name);

class StampReader {
 public:
  /// An unknown zone is an error.
  static Result<StampReader> make(const ReadOptions& options);

  /// Understands 1715960308.411, 1715960308411, 2024/05/17 15:38:28.411 (blank or T, - or /, decimals behind a point or
  /// a comma) with Z, ±hh:mm or no zone. Returns what is wrong, or nullptr.
  const char* read(std::string_view cell, StampUnit unit, WallTime& at);
  /// Says once what was assumed about stamps without zone.
  void report(Intake& intake) const;
  /// Some stamp had no zone, and none was named.
  bool assumed_utc() const { return assumed_utc_; }
  /// By `Fold::in_order`: stamps of the repeated hour behind which the next pass could not be told from rows that stand
  /// in no order. They were read as the first pass.
  std::uint64_t unsure() const { return unsure_; }
  /// By `Fold::in_order`: what is read goes on behind this.
  void resume_after(WallTime at) { before_ = at; }

 private:
  const char* read_number(std::string_view cell, StampUnit unit, WallTime& at) const;
  static const char* from_count(std::uint64_t count, std::int64_t part, StampUnit unit, WallTime& at);
  const char* read_date(std::string_view cell, WallTime& at);
  void read_folded(std::int64_t local_ns, WallTime& at);

  std::optional<Zone> zone_;
  Fold fold_ = Fold::refuse;
  bool assumed_utc_ = false;
  std::optional<WallTime> before_;  ///< the stamp of a repeated hour that was read last
  std::uint64_t unsure_ = 0;
  char day_text_[10] = {};  ///< the day that was decoded last
  std::int64_t day_start_ns_ = 0;
};

}  // namespace flyball::series
