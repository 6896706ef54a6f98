#include "loop/switchback.h"

#include <algorithm>

namespace flyball::loop {
namespace {

using experiment::Arm;

/// What is saved or lost under control, over the whole run, of which control had the share `time` and at equal time
/// `1 − lost` of the tokens.
Estimate over_run(const Estimate& under_control, double share) {
  return {under_control.value * share, under_control.low * share, under_control.high * share, under_control.level};
}

}  // namespace

Switchback::Switchback(const SwitchbackOptions& options, Seconds decision, Seconds run_length, std::uint64_t seed)
    : options_(options),
      decision_(decision),
      run_length_(run_length),
      seed_(seed),
      arm_(options.rare == Arm::original ? Arm::control : Arm::original),
      problem_("the job's steps are not known: link the workload library into it") {}

Arm Switchback::advance(Seconds elapsed, Sample<Seconds> step) {
  ++intervals_all_;
  if (arm_ == Arm::control) ++intervals_control_;
  if (!schedule_) {
    if (!step || step_ > Seconds(0)) return arm_;
    step_ = *step;
    experiment::Schedule::Options how;
    how.share = options_.share;
    how.rare = options_.rare;
    how.grain = decision_;
    how.block = options_.block;
    how.step = step_;
    how.horizon = run_length_ > Seconds(0) ? std::max(run_length_ - elapsed, decision_) : Seconds(0);
    how.seed = seed_;
    auto made = experiment::Schedule::make(how);
    if (!made) {
      problem_ = made.error().what + "; " + made.error().remedy;
      return arm_;
    }
    schedule_ = *made;
    meter_.emplace(*schedule_);
    meter_->open(0, elapsed);
    return arm_ = schedule_->arm(0);
  }
  // Counted, not timed: the intervals of a live run are not whole seconds.
  const std::uint64_t block = schedule_->index(decision_ * static_cast<double>(++intervals_));
  if (block != block_) {
    block_ = block;
    meter_->open(block, elapsed);
    arm_ = schedule_->arm(block);
  }
  return arm_;
}

SwitchbackResult Switchback::result(Seconds instant_period) const {
  SwitchbackResult made;
  if (!schedule_) {
    made.verdict = to_string(experiment::Outcome::too_noisy);
    made.reason = problem_;
    return made;
  }
  experiment::Options how;
  how.resolution_fraction = options_.resolution_fraction;
  how.seed = seed_;
  how.step = step_;
  how.instant_period = instant_period;
  const experiment::Analysis a = experiment::analyze(*schedule_, meter_->blocks(), how);
  made.verdict = to_string(a.outcome);
  made.reason = a.reason;
  made.block = schedule_->block();
  made.blocks_control = a.blocks_control;
  made.blocks_original = a.blocks_original;
  made.discarded_fraction = a.discarded_fraction;
  made.needed = a.needed;
  if (intervals_all_ > 0) {
    made.control_fraction = static_cast<double>(intervals_control_) / static_cast<double>(intervals_all_);
  }
  if (!a.energy_per_token || !a.throughput) return made;
  const Estimate& saved = a.energy_per_token->less;
  const Estimate& lost = a.throughput->less;
  made.half_width_fraction = saved.half_width();
  made.p_value = a.energy_per_token->p_value;
  if (a.outcome == experiment::Outcome::too_noisy) return made;
  made.saved_fraction = saved;
  made.loss_fraction = lost;
  // Of the run's tokens; at equal time control makes 1 − lost of what the limits found make.
  const double by_control = made.control_fraction * (1 - lost.value);
  made.saved_run_fraction = over_run(saved, by_control / (by_control + 1 - made.control_fraction));
  made.loss_run_fraction = over_run(lost, made.control_fraction);
  return made;
}

}  // namespace flyball::loop
