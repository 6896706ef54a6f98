#pragma once
// A node: GPUs of one kind, a job on all of them, one clock. Moves in whole ticks, so that a result depends on the
// seed and on when limits were set, and not on how the caller slices time.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/workload.h"
#include "twin/gpu.h"
#include "twin/job.h"
#include "twin/parameters.h"
#include "twin/power_curve.h"

namespace flyball::twin {

class Machine {
 public:
  /// With the parametric power model.
  static Result<Machine> create(const MachineParameters& parameters);
  /// With a measured curve, for the training phase of the job; see follow_curve.
  static Result<Machine> create(const MachineParameters& parameters, const curve::Curve& curve);

  MonoTime now() const { return MonoTime(ticks_ * tick_ns_); }
  /// What does not fill a tick is kept for the next call.
  void advance(Seconds time);
  /// Up to the last whole tick at or before `t`; the past is a no-op.
  void advance_to(MonoTime t);

  const MachineParameters& parameters() const { return parameters_; }
  std::span<Gpu> gpus() { return gpus_; }
  std::span<const Gpu> gpus() const { return gpus_; }
  /// Null if there is none by that name.
  Gpu* find(const DeviceId& id);
  Job& job() { return job_; }
  const Job& job() const { return job_; }
  WorkloadProgress progress() const;
  void set_speed(double speed);

  /// True energy of all boards since the start.
  Joules energy() const;
  Watts power() const;

 private:
  Machine(const MachineParameters& parameters, std::unique_ptr<PowerCurve> curve);
  void step();

  MachineParameters parameters_;
  std::unique_ptr<PowerCurve> curve_;
  std::vector<Gpu> gpus_;
  Job job_;
  std::int64_t tick_ns_;
  std::int64_t ticks_ = 0;
  std::int64_t carry_ns_ = 0;
};

/// Sets what would bend a measured curve (leakage, spread of boards, waits, activity below 1) to nothing and the
/// board's range to the curve's, so that speed and power at a limit are the curve's own. Noise and drift stay as they
/// are.
void follow_curve(MachineParameters& parameters, const curve::Curve& curve);

/// "GPU-7a1d…" of board `index` of a machine with that seed: the same in every run.
DeviceId board_id(std::uint64_t seed, std::size_t index);

}  // namespace flyball::twin
