#include "control/live_run.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "control/live_frame.h"
#include "policy/policy.h"

namespace flyball::control {
namespace {

/// Between two looks at whether to stop.
constexpr Seconds kNap{0.1};
/// For limits to come back after the end: lease + 5 s is the guard's promise, and the lease ends at once.
constexpr Seconds kRestorePatience{15};
constexpr Seconds kRestorePoll{0.5};
/// Boards round limits by up to a watt.
constexpr Milliwatts kSameLimit{1000};

/// Nothing but the switchback can tell what was saved live, and only where it is not too noisy.
void claim(RunResult& result) {
  result.saved_basis = "not known: there was nothing to compare with";
  if (!result.switchback) return;
  const SwitchbackResult& s = *result.switchback;
  result.saved_fraction = s.saved_run_fraction;
  result.loss_fraction = s.loss_run_fraction;
  result.saved_basis =
      s.saved_run_fraction
          ? "switchback: blocks of this run at the limits found, drawn at random; interval by randomisation"
          : "not known: the switchback was too noisy";
}

class LiveRun {
 public:
  LiveRun(const LiveRunOptions& options, const LiveParts& parts, std::unique_ptr<policy::Policy> chosen)
      : options_(options), parts_(parts), policy_(std::move(chosen)) {
    loop::Options how;
    how.poll = options.poll;
    how.decision = options.decision;
    how.run_length = options.duration.value_or(Seconds(0));
    how.devices = options.devices;
    how.observe_only = options.observe_only;
    how.seed = options.seed;
    how.switchback = options.switchback;
    how.clocks_unlocked = options.clocks_unlocked;
    if (options.budget) how.lease = LeaseKind::budget;
    if (options.recording != nullptr) {
      recorder_.emplace(parts.driver, parts.job, parts.clock, *options.recording, options.anchor);
    }
    frame_ = std::make_unique<LiveFrame>(parts.driver, parts.clock, parts.guard, parts.job, options.devices,
                                         recorder_ ? &*recorder_ : nullptr);
    loop_ = std::make_unique<loop::Loop>(*frame_, frame_->clock(), *frame_, *frame_, *policy_, how);
  }

  Result<> start() {
    FLYBALL_ASSIGN(const auto boards, parts_.driver.devices());
    for (const DeviceInfo& board : boards) {
      const auto limits = parts_.driver.limits(board.id);
      if (limits && limits->requested) found_[board.id] = *limits->requested;
    }
    if (recorder_) {
      recorder_->begin({options_.observe_only ? "none" : policy_within(options_.budget, options_.policy),
                        options_.objective, options_.seed, options_.duration.value_or(Seconds(0)), options_.decision,
                        options_.observe_only ? std::nullopt : options_.switchback, options_.poll,
                        options_.clocks_unlocked});
    }
    frame_->begin_poll();
    return loop_->start();
  }

  /// True if it was stopped before its time.
  bool poll_to_the_end(RunKeeper& keeper) {
    Clock& clock = parts_.clock;
    const MonoTime begin = clock.now();
    MonoTime due = begin;
    for (;;) {
      due = due + options_.poll;
      // A machine that slept, or a call that hung: polls that were missed are not made up for.
      if (due < clock.now()) due = clock.now() + options_.poll;
      while (clock.now() < due) {
        if (options_.stop && options_.stop()) return true;
        clock.sleep_until(std::min(due, clock.now() + kNap));
      }
      frame_->begin_poll();
      change_objective();
      if (const auto record = loop_->tick()) {
        keeper.add(*record);
        if (recorder_) recorder_->decided(*record);
      }
      const Seconds elapsed = clock.now() - begin;
      if (options_.progress) options_.progress(elapsed, loop_->account());
      if (options_.duration && elapsed >= *options_.duration) return false;
    }
  }

  /// The recording ends with the run. Why it is not whole; empty if it is, or if there is none.
  std::string end_recording(const std::string& reason) {
    if (!recorder_) return {};
    recorder_->end(reason);
    return recorder_->failure();
  }

  /// Gives all back. True if every board of ours was seen to be as it was found, or by the guard's rule.
  bool restore(RunKeeper& keeper) {
    const auto released = loop_->finish();
    if (!released) log::warning("run", "the lease could not be released: {}", released.error().message());
    const auto outcomes = released.value_or(std::vector<guard::RestoreOutcome>{});
    if (loop_->writes() == 0) return true;
    std::vector<DeviceId> open;
    for (const DeviceId& device : loop_->devices()) {
      const auto told = [&](const guard::RestoreOutcome& o) {
        return o.device == device && (o.restored || o.left_to_other);
      };
      // Of a lease that was lost on the way the guard told nothing.
      const auto outcome = std::find_if(outcomes.begin(), outcomes.end(), told);
      if (outcome == outcomes.end()) {
        open.push_back(device);
      } else {
        const bool lower = options_.budget && !is_as_found(device);
        keeper.restored(device, !outcome->restored ? kLeftToOther : lower ? kAtRest : kAsFound);
      }
    }
    const MonoTime patience = parts_.clock.now() + kRestorePatience;
    for (;;) {
      std::erase_if(open, [&](const DeviceId& device) {
        const bool found = is_as_found(device), back = found || rests(device);
        keeper.restored(device, found ? kAsFound : back ? kAtRest : kNotAsFound);
        return back;
      });
      if (open.empty()) return true;
      if (parts_.clock.now() >= patience) return false;
      parts_.clock.sleep_until(parts_.clock.now() + kRestorePoll);
    }
  }

  const loop::Loop& loop() const { return *loop_; }

 private:
  void change_objective() {
    const auto objective = options_.new_objective ? options_.new_objective() : std::nullopt;
    if (!objective) return;
    if (recorder_) recorder_->objective(*objective);
    const auto done = loop_->set_objective(*objective);
    if (!done) log::warning("run", "the objective stays as it was: {}", done.error().message());
  }

  bool is_as_found(const DeviceId& device) {
    const auto found = found_.find(device);
    const auto limits = parts_.driver.limits(device);
    if (found == found_.end() || !limits || !limits->requested) return false;
    const Milliwatts apart = *limits->requested - found->second;
    return apart <= kSameLimit && Milliwatts(0) - apart <= kSameLimit;
  }

  /// What a budget lowered goes up for its owner only, also when its lease was lost on the way.
  bool rests(const DeviceId& device) {
    const auto found = found_.find(device);
    const auto limits = parts_.driver.limits(device);
    return options_.budget && found != found_.end() && limits && limits->requested &&
           *limits->requested <= found->second;
  }

  const LiveRunOptions& options_;
  LiveParts parts_;
  std::unique_ptr<policy::Policy> policy_;
  std::optional<RunRecorder> recorder_;
  std::unique_ptr<LiveFrame> frame_;
  std::unique_ptr<loop::Loop> loop_;
  std::map<DeviceId, Milliwatts> found_;
};

}  // namespace

Result<RunRecord> run_live(const LiveRunOptions& options, const LiveParts& parts, ledger::Ledger* ledger) {
  if (options.duration && *options.duration < options.decision) {
    return fail(ErrorCode::input, "a run of " + format(*options.duration) + " is shorter than one decision",
                "--duration", "give " + format(options.decision) + " or more");
  }
  FLYBALL_TRY(check_budget(options.budget, options.observe_only, options.switchback.has_value()));
  FLYBALL_ASSIGN(auto chosen, policy::make(policy_within(options.budget, options.policy), options.objective));
  LiveRun live(options, parts, std::move(chosen));
  FLYBALL_TRY(live.start());
  RunRecord run;
  run.result.plant = options.plant;
  run.result.policy = options.observe_only ? "none (observe only)" : options.policy;
  run.result.seed = options.seed;
  run.result.started = parts.clock.wall();
  RunKeeper keeper(run, ledger, options.source);
  keeper.begin({options.plant, run.result.policy, options.seed, run.result.started, run.result.started,
                std::string(version()), options.arguments});
  if (options.budget) keeper.hold_budget(*options.budget);
  run.interrupted = live.poll_to_the_end(keeper);
  const WallTime finished = parts.clock.wall();
  keeper.take(live.loop());
  claim(run.result);
  run.result.restored = live.restore(keeper);
  // Limits first: a disk that hangs must not hold them.
  const std::string lost = live.end_recording(run.interrupted ? "stopped by a signal" : "the run was over");
  if (!lost.empty()) keeper.recording_not_written(lost, finished);
  if (!run.result.restored) keeper.not_restored(finished);
  keeper.end(finished);
  return run;
}

}  // namespace flyball::control
