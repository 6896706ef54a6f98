#pragma once
// A whole run in virtual time: twin, guard, loop and ledger composed as they are live, and the same run once more with
// all limits as found, so that saving and loss are measured and not assumed.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/run_keeper.h"
#include "core/control.h"
#include "core/result_types.h"
#include "ledger/ledger.h"
#include "loop/loop.h"
#include "series/recording_writer.h"
#include "series/series.h"
#include "twin/machine.h"

namespace flyball::control {

struct VirtualRunOptions {
  /// A new machine at time 0, the same each time.
  std::function<Result<twin::Machine>()> build;
  std::string plant;
  std::string policy = "model";  ///< as policy::make takes it
  Objective objective;
  std::optional<Watts> budget;  ///< for the limits of all boards together; excludes a switchback
  Seconds duration{6 * 3600.0};
  std::uint64_t seed = 1;
  WallTime started;               ///< in simulated time
  WallTime recorded;              ///< now, for the ledger
  std::vector<DeviceId> devices;  ///< empty = all
  bool observe_only = false;
  Seconds poll{0.5}, decision{10};                    ///< between readings and between decisions
  std::optional<loop::SwitchbackOptions> switchback;  ///< empty = none
  std::string arguments;                              ///< for the ledger, as JSON
  /// Keeps every reading and decision, for a replay; null = nothing is recorded. Closed at the end of the run. A
  /// recording that cannot be written is a finding, never the end of the run.
  series::RecordingWriter* recording = nullptr;
  /// Called about a hundred times; fraction of all that is to be simulated.
  std::function<void(double fraction)> progress;
  /// Asked at every poll; true ends the run early, limits restored.
  std::function<bool()> stop;
};

using VirtualRun = RunRecord;

/// `ledger` may be null: then nothing is kept. A ledger that fails is a finding, never the end of the run.
Result<VirtualRun> run_virtual(const VirtualRunOptions& options, ledger::Ledger* ledger);

/// Loss = 1 − tokens/tokens₀ at equal time; saved = 1 − (E/tokens)/(E₀/tokens₀), ratios of sums over the whole run.
/// Nothing where a token count or an energy is missing.
void compare(RunResult& result);

}  // namespace flyball::control
