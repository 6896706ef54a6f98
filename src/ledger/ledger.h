#pragma once
// What happened, kept: runs, decisions, writes, energy and findings in one SQLite file that a reader may open while a
// run writes. Every decision is one transaction: after a crash the file holds whole decisions, the last of them maybe
// not.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/control.h"
#include "core/result_types.h"

namespace flyball::ledger {

using RunId = std::int64_t;

/// What is known when a run starts.
struct RunStart {
  std::string plant;
  std::string policy;
  std::uint64_t seed = 0;
  WallTime started;       ///< in the run's own time; a simulated run has a simulated one
  WallTime recorded;      ///< when the row was made
  std::string version;    ///< of the program
  std::string arguments;  ///< all that is needed to repeat it, as JSON
};

/// What became of one wish.
struct Write {
  DeviceId device;
  Milliwatts asked;
  Milliwatts accepted;
  Sample<Milliwatts> enforced;
  std::string state;  ///< as guard::WriteState is printed
  std::string reason;
};

struct DecisionEntry {
  std::uint64_t number = 0;
  WallTime wall;
  Observation observation;
  std::string frozen;
  Proposal proposal;
  std::vector<Write> writes;
  std::vector<Finding> findings;
};

enum class RunState { running, done, interrupted, failed };
std::string_view to_string(RunState state);

struct RunRow {
  RunId id = 0;
  RunState state = RunState::running;
  RunStart start;
  std::optional<WallTime> finished;
  std::uint64_t decisions = 0;
  std::optional<RunResult> result;  ///< without findings; of a finished run
};

/// A row of `decisions` with what one GPU showed; for reports and audits.
struct DecisionRow {
  std::uint64_t number = 0;
  WallTime wall;
  DeviceId device;
  std::string phase;
  std::string frozen;
  std::string reason;
  Sample<Watts> power;
  Sample<Joules> energy;
  Sample<double> tokens_per_second;
  Sample<Milliwatts> limit_enforced;
  Sample<Milliwatts> asked;
  double coverage_fraction = 0;
};

/// A version of a baseline, never changed once it is kept.
struct BaselineRow {
  std::string hash;         ///< says what it is (facility/phase_library.h)
  std::string parent;       ///< empty: the first
  std::string inputs_hash;  ///< of what it was learned from
  std::string subject;      ///< of what, "plant cooling_plant"
  std::string reason;
  std::string version;  ///< of the program
  std::string made_by;
  WallTime made;
  WallTime valid_from;
  std::string content;
};

/// Not thread-safe; each thread opens its own. Errors name the file and what to do; nothing here ends the program.
class Ledger {
 public:
  /// Makes the file (0640) if it is not there and brings an older one up to date. A newer one is refused, and so is a
  /// file that is something else.
  static Result<Ledger> open(const std::string& path);
  /// Sees each committed decision of a writer at once. Never creates, never migrates.
  static Result<Ledger> open_read_only(const std::string& path);
  Ledger(Ledger&&) noexcept;
  Ledger& operator=(Ledger&&) noexcept;
  ~Ledger();

  Result<RunId> begin_run(const RunStart& start);
  Result<> add_decision(RunId run, const DecisionEntry& decision);
  /// With the accounts and all findings that no decision brought.
  Result<> end_run(RunId run, RunState state, WallTime finished, const RunResult& result);

  /// Newest first.
  Result<std::vector<RunRow>> runs(std::size_t at_most = 100);
  Result<RunRow> run(RunId run);
  Result<std::vector<DecisionRow>> decisions(RunId run);
  Result<std::vector<Finding>> findings(RunId run);
  /// One that is there already stays as it is.
  Result<> add_baseline(const BaselineRow& baseline);
  /// By its hash, or enough of it; an error where none or several begin so.
  Result<BaselineRow> baseline(const std::string& hash);
  /// Newest first.
  Result<std::vector<BaselineRow>> baselines(const std::string& subject, std::size_t at_most = 100);
  /// SQLite's own check and that of its foreign keys; the error tells what is broken.
  Result<> check();

  const std::string& path() const;
  static constexpr int kSchemaVersion = 3;

 private:
  struct State;
  explicit Ledger(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace flyball::ledger
