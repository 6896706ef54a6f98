#pragma once
// The computing part of a building: jobs on their GPUs, racks, and how the heat leaves these. Aggregates: a job has one
// power a GPU, its racks scatter around it. Equations: doc/twin.md.

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "core/facility.h"
#include "twin/facility_effects.h"
#include "twin/facility_parameters.h"
#include "twin/facility_schedule.h"

namespace flyball::twin {

/// One scheduled job on its way through its phases.
class JobRun {
 public:
  JobRun(JobType type, const ScheduledJob& job, Random random);

  struct Step {
    Phase phase = Phase::idle;  ///< that of most of the step
    double gpu_w = 0;           ///< mean board power of one of its GPUs, without noise
    double utilisation = 0;
    double progress_s = 0;  ///< seconds of training (or generation) at full pace
  };
  /// The next `dt_s`, at a pace of steps; `restart`: falls back to startup first.
  Step advance(double dt_s, double pace, bool restart);

  const JobType& type() const { return type_; }
  const ScheduledJob& job() const { return job_; }
  Random& random() { return random_; }

  double drift = 0, swing = 0;  ///< OU processes, standard deviation 1
  double learned_s = 0;         ///< what the loss has seen, in seconds of training
  std::vector<double> gpus;     ///< of each rack

 private:
  void next_phase();
  double phase_power(double from_step, double steps) const;

  JobType type_;
  ScheduledJob job_;
  Random random_;
  Phase phase_ = Phase::startup;
  double left_s_;  ///< of the phase
  double to_evaluation_s_, to_checkpoint_s_, to_rollout_s_;
  double step_at_ = 0;  ///< within a step, 0 to 1
};

/// Means over a step.
struct LoadStep {
  std::vector<double> rack_w;      ///< AC
  std::vector<double> rack_air_w;  ///< of it, heat into the air
  std::vector<double> rack_throttled_fraction;
  double gpus_w = 0, supply_loss_w = 0, it_w = 0, air_w = 0, liquid_w = 0;
  double gpu_clock_hz = 0, gpu_temperature_c = 0, throttled_fraction = 0;
  double tokens = 0;  ///< in this step
  std::uint64_t ecc_errors = 0, link_errors = 0;
  std::vector<JobShare> jobs;
};

class FacilityLoad {
 public:
  FacilityLoad(const FacilityParameters& parameters, const std::vector<ScheduledJob>& schedule, std::uint64_t seed);

  /// From `since_start` on. Inlets of the racks [°C], water of the cold plates [°C] and voltage as the step before left
  /// them.
  const LoadStep& step(Seconds since_start, const FacilityEffects& effects, std::span<const double> inlet_c,
                       double liquid_c, double voltage_fraction);

 private:
  struct Mix;
  struct JobNow;
  JobNow run_job(JobRun& run, const FacilityEffects& effects, const Mix& mix);
  static void contend(const JobRun& run, double shared_fraction, JobNow& now);
  void book(const JobRun& run, const JobNow& now, const FacilityEffects& effects, Mix& mix);
  void run_intruder(const FacilityEffects& effects, Mix& mix);
  void racks(const Mix& mix, std::span<const double> inlet_c, double liquid_c, double voltage_fraction);
  void errors(const FacilityEffects& effects);

  const FacilityParameters& p_;
  std::size_t racks_;
  std::vector<JobRun> runs_;
  std::vector<double> rack_gpus_, rack_spread_, rack_noise_, rack_temperature_c_;
  Random rack_random_, fleet_random_;
  JobRun intruder_;
  LoadStep now_;
};

}  // namespace flyball::twin
