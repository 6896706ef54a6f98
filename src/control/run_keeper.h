#pragma once
// What is kept of any run of the loop, simulated or live.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/stats.h"
#include "core/result_types.h"
#include "core/workload.h"
#include "ledger/ledger.h"
#include "loop/loop.h"
#include "series/series.h"

namespace flyball::control {

/// `GpuControl::after`.
inline constexpr const char* kAsFound = "as found";
inline constexpr const char* kLeftToOther = "left to another writer";
inline constexpr const char* kNotAsFound = "NOT as found";
inline constexpr const char* kAtRest = "at rest under the budget";

/// "budget:2400W:model": as policy::make takes it and a recording keeps it.
std::string policy_within(const std::optional<Watts>& budget, const std::string& policy);
/// A budget leaves no block at the limits found.
Result<> check_budget(const std::optional<Watts>& budget, bool observe_only, bool switchback);

struct RunRecord {
  RunResult result;
  std::vector<series::Series> series;  ///< per GPU: mean power and enforced limit of each interval
  std::vector<PhaseSpan> phases;       ///< as the job told them, to the interval; unknown ones are left out
  loop::Rejected rejected;             ///< readings that were set aside
  std::uint64_t decisions = 0;
  std::uint64_t frozen = 0;  ///< decisions in which the policy was not asked
  bool interrupted = false;
  std::optional<ledger::RunId> ledger_run;
  /// The run is whole but something is not as promised: a limit not restored, the ledger not written.
  bool degraded = false;
};

/// Keeps decisions as they come, in the record and in the ledger.
class RunKeeper {
 public:
  /// Both outlive the keeper; `ledger` may be null. `source` is that of the series.
  RunKeeper(RunRecord& run, ledger::Ledger* ledger, std::string source)
      : run_(run), ledger_(ledger), source_(std::move(source)) {}

  void begin(const ledger::RunStart& start);
  /// From now on it is kept how much of the budget was used.
  void hold_budget(Watts limit) { run_.result.budget = BudgetHeld{limit, {}, {}}; }
  void add(const loop::DecisionRecord& record);
  /// Takes what the loop knows at the end, while its clock still shows it. Its findings go before those of the keeper.
  void take(const loop::Loop& loop);
  /// What became of the limits, as `GpuControl::after`; of a GPU that was never written nothing is kept.
  void restored(const DeviceId& device, const std::string& after);
  void not_restored(WallTime since);
  void recording_not_written(const std::string& why, WallTime since);
  void end(WallTime finished);

  /// Of each series; beyond it every second point is dropped, and from then on every second one is kept.
  static constexpr std::size_t kMostPoints = 65'536;
  static constexpr std::size_t kMostPhases = 10'000;  ///< later ones are not kept

 private:
  struct Value {
    double value;
    Status status;
  };
  void add_point(const DeviceId& device, Signal signal, WallTime at, Value value);
  void thin();
  void add_limits(const loop::DecisionRecord& record);
  void add_budget(const loop::DecisionRecord& record);
  void add_phase(const loop::DecisionRecord& record);
  void give_up(const Error& error);

  RunRecord& run_;
  ledger::Ledger* ledger_;
  std::string source_;
  std::vector<RunningStats> limits_;  ///< per GPU of the result, mW
  std::uint64_t stride_ = 1;          ///< decisions between two points
  std::size_t told_ = 0;              ///< findings that came with the decisions
};

}  // namespace flyball::control
