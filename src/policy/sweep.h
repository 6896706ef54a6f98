#pragma once
// Sweep and pick: what a careful person with a spreadsheet does, and the baseline that a learned policy has to beat.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stats.h"
#include "policy/job.h"
#include "policy/policy.h"

namespace flyball::policy {

/// Goes down a grid of limits from the one found, holds each for some whole intervals, and then keeps the limit with
/// the least energy per token among those that the objective allows. All GPUs of the job move together, for the slowest
/// rank of a synchronous job sets the pace. The sweep is part of the run: its losses count.
///
/// Causal and noise-aware: a limit is kept only if its loss plus one standard error is within the objective and if what
/// it saves is more than two. With a loss bound the sweep ends at the first limit whose loss minus two
/// standard errors is over it, since less power is never faster.
class Sweep final : public Policy {
 public:
  static Result<std::unique_ptr<Policy>> make(const Objective& objective);

  std::string name() const override { return "sweep"; }
  void reset(std::uint64_t seed) override;
  Result<> set_objective(const Objective& objective) override;
  Proposal decide(const Observation& observation) override;
  void observe_baseline(const Observation& observation) override;

 private:
  /// What was seen while one limit held.
  struct Step {
    Milliwatts limit;
    int skipped = 0;     ///< intervals that were no measurement
    int settled = 0;     ///< intervals passed since the limit was asked for
    RunningStats rate;   ///< tokens per second
    RunningStats power;  ///< W, all GPUs
  };
  /// Against the first step of the grid.
  struct Outcome {
    double loss = 0, loss_error = 0;
    double saved = 0, saved_error = 0;
  };

  explicit Sweep(const Objective& objective) : objective_(objective) {}
  bool plan(const Observation& observation);
  void measure(const Observation& observation);
  bool finished(const Step& step) const;
  void advance();
  Outcome outcome(const Step& step) const;
  Milliwatts pick() const;

  Objective objective_;
  std::optional<FoundLimits> found_;
  std::vector<Step> steps_;  ///< descending limits, the one found first; empty = not begun
  std::size_t current_ = 0;
  std::optional<Milliwatts> picked_;
  std::string picked_reason_;
};

}  // namespace flyball::policy
