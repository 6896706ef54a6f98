#pragma once
// What the loop asks of the job, and the speed it takes from it.

#include <optional>

#include "base/units.h"
#include "core/device.h"
#include "core/reading.h"
#include "core/workload.h"

namespace flyball::loop {

class ProgressSource {
 public:
  virtual ~ProgressSource() = default;
  /// The last whole step: its end as `at`, steps and tokens done by then; and the phase as of now. `missing` where the
  /// job says nothing. Must not block.
  virtual Sample<WorkloadProgress> progress() = 0;
  /// How long the rank on this board has waited in steps, for other ranks or for data, as of the end of the last whole
  /// step: cumulative, by its own timers around collectives. `missing` where the job does not tell.
  virtual Sample<Seconds> waited(const DeviceId&) { return Sample<Seconds>::absent(Status::missing); }
};

/// Speed over whole steps: from the last step that ended before the interval to the last one that ended in it. Steps
/// counted in a fixed window would beat with it. A checkpoint or an evaluation between two steps is no part of either:
/// the window ends before it, and the next one begins with the first step that ended after it.
class StepRate {
 public:
  struct Rate {
    Sample<double> tokens_per_second;
    Sample<Seconds> step_time;
    MonoTime from, to;
  };

  /// At every poll. Counts that fall belong to another job: the rate begins anew.
  void add(const WorkloadProgress& progress);
  /// Of the interval that ends now; missing when no step ended in it.
  Rate take();

  std::uint64_t tokens() const { return last_ ? last_->tokens - first_->tokens : 0; }
  /// The window begins with the last step known: whatever else is summed over it begins anew.
  bool begins() const { return last_ && anchor_->at == last_->at; }
  /// The last step known; empty before the first report.
  const std::optional<WorkloadProgress>& last() const { return last_; }

 private:
  std::optional<WorkloadProgress> first_, anchor_, last_;
  bool interrupted_ = false;  ///< the job did something else since its last step
};

}  // namespace flyball::loop
