#pragma once
// Which jobs run when, on which part of the GPUs, and in which phase each is.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "core/workload.h"

namespace flyball::twin {

/// What all jobs of one type have in common. Power is that of a GPU board, H100; 0 of a time = never.
struct JobType {
  std::string name;
  Seconds step;                     ///< of training, on the wall
  Watts compute, exchange;          ///< while it computes; in the rest of the step
  double exchange_fraction = 0;     ///< of the step
  double utilisation_fraction = 1;  ///< as the driver counts
  double tokens_per_gpu_s = 0;
  Watts startup_power;
  Seconds startup;
  Seconds evaluation_every, evaluation;
  Watts evaluation_power;
  Seconds checkpoint_every, checkpoint;
  Watts checkpoint_power;
  Seconds rollout_every, rollout;  ///< generation between stretches of training
  Watts rollout_power;
};
/// "pretrain-large", "pretrain-mid", "finetune", "posttrain-rl", "vision", "batch-inference".
Result<JobType> job_type(std::string_view name);
std::vector<std::string> job_type_names();

struct ScheduledJob {
  std::string type;
  double first_fraction = 0;  ///< where its GPUs begin, as a fraction of all
  double gpus_fraction = 1;
  Seconds start, stop;  ///< since the start of the run
};

/// Thirty days, again and again: ten of one large pre-training; then days of several jobs side by side and idle
/// nights; then a large one with small ones beside it. `length` cuts it.
std::vector<ScheduledJob> default_schedule(Seconds length);
/// One job on all GPUs all the time.
std::vector<ScheduledJob> single_job(std::string type, Seconds length);
/// Refused: unknown types, jobs of which two want one GPU at one time, times that run backwards.
Result<> check(const std::vector<ScheduledJob>& schedule);

}  // namespace flyball::twin
