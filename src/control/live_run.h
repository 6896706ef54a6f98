#pragma once
// A run on a real machine, in real time: boards behind a driver, the guard, the job, the loop.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/run_keeper.h"
#include "core/control.h"
#include "core/driver.h"
#include "guard/authority.h"
#include "ledger/ledger.h"
#include "loop/progress.h"
#include "loop/switchback.h"
#include "series/recording_writer.h"

namespace flyball::control {

struct LiveRunOptions {
  std::string plant;
  std::string source;            ///< of the series: "nvml"
  std::string policy = "model";  ///< as policy::make takes it
  Objective objective;
  std::optional<Watts> budget;      ///< for the limits of all boards together; excludes a switchback
  std::optional<Seconds> duration;  ///< not given = until stopped
  Seconds poll{0.5};
  Seconds decision{10};
  std::uint64_t seed = 1;
  std::vector<DeviceId> devices;                      ///< empty = all
  std::optional<loop::SwitchbackOptions> switchback;  ///< empty = none, and then no saving is known
  bool observe_only = false;                          ///< no lease, no write; the authority is never asked
  bool clocks_unlocked = false;                       ///< site.clocks_unlocked of every board
  std::string arguments;                              ///< for the ledger, as JSON
  /// Outlives the run; may be null. `anchor` is its session's: one instant on both clocks.
  series::RecordingWriter* recording = nullptr;
  std::pair<MonoTime, WallTime> anchor = {};
  /// Called at every poll.
  std::function<void(Seconds elapsed, const Account& account)> progress;
  /// Asked at every poll for an objective that holds from now on; empty = as it is.
  std::function<std::optional<Objective>()> new_objective;
  /// Asked ten times a second; true ends the run, limits restored.
  std::function<bool()> stop;
};

/// All outlive the run.
struct LiveParts {
  Driver& driver;
  Clock& clock;
  guard::LimitAuthority& guard;
  loop::ProgressSource& job;
};

/// `ledger` may be null: then nothing is kept. However the run ends, the lease is released and every board is read
/// and compared with what was found; a saving is not claimed, for nothing was run to compare with.
Result<RunRecord> run_live(const LiveRunOptions& options, const LiveParts& parts, ledger::Ledger* ledger);

}  // namespace flyball::control
