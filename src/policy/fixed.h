#pragma once
// The policies that never look: nothing at all, one limit for all, two of them in turn.

#include <string>
#include <utility>

#include "policy/policy.h"

namespace flyball::policy {

class None final : public Policy {
 public:
  std::string name() const override { return "none"; }
  void reset(std::uint64_t) override {}
  Proposal decide(const Observation&) override { return {{}, "limits stay as found"}; }
};

class Static final : public Policy {
 public:
  Static(Milliwatts limit, std::string name) : limit_(limit), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  void reset(std::uint64_t) override {}
  Proposal decide(const Observation& observation) override {
    Proposal proposal{{}, name_};
    for (const GpuObservation& gpu : observation.gpus) proposal.gpus.push_back({gpu.device, limit_, {}});
    return proposal;
  }

 private:
  Milliwatts limit_;
  std::string name_;
};

/// What hindsight makes of a known curve: two limits in turn, a minute at a time, the second for `share` of the time.
class Mix final : public Policy {
 public:
  Mix(Milliwatts first, Milliwatts second, double share, std::string name)
      : first_(first), second_(second), share_(share), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  void reset(std::uint64_t) override { owed_ = 0, stays_ = 0; }
  Proposal decide(const Observation& observation) override {
    if (stays_ == 0) {
      stays_ = kMinute;
      owed_ += share_;
      in_second_ = owed_ >= 0.5;
      if (in_second_) owed_ -= 1;
    }
    --stays_;
    Proposal proposal{{}, name_};
    for (const GpuObservation& gpu : observation.gpus) {
      proposal.gpus.push_back({gpu.device, in_second_ ? second_ : first_, {}});
    }
    return proposal;
  }

 private:
  static constexpr int kMinute = 6;  ///< decisions
  Milliwatts first_, second_;
  double share_;
  std::string name_;
  double owed_ = 0;
  int stays_ = 0;
  bool in_second_ = false;
};

}  // namespace flyball::policy
