#pragma once
// A synchronous job over 1..N GPUs, whose step is a graph of parts: fill → compute → drain → slack → exchange → update.
// Each part ends with its slowest rank, who is done earlier waits; parts without length are left out. Progress is exact
// inside a tick: a part may end anywhere in it.

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
  /// The part of the step, which a job does not tell: `optimizer`, `gradient_sync` for all that is wait alone, else as
  /// phase().
  Phase step_part() const;
  std::uint64_t steps() const { return steps_; }
  /// Of whole steps, as a job would report it.
  std::uint64_t tokens() const;
  /// With the part of the step in hand: the truth, without the grain of steps.
  double exact_tokens() const;
  const StepRecord& last_step() const { return last_step_; }
  /// Some rank does not move: a lost GPU or a fault. The others wait in the collective.
  bool stalled() const { return stalled_; }
  void set_hung(bool hung) { hung_ = hung; }
  /// How long a rank has waited in steps, as its own timers tell at the end of each step: in collectives, receives and
  /// for data. They cannot tell wait that slower compute could use from wait that it could not.
  Seconds waited(std::size_t rank) const { return Seconds(reported_[rank]); }

  /// Since the last take; at most kMaxRecords are kept, the oldest go first.
  std::vector<StepRecord> take_steps();
  std::vector<PhaseChange> take_phase_changes();
  static constexpr std::size_t kMaxRecords = 65'536;

 private:
  enum class Part : std::uint8_t {
    startup,
    fill,      // one hop a stage: those before it work, those after it wait
    compute,   // all ranks, each its own work
    drain,     // the mirror of fill
    slack,     // what is left of the step's floor when all are done early
    exchange,  // all wait, whatever their clocks
    update,    // bound by memory
    stall,
    evaluation,
    checkpoint,
    finished
  };
  bool in_step() const { return part_ >= Part::fill && part_ <= Part::stall; }
  bool in_hop() const { return part_ == Part::fill || part_ == Part::drain; }
  /// Ranks at work in the present hop: those of a stage below this one. The last of them sets the pace.
  std::uint64_t stages_at_work() const;
  std::uint64_t hops() const { return parameters_.pipeline_stages - 1; }
  double hop_time() const;
  Part first_part() const { return hops() > 0 ? Part::fill : Part::compute; }
  bool all_done() const { return parameters_.stop_after_steps > 0 && steps_ >= parameters_.stop_after_steps; }
  void enter(Part part, MonoTime at);
  void begin_step();
  void load(std::span<Gpu> gpus) const;
  void finish_part(MonoTime at);
  Part after(Part part, MonoTime at);
  void finish_step(MonoTime at);
  Part after_step(MonoTime at);
  void draw_noise(double now);
  /// Real seconds until the present part ends, if rates stay.
  double until_end(std::span<const Gpu> gpus, double job_per_real) const;
  void spend(std::span<Gpu> gpus, double real, double job_per_real);
  void spend_rank(Gpu& gpu, std::size_t rank, double real, double job_per_real);

  JobParameters parameters_;
  Random random_, jitter_, stalls_;
  double compute_time_ = 0;     // s of job time at full clocks, fill and drain included
  double microbatch_time_ = 0;  // s, of the slowest rank
  std::vector<double> work_;    // s of job time at full clock, per rank and step
  std::vector<double> duty_;    // share of it that is work; the rest waits for other stages
  std::vector<std::uint64_t> stage_;
  std::vector<double> left_;  // of the present part
  Part part_ = Part::startup;
  double part_left_ = 0;   // s of job time: parts with a clock of their own
  double floor_left_ = 0;  // s of job time before which the step cannot go on to its exchange
  std::uint64_t hop_ = 0;
  Phase phase_ = Phase::startup;
  std::uint64_t steps_ = 0;
  double step_real_ = 0;  // s, real, since the step began
  double white_ = 0, drift_ = 0, noise_until_ = 0;
  double next_stall_ = 0;       // s of real time
  double next_checkpoint_ = 0;  // s of real time
  bool checkpoint_due_ = false, hung_ = false, stalled_ = false;
  std::vector<double> waited_;    // s, real, per rank, in steps
  std::vector<double> reported_;  // the same as of the last step's end
  StepRecord last_step_;
  std::vector<StepRecord> step_records_;
  std::vector<PhaseChange> phase_changes_;
};

}  // namespace flyball::twin
