#include "twin/facility_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace flyball::twin {

namespace {

constexpr double kHour = 3600, kDay = 86400, kWeek = 7 * kDay;

// pretrain-large: node power of MLPerf Training v4.0, GPT-3 (scenario gpt3-64nodes): 7.0 kW a node of eight while it
// computes, 5.8 kW in the second between two steps, 1.53 kW of it not GPU. Evaluation and checkpoint as fractions of
// full power as in that scenario and in pretrain-8. The others are chosen within what InternLM/AcmeTrace shows of GPU
// power in two clusters.
JobType pretrain_large() {
  JobType t;
  t.name = "pretrain-large";
  t.step = Seconds(10.76);
  t.compute = Watts(684);
  t.exchange = Watts(534);
  t.exchange_fraction = 0.097;
  t.utilisation_fraction = 0.98;
  t.tokens_per_gpu_s = 761;  // 2048 sequences of 2048 tokens, 512 GPUs, 10.76 s
  t.startup_power = Watts(160);
  t.startup = Seconds(480);
  t.evaluation_every = Seconds(3600);
  t.evaluation = Seconds(90);
  t.evaluation_power = Watts(588);
  t.checkpoint_every = Seconds(1800);
  t.checkpoint = Seconds(40);
  t.checkpoint_power = Watts(125);
  return t;
}

JobType pretrain_mid() {
  JobType t = pretrain_large();
  t.name = "pretrain-mid";
  t.step = Seconds(4.2);
  t.compute = Watts(625);
  t.exchange = Watts(410);
  t.exchange_fraction = 0.16;
  t.utilisation_fraction = 0.96;
  t.tokens_per_gpu_s = 9800;
  t.startup = Seconds(240);
  t.evaluation = Seconds(60);
  t.evaluation_power = Watts(520);
  t.checkpoint = Seconds(25);
  return t;
}

JobType finetune() {
  JobType t = pretrain_mid();
  t.name = "finetune";
  t.step = Seconds(2.6);
  t.compute = Watts(560);
  t.exchange = Watts(320);
  t.exchange_fraction = 0.22;
  t.utilisation_fraction = 0.92;
  t.tokens_per_gpu_s = 5200;
  t.startup = Seconds(180);
  t.evaluation_every = Seconds(1200);
  t.evaluation_power = Watts(450);
  t.checkpoint_every = Seconds(3600);
  t.checkpoint = Seconds(15);
  return t;
}

JobType posttrain_rl() {
  JobType t = finetune();
  t.name = "posttrain-rl";
  t.step = Seconds(6);
  t.compute = Watts(600);
  t.exchange = Watts(380);
  t.utilisation_fraction = 0.9;
  t.tokens_per_gpu_s = 3000;
  t.evaluation_every = Seconds(0);
  t.evaluation = Seconds(0);
  t.rollout_every = Seconds(240);
  t.rollout = Seconds(420);
  t.rollout_power = Watts(340);
  return t;
}

JobType vision() {
  JobType t = finetune();
  t.name = "vision";
  t.step = Seconds(0.35);
  t.compute = Watts(470);
  t.exchange = Watts(390);
  t.exchange_fraction = 0.1;
  t.utilisation_fraction = 0.88;
  t.tokens_per_gpu_s = 2500;
  t.evaluation_every = Seconds(2400);
  t.evaluation = Seconds(120);
  t.evaluation_power = Watts(360);
  return t;
}

JobType batch_inference() {
  JobType t;
  t.name = "batch-inference";
  t.utilisation_fraction = 0.8;
  t.tokens_per_gpu_s = 900;
  t.startup_power = Watts(120);
  t.startup = Seconds(120);
  t.rollout = Seconds(1);  // and nothing else
  t.rollout_power = Watts(390);
  return t;
}

using Make = JobType (*)();
constexpr Make kTypes[] = {&pretrain_large, &pretrain_mid, &finetune, &posttrain_rl, &vision, &batch_inference};

void day_jobs(double day, std::vector<ScheduledJob>& jobs) {
  const auto add = [&](const char* type, double first, double part, double from_h, double to_h) {
    jobs.push_back({type, first, part, Seconds(day + from_h * kHour), Seconds(day + to_h * kHour)});
  };
  add("finetune", 0, 0.3, 7.5, 19);
  add("vision", 0.3, 0.2, 8.25, 17.5);
  add("posttrain-rl", 0.5, 0.4, 9, 20);
  add("vision", 0.3, 0.1, 18, 21.5);
}

}  // namespace

std::vector<std::string> job_type_names() {
  std::vector<std::string> names;
  for (const Make make : kTypes) names.push_back(make().name);
  return names;
}

Result<JobType> job_type(std::string_view name) {
  for (const Make make : kTypes) {
    if (JobType type = make(); type.name == name) return type;
  }
  return fail(ErrorCode::input, fmt::format("there is no type of job '{}'", name.substr(0, 60)), {},
              fmt::format("use one of: {}", fmt::join(job_type_names(), " ")));
}

std::vector<ScheduledJob> default_schedule(Seconds length) {
  std::vector<ScheduledJob> jobs;
  for (double week = 0; week < length.value(); week += kWeek) {
    jobs.push_back({"pretrain-large", 0, 1, Seconds(week), Seconds(week + 2.4 * kDay)});
    day_jobs(week + 3 * kDay, jobs);
    day_jobs(week + 4 * kDay, jobs);
    jobs.push_back({"posttrain-rl", 0, 0.4, Seconds(week + 2.5 * kDay), Seconds(week + 2.85 * kDay)});
    jobs.push_back({"finetune", 0.4, 0.5, Seconds(week + 2.52 * kDay), Seconds(week + 2.8 * kDay)});
    jobs.push_back({"batch-inference", 0.6, 0.2, Seconds(week + 3.92 * kDay), Seconds(week + 4.2 * kDay)});
    jobs.push_back({"pretrain-mid", 0, 0.6, Seconds(week + 4.9 * kDay), Seconds(week + 6.97 * kDay)});
    jobs.push_back({"finetune", 0.6, 0.25, Seconds(week + 5.3 * kDay), Seconds(week + 5.8 * kDay)});
    jobs.push_back({"vision", 0.6, 0.4, Seconds(week + 6.3 * kDay), Seconds(week + 6.8 * kDay)});
  }
  std::erase_if(jobs, [length](const ScheduledJob& job) { return job.start >= length; });
  for (ScheduledJob& job : jobs) job.stop = std::min(job.stop, length);
  return jobs;
}

std::vector<ScheduledJob> single_job(std::string type, Seconds length) {
  return {{std::move(type), 0, 1, Seconds(0), length}};
}

Result<> check(const std::vector<ScheduledJob>& schedule) {
  constexpr double kRounding = 1e-9;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ScheduledJob& job = schedule[i];
    const std::string where = fmt::format("job {} ({})", i + 1, job.type);
    if (auto type = job_type(job.type); !type) return fail(type.error());
    if (!(job.start >= Seconds(0) && job.stop > job.start)) {
      return fail(ErrorCode::input, "it stops before it starts, or starts before the run", where);
    }
    if (!(job.first_fraction >= 0 && job.gpus_fraction > 0 &&
          job.first_fraction + job.gpus_fraction <= 1 + kRounding)) {
      return fail(ErrorCode::input, "its GPUs are not within 0 to 1", where);
    }
    for (std::size_t j = 0; j < i; ++j) {
      const ScheduledJob& other = schedule[j];
      if (job.start < other.stop && other.start < job.stop &&
          job.first_fraction + kRounding < other.first_fraction + other.gpus_fraction &&
          other.first_fraction + kRounding < job.first_fraction + job.gpus_fraction) {
        return fail(ErrorCode::input, fmt::format("it wants GPUs that job {} ({}) has", j + 1, other.type), where);
      }
    }
  }
  return {};
}

}  // namespace flyball::twin
