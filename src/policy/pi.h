#pragma once
// A PI controller that steers the measured loss of throughput to the loss that is allowed.

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "base/stats.h"
#include "policy/job.h"
#include "policy/policy.h"

namespace flyball::policy {

/// Knows no curve: it measures the job's speed at the limits found for two minutes, goes down to the power that was
/// drawn there (above it a limit changes nothing), and moves one limit for all GPUs by the error between the allowed
/// and the measured loss. Speed drifts, so that every half hour a minute at the limits found is bought; blocks of a
/// switchback serve as such where there are some. The target is the bound less one standard error of the baseline.
class Pi final : public Policy {
 public:
  /// Steers by --max-loss; a weight alpha names no loss to steer to and is refused.
  static Result<std::unique_ptr<Policy>> make(const Objective& objective);

  std::string name() const override { return "pi"; }
  void reset(std::uint64_t seed) override;
  Result<> set_objective(const Objective& objective) override;
  Proposal decide(const Observation& observation) override;
  void observe_baseline(const Observation& observation) override;

 private:
  explicit Pi(double max_loss) : max_loss_(max_loss) {}
  void add_baseline(const Observation& observation);
  void begin_baseline(int intervals);
  void end_baseline();
  void control(double rate);

  double max_loss_;
  std::optional<FoundLimits> found_;
  std::deque<double> base_;      ///< tokens/s at the limits found, the latest
  RunningStats draw_;            ///< W at the limits found, of the GPU that draws most
  int window_left_ = 0;          ///< intervals of the baseline window that are still to be measured
  int settle_ = 0;               ///< measurements still to be passed over
  int since_base_ = 0;           ///< intervals since the baseline was last measured
  std::optional<double> share_;  ///< of the highest limit found; empty before the first window ended
  double last_error_ = 0;
};

}  // namespace flyball::policy
