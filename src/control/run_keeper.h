#pragma once
// What is kept of any run of the loop, simulated or live.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/result_types.h"
#include "ledger/ledger.h"
#include "loop/loop.h"
#include "series/series.h"

namespace flyball::control {

struct RunRecord {
  RunResult result;
  std::vector<series::Series> series;  ///< per GPU: mean power and enforced limit of each interval
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
  void add(const loop::DecisionRecord& record);
  /// Takes what the loop knows at the end, while its clock still shows it. Its findings go before those of the keeper.
  void take(const loop::Loop& loop);
  void not_restored(WallTime since);
  void end(WallTime finished);

  /// Of each series; beyond it every second point is dropped, and from then on every second one is kept.
  static constexpr std::size_t kMostPoints = 65'536;

 private:
  struct Value {
    double value;
    Status status;
  };
  void add_point(const DeviceId& device, Signal signal, WallTime at, Value value);
  void thin();
  void give_up(const Error& error);

  RunRecord& run_;
  ledger::Ledger* ledger_;
  std::string source_;
  std::uint64_t stride_ = 1;  ///< decisions between two points
  std::size_t told_ = 0;      ///< findings that came with the decisions
};

}  // namespace flyball::control
