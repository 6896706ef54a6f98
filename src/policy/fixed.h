#pragma once
// The two policies that never look: nothing at all, and one limit for all.

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

}  // namespace flyball::policy
