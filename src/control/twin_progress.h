#pragma once
// What a simulated job says of itself, as a real one would over its channel.

#include "loop/progress.h"
#include "twin/machine.h"

namespace flyball::control {

class TwinProgress final : public loop::ProgressSource {
 public:
  /// The machine outlives this.
  explicit TwinProgress(const twin::Machine& machine) : machine_(machine) {}
  Sample<WorkloadProgress> progress() override {
    const twin::Job& job = machine_.job();
    return WorkloadProgress{job.last_step().ended, job.phase(), job.steps(), job.tokens()};
  }

 private:
  const twin::Machine& machine_;
};

}  // namespace flyball::control
