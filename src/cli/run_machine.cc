#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/arguments.h"
#include "cli/progress.h"
#include "cli/run.h"
#include "cli/signals.h"
#include "control/fake_job.h"
#include "control/guard_link.h"
#include "control/live_run.h"
#include "device/nvml/nvml_api.h"
#include "device/worker/worker_driver.h"
#include "report/json.h"
#include "report/table.h"

namespace flyball::cli {
namespace {

/// As the configuration says it now.
Result<Objective> objective_again(Context& context) {
  if (context.options.config_path.empty()) {
    return fail(ErrorCode::input, "SIGHUP reads the configuration again, and this run has none", {},
                "start it with --config FILE");
  }
  FLYBALL_ASSIGN(const Settings settings, load_settings(context));
  return settings.run.objective;
}

/// "nvml 550.54, 8 x NVIDIA H100 80GB HBM3"
Result<std::string> plant_of(Driver& driver, const std::vector<DeviceId>& chosen) {
  FLYBALL_ASSIGN(const DriverEpoch epoch, driver.epoch());
  FLYBALL_ASSIGN(const auto devices, driver.devices());
  std::map<std::string, int> kinds;
  for (const DeviceInfo& device : devices) {
    const bool ours = chosen.empty() || std::find(chosen.begin(), chosen.end(), device.id) != chosen.end();
    if (ours) ++kinds[device.name];
  }
  std::string plant = fmt::format("{} {}", driver.name(), epoch.version);
  for (const auto& [kind, count] : kinds) plant += fmt::format(", {} x {}", count, kind);
  return plant;
}

std::string arguments_json(const RunOptions& options, const control::LiveRunOptions& how) {
  report::Json made = report::Json::object();
  made["source"] = options.source;
  made["policy"] = options.policy;
  made["alpha"] = how.objective.alpha ? report::number(*how.objective.alpha) : report::Json(nullptr);
  made["max_loss_fraction"] =
      how.objective.max_loss_fraction ? report::number(*how.objective.max_loss_fraction) : report::Json(nullptr);
  made["duration_s"] = how.duration ? report::number(how.duration->value()) : report::Json(nullptr);
  made["decision_s"] = report::number(how.decision.value());
  made["poll_s"] = report::number(how.poll.value());
  made["seed"] = options.seed;
  made["budget_w"] = how.budget ? report::number(how.budget->value()) : report::Json(nullptr);
  made["observe_only"] = options.observe_only;
  made["stage"] = options.stage;
  made["switchback_share_fraction"] = how.switchback ? report::number(how.switchback->share) : report::Json(nullptr);
  made["switchback_block_s"] = how.switchback ? report::number(how.switchback->block.value()) : report::Json(nullptr);
  return report::dump_line(made);
}

/// Fake GPUs have a job whose progress their owner tells; of a real one nothing is known without its own word.
std::unique_ptr<loop::ProgressSource> job_of(const Clock& clock) {
  const char* page = std::getenv("FLYBALL_FAKEGPU");
  if (page != nullptr && *page != '\0') return std::make_unique<control::FakeJob>(page, clock);
  return std::make_unique<control::SilentJob>();
}

Result<std::unique_ptr<guard::LimitAuthority>> guard_of(const RunOptions& options, const std::string& socket) {
  if (options.observe_only) return std::make_unique<control::NoGuard>();
  auto link = control::GuardLink::connect(socket);
  if (!link) {
    link.error().remedy += "; or only watch: --observe-only";
    return fail(std::move(link.error()));
  }
  return *std::move(link);
}

/// Clocks are a lever where the site declares every board of the run unlocked and its driver can lock it.
bool clocks_unlocked(Driver& driver, const std::vector<DeviceId>& chosen, const SiteSettings& site) {
  std::vector<DeviceId> boards = chosen;
  if (boards.empty()) {
    const auto found = driver.devices();
    if (!found) return false;
    for (const DeviceInfo& board : *found) boards.push_back(board.id);
  }
  return std::all_of(boards.begin(), boards.end(), [&](const DeviceId& board) {
    if (!site.range(board).clocks_unlocked) return false;
    const auto can = driver.capabilities(board);
    return can && can->lock_clocks == Status::ok;
  });
}

Result<> say_plan(const control::LiveRunOptions& how, const Objective& objective, const std::string& ledger_path,
                  Context& context) {
  return cli::say_plan(context, "run",
                       {{"Plant", how.plant},
                        {"Policy", how.observe_only ? "none (observe only)" : how.policy},
                        {"Objective", objective_text(objective)},
                        {"Budget", how.budget ? format(*how.budget) + " for all limits together" : "none"},
                        {"Duration", how.duration ? format(*how.duration) : "until stopped"},
                        {"Decides", "every " + format(how.decision)},
                        {"Ledger", "would be written: " + ledger_path}});
}

}  // namespace

Result<> run_on_machine(const RunOptions& options, const Settings& settings, const Objective& objective,
                        Context& context) {
  if (!options.set.empty()) {
    return fail(ErrorCode::input, "only a twin's parameters can be set", "--set", "leave it out with --source nvml");
  }
  control::LiveRunOptions how;
  if (!options.duration.empty()) {
    FLYBALL_ASSIGN(how.duration, parse_duration(options.duration));
  }
  // In workers of its own: a call that hangs costs one board, not the run.
  const std::string library = options.nvml_library.empty() ? nvml::kDefaultLibrary : options.nvml_library;
  const auto driver = worker::make_nvml_in_workers(library, context.clock);
  how.devices = context.options.gpus.empty() ? settings.run.gpus : context.options.gpus;
  FLYBALL_ASSIGN(how.plant, plant_of(*driver, how.devices));
  how.source = "nvml";
  how.policy = options.policy;
  how.objective = objective;
  how.budget = options.budget;
  how.poll = settings.run.sample;
  how.decision = settings.run.interval;
  how.seed = options.seed;
  how.observe_only = options.observe_only;
  how.clocks_unlocked = clocks_unlocked(*driver, how.devices, settings.site);
  FLYBALL_ASSIGN(how.switchback, switchback_of(options, settings.run.switchback_share));
  how.arguments = arguments_json(options, how);
  const std::string ledger_path = ledger_path_of(settings.run.state_dir);
  if (context.options.dry_run) return say_plan(how, objective, ledger_path, context);

  FLYBALL_ASSIGN(const auto guard, guard_of(options, settings.guard.socket));
  const auto job = job_of(context.clock);
  FLYBALL_ASSIGN(const DriverEpoch epoch, driver->epoch());
  how.anchor = {context.clock.now(), context.clock.wall()};
  FLYBALL_ASSIGN(const auto recording, open_recording(options, context,
                                                      {how.anchor.second, how.anchor.first, epoch.boot_id,
                                                       fmt::format("flyball {}", version()), how.plant, how.poll}));
  how.recording = recording.get();
  const StopSignal signal;
  how.stop = [&signal] { return signal.received(); };
  ReloadSignal reload;
  how.new_objective = [&]() -> std::optional<Objective> {
    if (!reload.take()) return std::nullopt;
    auto changed = objective_again(context);
    if (changed) return *std::move(changed);
    log::warning("run", "the objective stays as it was: {}", changed.error().message());
    return std::nullopt;
  };
  auto ledger = open_ledger(context, ledger_path);
  Progress progress(context.options, context.clock);
  how.progress = [&](Seconds elapsed, const Account& account) {
    progress.show(fmt::format("{}{}: {} used, {} on average", format(elapsed),
                              how.duration ? " of " + format(*how.duration) : "", format(account.energy),
                              format(account.mean_power())));
  };
  auto done = control::run_live(how, {*driver, context.clock, *guard, *job}, ledger ? &*ledger : nullptr);
  progress.clear();
  if (!done) return fail(std::move(done.error()));
  return finish_run(options, settings.rates, *done, ledger ? std::nullopt : std::optional(ledger.error()), ledger_path,
                    objective, context);
}

}  // namespace flyball::cli
