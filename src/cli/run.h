#pragma once
// What `flyball run` does, by where its readings come from.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/app.h"
#include "cli/objective.h"
#include "cli/relief.h"
#include "control/run_keeper.h"
#include "core/control.h"
#include "ledger/ledger.h"
#include "loop/switchback.h"
#include "series/recording_writer.h"

namespace flyball::cli {

struct RunOptions {
  std::string source = "twin";
  std::string nvml_library;
  std::string scenario = "v100-bert";
  std::string policy;  ///< empty: the configuration's
  ObjectiveOptions objective;
  std::string duration;  ///< empty: the twin 6 h, else until it is stopped
  std::uint64_t seed = 1;
  std::vector<std::string> set;
  std::string report;
  std::string record;
  std::string stage;             ///< "observe", "canary" or "control"; empty: control
  std::string budget_text;       ///< --budget
  std::optional<Watts> budget;   ///< for all limits together, from --budget or run.budget
  std::string switchback_share;  ///< empty: the default
  std::string switchback_block;  ///< empty: the default
  bool observe_only = false;     ///< as --stage observe
  ReliefOptions relief;          ///< of the building around it
};

/// What --stage, --switchback-share and --switchback-block ask for; empty = no blocks.
Result<std::optional<loop::SwitchbackOptions>> switchback_of(const RunOptions& options, double default_share);

/// On the boards of this machine, in real time.
Result<> run_on_machine(const RunOptions& options, const Settings& settings, const Objective& objective,
                        Context& context);

Result<ledger::Ledger> open_ledger(Context& context, const std::string& path);
/// Null without --record. A run is a recording of its own: a file that is there already is refused.
Result<std::unique_ptr<series::RecordingWriter>> open_recording(const RunOptions& options, Context& context,
                                                                const series::RecordingSession& session);
std::string ledger_path_of(const std::string& state_dir);
/// Prints the record by the global options, writes the report, and says whether the run is degraded. `unopened` is why
/// there is no ledger.
Result<> finish_run(const RunOptions& options, const Rates& rates, control::RunRecord& run,
                    const std::optional<Error>& unopened, const std::string& ledger_path, const Objective& objective,
                    Context& context);

}  // namespace flyball::cli
