#pragma once
// Any policy within a power budget: the limits of all boards together never exceed it, and what there is goes where it
// is needed. The policy inside lives in a world whose limits found are the even shares of the budget.

#include <memory>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "policy/ranks.h"

namespace flyball::policy {

/// Between the lowest limits and those found, each board gets its weight's part of the budget, and never more than it
/// can use. The boards of a synchronous job need the same pace, not the same power: a rank that waits for others
/// weighs less (Ranks), and a board that draws clearly less than its limit leaves the rest to others. Shares move once
/// a minute, in training only.
class WithinBudget final : public Policy {
 public:
  WithinBudget(Watts budget, std::unique_ptr<Policy> inner, std::string name)
      : budget_(budget), inner_(std::move(inner)), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  void reset(std::uint64_t seed) override;
  Result<> set_objective(const Objective& objective) override { return inner_->set_objective(objective); }
  /// The even shares. Error `unsupported` where a limit is not known, `refused` where even the lowest limits are more
  /// than the budget.
  Result<Proposal> at_start(const std::vector<GpuObservation>& gpus) override;
  Proposal decide(const Observation& observation) override;
  void observe_baseline(const Observation& observation) override { inner_->observe_baseline(as_shares(observation)); }

 private:
  struct Board {
    DeviceId device;
    double found = 0, lowest = 0;  ///< W
    double even = 0;               ///< its share before anything is known, W
    double share = 0;              ///< now, W
    double need = 0;               ///< most that it is seen to use, W; `found` while its limit binds
  };
  Watts usable() const;
  void learn(const Observation& observation);
  void divide();
  Observation as_shares(const Observation& observation) const;

  Watts budget_;
  std::unique_ptr<Policy> inner_;
  std::string name_;
  std::vector<Board> boards_;
  Ranks ranks_;
  int until_divided_ = 0;
};

/// Parts of `total` by weight, each within its bounds; `low` where `total` is less than their sum. All of one length.
std::vector<double> divide_by_weight(double total, const std::vector<double>& weights, const std::vector<double>& low,
                                     const std::vector<double>& high);

}  // namespace flyball::policy
