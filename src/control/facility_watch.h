#pragma once
// Follows a growing table of a building's samples and tells what it finds, once each, however often it is killed.
//
// Two files in its folder: `blocks.log` holds every finished block with the place in the input behind it, and
// `events.ndjson` every event. A block is on the disk before anything is told of it; events follow from the blocks
// alone, so that after a restart those that are missing are told and no other. What the unfinished block had is read
// again from the input.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/filesystem.h"
#include "base/result.h"
#include "facility/cause_watch.h"
#include "series/facility_rows.h"

namespace flyball::control {

/// A finding begins, is told otherwise, or is over.
struct FacilityEvent {
  enum class Kind : std::uint8_t { found, revised, over };
  std::uint64_t number = 0;  ///< from 1, without a hole
  Kind kind = Kind::found;
  WallTime at;  ///< end of the block that brought it
  facility::CauseFinding finding;
};
std::string_view to_string(FacilityEvent::Kind kind);

struct FacilityWatchOptions {
  std::string input;   ///< a CSV file with one header; it may grow, be rotated or cut
  std::string folder;  ///< of its own; is made
  series::FacilityMap map;
  facility::CauseOptions causes;
};

/// Not for threads.
class FacilityWatch {
 public:
  /// One line of `events.ndjson`, its line end included.
  using Format = std::function<std::string(const FacilityEvent&)>;

  static Result<FacilityWatch> open(FacilityWatchOptions options, Filesystem& files, Format format);
  FacilityWatch(FacilityWatch&&) noexcept;
  FacilityWatch& operator=(FacilityWatch&&) noexcept;
  ~FacilityWatch();

  /// Reads what was added, at most some megabytes; the lines of new events, which are on the disk by then. The first
  /// call also gives those that a killed watch had not told.
  Result<std::vector<std::string>> poll();
  /// More is there to be read at once.
  bool behind() const;
  /// What was noticed since the last call: a rotated or shortened file, rows that cannot be used.
  std::vector<std::string> notices();

  const facility::CauseWatch& causes() const;
  std::uint64_t blocks() const;
  /// Of the last finished block; nothing before the first.
  std::optional<WallTime> last_block() const;

 private:
  struct State;
  explicit FacilityWatch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace flyball::control
