#pragma once
// Reads a recording (doc/format-recording.md), whole, torn or damaged: what is sound comes out, what is lost is told.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"
#include "series/reader.h"
#include "series/recording_writer.h"

namespace flyball::series {

/// What a recording says of itself beside its points.
struct RecordingDetails {
  struct Session {
    RecordingSession session;
    std::uint64_t points = 0;  ///< read of it
    bool closed = false;       ///< false: its process was killed, or is still writing
    std::string close_reason;
    WallTime ended;  ///< of a closed one
  };
  std::vector<Session> sessions;
  std::uint64_t blocks = 0;
  std::uint64_t unknown_blocks = 0;  ///< of types that a newer version writes; skipped
  std::uint64_t damaged_blocks = 0;
  /// Between the last sound points before a loss and the first behind it; empty bounds where there are none. The first
  /// kMostLosses.
  struct Loss {
    std::optional<WallTime> from, to;
  };
  static constexpr std::size_t kMostLosses = 100;
  std::vector<Loss> losses;
  std::uint64_t lost_bytes = 0;       ///< between sound blocks, and behind the last
  std::uint64_t orphaned_points = 0;  ///< whose session or series was defined in a block that is lost
};

/// Times are anchored: within a boot by the monotonic clock of its first session, so that a step of the wall clock
/// moves nothing and is an event "wall_step".
Result<ReadSummary> read_recording(ByteSource& bytes, const std::string& name, Sink& sink, RecordingDetails& details);
Result<ReadSummary> read_recording_file(const std::string& path, Sink& sink, RecordingDetails& details);

}  // namespace flyball::series
