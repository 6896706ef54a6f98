#pragma once
// A bandit over a grid of limits: Thompson sampling with forgetting.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "policy/job.h"
#include "policy/policy.h"

namespace flyball::policy {

/// Each limit of the 25 W grid is an arm with a mean rate and a mean power that forget (speed drifts). Every few
/// intervals the arms' rates and powers are drawn from what is known of them, and the arm whose draw serves the
/// objective best is held next; the limit found is the arm that all are compared with. An arm that was never tried is
/// tried once the one above it has proved good, since less power is never faster. What exploration costs is part of the
/// run.
class Bandit final : public Policy {
 public:
  static Result<std::unique_ptr<Policy>> make(const Objective& objective);

  std::string name() const override { return "bandit"; }
  void reset(std::uint64_t seed) override;
  Result<> set_objective(const Objective& objective) override;
  Proposal decide(const Observation& observation) override;
  void observe_baseline(const Observation& observation) override;

 private:
  /// Mean with exponential forgetting; the weight is the number of values that it is worth.
  struct Mean {
    double weight = 0, mean = 0;
    void forget();
    void add(double x);
  };
  struct Arm {
    Milliwatts limit;
    Mean rate;   ///< tokens/s
    Mean power;  ///< W, all GPUs
    bool tried() const { return rate.weight > 0; }
  };

  explicit Bandit(const Objective& objective) : objective_(objective) {}
  bool plan(const Observation& observation);
  bool measure(Arm& arm, const Observation& observation);
  double relative_noise() const;
  std::size_t choose();

  Objective objective_;
  Random random_{0};
  std::optional<FoundLimits> found_;
  std::vector<Arm> arms_;  ///< descending limits, the one found first
  std::size_t current_ = 0;
  int settle_ = 0;  ///< measurements still to be passed over
  int hold_ = 0;    ///< measurements until the next choice
  double residual_squares_ = 0, residuals_ = 0;
};

}  // namespace flyball::policy
