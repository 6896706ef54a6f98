#pragma once
// What was read of boards and job, into a recording: every poll as it was, and what does not change only once.
//
// Events that it writes, for whoever reads the recording:
//   board_range  of one board; value = the highest limit in W, detail "minimum_mw=… maximum_mw=…"
//   PHASE_start, PHASE_stop  of the job, PHASE as core/workload.h prints it

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "core/driver.h"
#include "core/reading.h"
#include "core/workload.h"
#include "series/recording_writer.h"

namespace flyball::control {

/// The name that the job's own series have, beside those of boards: `tokens`, and `other` with the source "steps".
const DeviceId& job_device();
inline constexpr const char* kStepsSource = "steps";
/// What the rank on a board has waited in steps: `other` of that board, s, cumulative, at the end of a step.
inline constexpr const char* kWaitedSource = "waited";

class ReadingLog {
 public:
  /// The writer outlives the log. `source` is that of all boards' series.
  ReadingLog(series::RecordingWriter& writer, std::string source) : writer_(writer), source_(std::move(source)) {}

  /// Readings of one board must come in order of time.
  void reading(const GpuReading& reading);
  /// The read failed: every signal of the board that it has is `failed` at `at`.
  void failed(const DeviceId& device, MonoTime at);
  void range(const DeviceId& device, const PowerLimits& limits, MonoTime at);
  /// Steps by when they ended, phases by when they were seen.
  void progress(const Sample<WorkloadProgress>& progress, MonoTime seen);
  /// Once a step, behind its `progress`.
  void waited(const DeviceId& device, const Sample<Seconds>& waited);

  std::uint64_t failures() const { return failures_; }               ///< points that could not be written at once
  const std::string& last_failure() const { return last_failure_; }  ///< why; the points wait in the writer

 private:
  struct Kept {
    std::uint32_t series = 0;
    Status last = Status::ok;
  };
  struct Board {
    std::unordered_map<Signal, Kept> kept;
    std::pair<Sample<Milliwatts>, Sample<Milliwatts>> range;
    std::optional<std::uint32_t> waited_series;
    MonoTime waited_at;
  };

  void put(Board& board, const DeviceId& device, Signal signal, MonoTime at, double value, Status status, Scope scope);
  void keep(std::uint32_t series, MonoTime at, double value, Status status);
  void event(MonoTime at, const std::string& kind, const DeviceId& device, double value, std::string detail);

  series::RecordingWriter& writer_;
  std::string source_;
  std::unordered_map<DeviceId, Board> boards_;
  std::uint32_t tokens_series_ = 0, steps_series_ = 0;
  bool job_seen_ = false;
  MonoTime last_step_;
  Phase phase_ = Phase::unknown;
  std::uint64_t failures_ = 0;
  std::string last_failure_;
};

}  // namespace flyball::control
