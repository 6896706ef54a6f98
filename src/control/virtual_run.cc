#include "control/virtual_run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/memory_filesystem.h"
#include "base/text.h"
#include "base/version.h"
#include "control/run_recorder.h"
#include "control/twin_progress.h"
#include "device/twin/twin_driver.h"
#include "guard/engine.h"
#include "policy/policy.h"

namespace flyball::control {
namespace {

/// Restores are retried with back-off; longer than this the guard would take over live, here the run ends.
constexpr Seconds kRestorePatience{120};
constexpr int kProgressCalls = 100;

/// One simulated machine with everything that works on it.
class World {
 public:
  static Result<std::unique_ptr<World>> create(const VirtualRunOptions& options, const std::string& policy_spec,
                                               bool observe_only, series::RecordingWriter* recording) {
    FLYBALL_ASSIGN(twin::Machine machine, options.build());
    const std::optional<Watts> budget = observe_only ? std::nullopt : options.budget;
    const std::string spec = policy_within(budget, policy_spec);
    FLYBALL_ASSIGN(auto chosen, policy::make(spec, options.objective));
    std::unique_ptr<World> world(new World(std::move(machine), std::move(chosen), options.started));
    guard::EngineConfig config;
    config.everywhere.clocks_unlocked = true;  // the twin's are, until this run locks them
    FLYBALL_ASSIGN(world->engine_,
                   guard::Engine::start({world->driver_, world->clock_, world->disk_, world->audit_}, config));
    loop::Options loop_options;
    loop_options.poll = options.poll;
    loop_options.decision = options.decision;
    loop_options.run_length = options.duration;
    loop_options.devices = options.devices;
    loop_options.observe_only = observe_only;
    loop_options.seed = options.seed;
    loop_options.switchback = options.switchback;
    loop_options.clocks_unlocked = true;
    world->budgeted_ = budget.has_value();
    if (budget) loop_options.lease = LeaseKind::budget;
    Driver* driver = &world->driver_;
    loop::ProgressSource* progress = &world->progress_;
    if (recording != nullptr) {
      world->recorder_.emplace(world->driver_, world->progress_, world->clock_, *recording);
      driver = &*world->recorder_;
      progress = &*world->recorder_;
      world->recorder_->begin({observe_only ? "none" : spec,
                               options.objective,
                               options.seed,
                               options.duration,
                               loop_options.decision,
                               loop_options.switchback,
                               {},
                               loop_options.clocks_unlocked});
    }
    world->loop_ =
        std::make_unique<loop::Loop>(*driver, world->clock_, *world->engine_, *progress, *world->policy_, loop_options);
    world->poll_ = loop_options.poll;
    FLYBALL_TRY(world->loop_->start());
    return world;
  }

  /// One poll; a decision comes out at the end of each interval.
  std::optional<loop::DecisionRecord> step() {
    clock_.advance(poll_);
    engine_->tick();
    auto record = loop_->tick();
    if (record && recorder_) recorder_->decided(*record);
    return record;
  }

  /// The recording ends with the run. Why it is not whole; empty if it is, or if there is none.
  std::string end_recording(const std::string& reason) {
    if (!recorder_) return {};
    recorder_->end(reason);
    return recorder_->failure();
  }

  /// Gives all back. True if every board was read back as it was found.
  bool restore(RunKeeper& keeper) {
    const auto outcomes = loop_->finish();
    const MonoTime patience = clock_.now() + kRestorePatience;
    while (engine_->restoring() && clock_.now() < patience) {
      clock_.advance(poll_);
      engine_->tick();
    }
    if (!outcomes || engine_->restoring()) return false;
    bool all = true;
    for (const guard::RestoreOutcome& o : *outcomes) {
      const auto now = driver_.limits(o.device);
      const bool as_found = now && o.found && now->requested && *now->requested == *o.found;
      const bool back = o.restored || as_found;
      const char* const where = budgeted_ && !as_found ? kAtRest : kAsFound;
      keeper.restored(o.device, back ? where : o.left_to_other ? kLeftToOther : kNotAsFound);
      all = all && (back || o.left_to_other);
    }
    return all;
  }

  loop::Loop& loop() { return *loop_; }
  Seconds poll() const { return poll_; }
  VirtualClock& clock() { return clock_; }

 private:
  World(twin::Machine machine, std::unique_ptr<policy::Policy> chosen, WallTime started)
      : machine_(std::move(machine)),
        clock_(started),
        driver_(machine_, clock_),
        progress_(machine_),
        policy_(std::move(chosen)) {}

  twin::Machine machine_;
  VirtualClock clock_;
  device::TwinDriver driver_;
  TwinProgress progress_;
  MemoryFilesystem disk_;
  guard::MemoryAudit audit_;
  std::unique_ptr<policy::Policy> policy_;
  std::unique_ptr<guard::Engine> engine_;
  std::optional<RunRecorder> recorder_;
  std::unique_ptr<loop::Loop> loop_;
  Seconds poll_;
  bool budgeted_ = false;
};

/// Runs the world to `length` or until told to stop.
class Stepper {
 public:
  Stepper(const VirtualRunOptions& options, double share_before, double share)
      : options_(options), before_(share_before), share_(share) {}

  /// False if it was stopped.
  bool run(World& world, Seconds length, const std::function<void(const loop::DecisionRecord&)>& on_decision) {
    const auto polls = std::llround(length / world.poll());
    const auto every = std::max<std::int64_t>(1, polls / kProgressCalls);
    for (std::int64_t i = 0; i < polls; ++i) {
      if (options_.stop && options_.stop()) return false;
      const auto record = world.step();
      if (record && on_decision) on_decision(*record);
      if (options_.progress && i % every == 0) {
        options_.progress(before_ + share_ * static_cast<double>(i) / static_cast<double>(polls));
      }
    }
    return true;
  }

 private:
  const VirtualRunOptions& options_;
  double before_, share_;
};

Result<> run_counterfactual(const VirtualRunOptions& options, VirtualRun& run) {
  FLYBALL_ASSIGN(const auto world, World::create(options, "none", true, nullptr));
  Stepper stepper(options, 0.5, 0.5);
  if (!stepper.run(*world, options.duration, {})) {
    run.interrupted = true;
    return {};
  }
  run.result.counterfactual = world->loop().account();
  compare(run.result);
  run.result.saved_basis =
      "the same simulated run with all limits as found, same seed; exact for this seed, exploration included";
  return {};
}

}  // namespace

void compare(RunResult& result) {
  if (!result.counterfactual) return;
  const Account& run = result.account;
  const Account& base = *result.counterfactual;
  const auto exact = [](double value) { return Estimate{value, value, value, 1}; };
  if (base.tokens > 0) result.loss_fraction = exact(1 - run.tokens / base.tokens);
  if (base.tokens > 0 && run.tokens > 0 && base.energy > Joules(0) && run.energy > Joules(0)) {
    result.saved_fraction = exact(1 - (run.energy / base.energy) / (run.tokens / base.tokens));
  }
}

Result<VirtualRun> run_virtual(const VirtualRunOptions& options, ledger::Ledger* ledger) {
  if (options.duration < Seconds(10)) {
    return fail(ErrorCode::input, "a run of " + format(options.duration) + " is shorter than one decision",
                "--duration", "give 10 s or more");
  }
  FLYBALL_TRY(check_budget(options.budget, options.observe_only, options.switchback.has_value()));
  FLYBALL_ASSIGN(const auto world, World::create(options, options.policy, options.observe_only, options.recording));
  VirtualRun run;
  run.result.plant = options.plant;
  run.result.policy = options.observe_only ? "none (observe only)" : options.policy;
  run.result.seed = options.seed;
  run.result.started = options.started;
  RunKeeper keeper(run, ledger, "twin");
  keeper.begin({options.plant, run.result.policy, options.seed, options.started, options.recorded,
                std::string(version()), options.arguments});

  if (options.budget) keeper.hold_budget(*options.budget);
  Stepper stepper(options, 0, 0.5);
  run.interrupted =
      !stepper.run(*world, options.duration, [&](const loop::DecisionRecord& record) { keeper.add(record); });
  keeper.take(world->loop());
  const WallTime finished = world->clock().wall();
  const std::string lost = world->end_recording(run.interrupted ? "stopped by a signal" : "the run was over");
  if (!lost.empty()) keeper.recording_not_written(lost, finished);
  run.result.restored = world->restore(keeper);
  if (!run.result.restored) keeper.not_restored(finished);
  if (!run.interrupted) FLYBALL_TRY(run_counterfactual(options, run));
  keeper.end(finished);
  return run;
}

}  // namespace flyball::control
