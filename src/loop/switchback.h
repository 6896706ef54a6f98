#pragma once
// Which limits hold when, so that what control saves is measured on the run itself: a switchback.

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "core/control.h"
#include "core/result_types.h"
#include "experiment/analysis.h"
#include "experiment/block_meter.h"
#include "experiment/schedule.h"

namespace flyball::loop {

struct SwitchbackOptions {
  /// Of the run's time, for the rare arm.
  double share = 0.05;
  /// `original`: control holds but for a few blocks at the limits found. `control`, a canary: the reverse.
  experiment::Arm rare = experiment::Arm::original;
  /// The shortest block; a job that changes fast on boards that settle fast may be looked at in shorter ones.
  Seconds block = experiment::Schedule::kBlock;
  double resolution_fraction = 0.01;  ///< a wider interval is "too noisy"
};

class Switchback {
 public:
  /// `run_length` 0 = open.
  Switchback(const SwitchbackOptions& options, Seconds decision, Seconds run_length, std::uint64_t seed);

  /// At every poll. `in_force`: the present arm's limits hold, and nobody outside interferes.
  void add(const experiment::Poll& poll) {
    if (meter_) meter_->add(poll);
  }
  /// Ends the interval and says which arm the next one belongs to. Blocks begin when the job's step is known, for they
  /// are made to it; until then the arm is that which is not rare. `at` and `elapsed` are since the start of the run.
  experiment::Arm advance(Seconds elapsed, Sample<Seconds> step);
  /// Of the interval in hand.
  experiment::Arm arm() const { return arm_; }

  /// `instant_period` as in experiment::Options.
  SwitchbackResult result(Seconds instant_period) const;

 private:
  SwitchbackOptions options_;
  Seconds decision_, run_length_;
  std::uint64_t seed_;
  experiment::Arm arm_;
  std::optional<experiment::Schedule> schedule_;
  std::optional<experiment::BlockMeter> meter_;
  std::string problem_;  ///< why there are no blocks
  Seconds step_;
  std::uint64_t block_ = 0;
  std::uint64_t intervals_ = 0;  ///< since the first block began
  std::uint64_t intervals_control_ = 0, intervals_all_ = 0;
};

}  // namespace flyball::loop
