#pragma once
// The job that runs on fake GPUs, as their owner tells it (doc/fakegpu.md): flyball-fakegpu's `jobs` over its socket.

#include <optional>
#include <string>

#include "base/clock.h"
#include "loop/progress.h"

namespace flyball::control {

class FakeJob final : public loop::ProgressSource {
 public:
  /// `page` is that of the fake GPUs. The clock outlives this.
  FakeJob(const std::string& page, const Clock& clock) : socket_(page + ".sock"), clock_(clock) {}

  /// `missing` while nobody answers; waits a tenth of a second at most.
  Sample<WorkloadProgress> progress() override;

 private:
  std::string socket_;
  const Clock& clock_;
  std::optional<MonoTime> first_asked_;
};

/// A job that says nothing of itself.
class SilentJob final : public loop::ProgressSource {
 public:
  Sample<WorkloadProgress> progress() override { return Sample<WorkloadProgress>::absent(Status::missing); }
};

}  // namespace flyball::control
