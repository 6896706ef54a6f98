#pragma once
// What a simulated job says of itself, as a real one would over its channel.

#include <unordered_map>

#include "loop/progress.h"
#include "twin/machine.h"

namespace flyball::control {

class TwinProgress final : public loop::ProgressSource {
 public:
  /// The machine outlives this.
  explicit TwinProgress(const twin::Machine& machine) : machine_(machine) {
    for (const twin::Gpu& gpu : machine.gpus()) ranks_.emplace(gpu.id(), ranks_.size());
  }
  Sample<WorkloadProgress> progress() override {
    const twin::Job& job = machine_.job();
    return WorkloadProgress{job.last_step().ended, job.phase(), job.steps(), job.tokens()};
  }
  Sample<Seconds> waited(const DeviceId& device) override {
    const auto rank = ranks_.find(device);
    if (rank == ranks_.end()) return Sample<Seconds>::absent(Status::missing);
    return machine_.job().waited(rank->second);
  }

 private:
  const twin::Machine& machine_;
  std::unordered_map<DeviceId, std::size_t> ranks_;
};

}  // namespace flyball::control
