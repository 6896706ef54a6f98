#pragma once
// A synchronous job over 1..N GPUs: each step every rank computes its share, waits for the slowest and exchanges.
// Progress is exact inside a tick: a step may end anywhere in it.

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "core/workload.h"
#include "twin/gpu.h"
#include "twin/parameters.h"

namespace flyball::twin {

struct StepRecord {
  std::uint64_t number = 0;  ///< 1 = the first step
  MonoTime ended;
  Seconds duration;  ///< of the step alone; evaluation and checkpoint are not in it
};

struct PhaseChange {
  MonoTime at;
  Phase phase = Phase::unknown;
  std::uint64_t step = 0;  ///< steps done by then
};

class Job {
 public:
  Job(const JobParameters& parameters, std::size_t ranks, Random random);

  /// One tick of all ranks, from `now`. `speed` scales job time against real time.
  void advance(std::span<Gpu> gpus, MonoTime now, Seconds tick, double speed);

  Phase phase() const { return phase_; }
  std::uint64_t steps() const { return steps_; }
  /// Of whole steps, as a job would report it.
  std::uint64_t tokens() const;
  /// With the part of the step in hand: the truth, without the grain of steps.
  double exact_tokens() const;
  const StepRecord& last_step() const { return last_step_; }
  /// Some rank does not move: a lost GPU or a fault. The others wait in the collective.
  bool stalled() const { return stalled_; }
  void set_hung(bool hung) { hung_ = hung; }

  /// Since the last take; at most kMaxRecords are kept, the oldest go first.
  std::vector<StepRecord> take_steps();
  std::vector<PhaseChange> take_phase_changes();
  static constexpr std::size_t kMaxRecords = 65'536;

 private:
  enum class Part : std::uint8_t { startup, compute, exchange, evaluation, checkpoint, finished };
  void enter(Part part, MonoTime at);
  void load(std::span<Gpu> gpus) const;
  void finish_part(MonoTime at);
  void finish_step(MonoTime at);
  void draw_noise(double now);
  /// Real seconds until the present part ends, if rates stay.
  double until_end(std::span<const Gpu> gpus, double job_per_real) const;
  void spend(std::span<Gpu> gpus, double real, double job_per_real);

  JobParameters parameters_;
  Random random_;
  std::vector<double> work_;  // s of job time at full clock, per rank and step
  std::vector<double> left_;  // of the present part
  Part part_ = Part::startup;
  double part_left_ = 0;  // s of job time: parts with a clock of their own, and the floor of a step
  Phase phase_ = Phase::startup;
  std::uint64_t steps_ = 0;
  double step_real_ = 0;  // s, real, since the step began
  double white_ = 0, drift_ = 0, noise_until_ = 0;
  bool hung_ = false, stalled_ = false;
  StepRecord last_step_;
  std::vector<StepRecord> step_records_;
  std::vector<PhaseChange> phase_changes_;
};

}  // namespace flyball::twin
