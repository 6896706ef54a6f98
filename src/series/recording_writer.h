#pragma once
// Writes a recording (doc/format-recording.md): a block is on disk whole or not at all, and a process that dies loses
// what came after the last flush and nothing else.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/filesystem.h"
#include "base/result.h"
#include "series/series.h"

namespace flyball::series {

/// One stretch of writing by one process.
struct RecordingSession {
  WallTime wall;  ///< the same instant on both clocks: what anchors all times of the session to UTC
  MonoTime mono;
  std::string boot_id;  ///< monotonic times of sessions of one boot can be compared
  std::string writer;   ///< "flyball 0.1.0"
  std::string source;   ///< "nvml 550.54", "twin pretrain-1 seed 7"
  Seconds interval;     ///< between polls, as asked for
};

class RecordingWriter {
 public:
  struct Options {
    /// A block is written when so many points wait, or when `flush` is called.
    std::size_t points_per_block = 8192;
    /// While the disk refuses blocks, so many points are kept; then the oldest are dropped and counted.
    std::size_t max_waiting_points = 1 << 17;
    /// Definitions come again after so many blocks of points, which bounds what a damaged one costs.
    std::size_t blocks_per_definition = 32;
  };

  /// Begins a file, or a further session behind what a file holds already, whole or torn. A file that is something
  /// else is refused and left as it is.
  static Result<std::unique_ptr<RecordingWriter>> open(Filesystem& files, const std::string& path,
                                                       const RecordingSession& session, Options options);
  static Result<std::unique_ptr<RecordingWriter>> open(Filesystem& files, const std::string& path,
                                                       const RecordingSession& session) {
    return open(files, path, session, Options());
  }

  /// The same key gives the same number.
  std::uint32_t begin_series(const SeriesKey& key);
  /// Times of one series must increase. An error is that of a full block that could not be written: the points wait.
  Result<> point(std::uint32_t series, MonoTime at, double value, Status status);
  /// `event.at` is not used: `at` says when.
  Result<> event(MonoTime at, const Event& event);
  /// Returns when all that was given survives a power cut.
  Result<> flush();
  /// Flushes and marks the session as ended by intent.
  Result<> close(MonoTime at, const std::string& reason);

  std::uint64_t bytes() const { return bytes_; }  ///< written by this session
  std::uint64_t points() const { return points_; }
  std::uint64_t dropped_points() const { return dropped_; }
  /// Those in blocks that the file took, and when the last of them was; nothing: no block of points is in it.
  std::uint64_t kept_points() const { return kept_; }
  std::optional<WallTime> kept_until() const;

 private:
  struct WaitingPoint {
    MonoTime at;
    double value = 0;
    Status status = Status::ok;
  };
  struct WaitingSeries {
    SeriesKey key;
    std::vector<WaitingPoint> points;
  };

  RecordingWriter(std::unique_ptr<AppendFile> file, const RecordingSession& session, std::uint32_t number,
                  Options options)
      : file_(std::move(file)), session_(session), number_(number), options_(options) {}
  Result<> append_block(int type, const std::string& payload);
  Result<> write_definitions();
  Result<> write_events();
  Result<> write_points();
  void drop_oldest();
  void tell_dropped(MonoTime at);

  std::unique_ptr<AppendFile> file_;
  RecordingSession session_;
  std::uint32_t number_;
  Options options_;
  std::vector<WaitingSeries> series_;
  std::vector<std::pair<MonoTime, Event>> events_;
  std::size_t waiting_ = 0;
  std::size_t defined_series_ = 0;
  std::size_t blocks_since_definition_ = 0;
  bool session_written_ = false;
  std::uint64_t bytes_ = 0;
  std::uint64_t points_ = 0;
  std::uint64_t event_count_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t dropped_told_ = 0;
  std::uint64_t kept_ = 0;
  MonoTime kept_until_;
};

}  // namespace flyball::series
