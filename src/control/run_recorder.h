#pragma once
// Keeps a run of the loop as it goes, so that it can be replayed: every reading that the loop took, the job's progress,
// each decision and what became of it. It stands between the loop and what the loop reads, and changes nothing.
//
// Events beside those of reading_log.h:
//   policy       detail "alpha=… max_loss_fraction=… run_length_s=… decision_s=… clocks=… policy=SPEC", value = the
//                seed; of a live run also poll_s=…
//   run_start, run_stop
//   decision     value = its number; detail "observed=CRC32 …": of all that the policy saw, then why it asked
//   limit_found  of one board, before anything was written: value = the limit in force, W
//   wish         of one board, for the decision before it: value = the limit in W, or detail "locked_clocks …",
//                "unlock_clocks"
//   lease        of a live run: value 1 when it was given, 0 when it was refused or lost, detail says which
//   objective    of a live run: the one from here on, detail "alpha=… max_loss_fraction=…"
//   limit_write  of one board: value = the wish in W, detail "state=… accepted_mw=… enforced_mw=… reason=…"

// A live run has one series more, of the device "run" with the source "polls": a point at the end of each poll, its
// value the job's tokens as the loop saw them; `missing` where the job said nothing.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "control/reading_log.h"
#include "core/control.h"
#include "core/driver.h"
#include "loop/loop.h"
#include "loop/progress.h"
#include "series/recording_writer.h"
#include "series/series.h"

namespace flyball::control {

/// What a recording has to say of the run that it is of.
struct RecordedPolicy {
  std::string policy;
  Objective objective;
  std::uint64_t seed = 1;
  Seconds run_length;
  Seconds decision{10};
  std::optional<loop::SwitchbackOptions> switchback = {};
  std::optional<Seconds> poll = {};  ///< of a live run
  bool clocks_unlocked = false;
};
inline constexpr const char* kPollsSource = "polls";
series::Event policy_event(const RecordedPolicy& policy);
Result<RecordedPolicy> parse_policy_event(const series::Event& event);
Result<Objective> parse_objective_event(const series::Event& event);

/// The decision and its wishes as events: two decisions are the same if these are, to the last bit of what was seen.
/// Lines longer than a recording's text are cut; `at` is that of the decision.
std::vector<series::Event> decision_events(const loop::DecisionRecord& record);
/// What became of the wishes.
std::vector<series::Event> write_events(const loop::DecisionRecord& record);
Result<guard::WriteOutcome> parse_write_event(const series::Event& event);

/// Lowest and highest limit of a board_range event.
Result<std::pair<Milliwatts, Milliwatts>> parse_range_event(const series::Event& event);

class RunRecorder final : public Driver, public loop::ProgressSource {
 public:
  /// All outlive the recorder. Errors of the disk never reach the loop: see `failure`.
  RunRecorder(Driver& driver, loop::ProgressSource& progress, const Clock& clock, series::RecordingWriter& writer,
              std::pair<MonoTime, WallTime> anchor = {});

  void begin(const RecordedPolicy& policy);
  /// Of a live run, after all reads of a poll: what follows belongs to this instant, and little is lost by a crash.
  void polled(MonoTime at, const Sample<WorkloadProgress>& shown);
  void lease(const std::string& what);
  void objective(const Objective& objective);
  /// As the recording's session has it.
  WallTime wall_at(MonoTime at) const;
  void decided(const loop::DecisionRecord& record);
  void end(const std::string& reason);
  /// Why the recording lacks something; empty = it is whole.
  const std::string& failure() const { return failure_.empty() ? log_.last_failure() : failure_; }

  std::string name() const override { return driver_.name(); }
  Result<DriverEpoch> epoch() override { return driver_.epoch(); }
  Result<std::vector<DeviceInfo>> devices() override { return driver_.devices(); }
  Result<GpuReading> read(const DeviceId& device) override;
  Result<PowerLimits> limits(const DeviceId& device) override;
  Result<Capabilities> capabilities(const DeviceId& device) override { return driver_.capabilities(device); }
  Result<> set_power_limit(const DeviceId& device, Milliwatts limit) override {
    return driver_.set_power_limit(device, limit);
  }
  Result<> lock_clocks(const DeviceId& device, ClockRange range) override { return driver_.lock_clocks(device, range); }
  Result<> reset_clocks(const DeviceId& device) override { return driver_.reset_clocks(device); }
  Sample<WorkloadProgress> progress() override;
  Sample<Seconds> waited(const DeviceId& device) override;

 private:
  MonoTime when() const { return polled_ ? *polled_ : clock_.now(); }
  void event(const series::Event& event);
  void flush_every(Seconds period);
  void note(const Result<>& done);

  Driver& driver_;
  loop::ProgressSource& progress_;
  const Clock& clock_;
  series::RecordingWriter& writer_;
  std::pair<MonoTime, WallTime> anchor_;
  ReadingLog log_;
  MonoTime flushed_;
  std::optional<MonoTime> polled_;
  std::set<DeviceId> found_;
  std::uint32_t polls_series_ = 0;
  std::string failure_;
};

}  // namespace flyball::control
