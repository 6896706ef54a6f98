#include "twin/facility_load.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace flyball::twin {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kDay = 86400;
constexpr double kDone = 1e-9;           // s: less is rounding
constexpr double kReferenceInlet = 24;   // °C, at which the types' powers hold; [tc99] recommended 18 to 27
constexpr double kSwingTime = 60;        // s, of a plateau's fluctuation; chosen
constexpr double kPlateShare = 0.6;      // of the air's thermal resistance that a cold plate has; chosen
constexpr double kTemperatureTime = 45;  // s, as gpu.thermal_time
constexpr double kHotSpot = 5;           // K, hottest boards of a rack above its mean; [acme] spread
constexpr double kThrottleStart = 82, kThrottleAll = 92;  // °C; [board] slowdown from 87
constexpr double kThrottleLoss = 0.3;                     // of busy power and pace when all throttle; chosen
constexpr double kContention = 0.2;  // pace lost by a synchronous job of which some GPUs are shared; chosen
constexpr double kEccPerGpuDay = 0.02, kLinkPerGpuDay = 0.12;  // corrected, of healthy boards; chosen
constexpr double kIdleClock = 345e6;                           // Hz; [board] lowest of H100
constexpr double kLossFloor = 1.7, kLossSpan = 2.5, kLossPower = 0.3, kLossTime = 6 * 3600;  // chosen: a power law

double or_never(Seconds every) { return every > Seconds(0) ? every.value() : kNever; }

/// Numbers of a Poisson distribution with a small mean, from one uniform number, so that a run and its counterfactual
/// draw alike.
std::uint64_t poisson(double mean, double uniform) {
  double term = std::exp(-mean), sum = term;
  std::uint64_t n = 0;
  while (uniform > sum && n < 1000) {
    ++n;
    term *= mean / static_cast<double>(n);
    sum += term;
  }
  return n;
}

}  // namespace

JobRun::JobRun(JobType type, const ScheduledJob& job, Random random)
    : type_(std::move(type)),
      job_(job),
      random_(random),
      left_s_(type_.startup.value()),
      to_evaluation_s_(or_never(type_.evaluation_every)),
      to_checkpoint_s_(or_never(type_.checkpoint_every)),
      to_rollout_s_(type_.step > Seconds(0) ? or_never(type_.rollout_every) : 0) {
  drift = random_.normal();
  swing = random_.normal();
  step_at_ = random_.uniform();
}

/// A phase other than training is followed by training; training by what is due.
void JobRun::next_phase() {
  if (phase_ == Phase::training || type_.step <= Seconds(0)) {
    if (to_checkpoint_s_ <= kDone) {
      phase_ = Phase::checkpoint;
      left_s_ = type_.checkpoint.value();
      to_checkpoint_s_ = or_never(type_.checkpoint_every);
      return;
    }
    if (to_evaluation_s_ <= kDone) {
      phase_ = Phase::evaluation;
      left_s_ = type_.evaluation.value();
      to_evaluation_s_ = or_never(type_.evaluation_every);
      return;
    }
    if (to_rollout_s_ <= kDone) {
      phase_ = Phase::rollout;
      left_s_ = type_.step > Seconds(0) ? type_.rollout.value() : kNever;
      to_rollout_s_ = or_never(type_.rollout_every);
      return;
    }
  }
  phase_ = Phase::training;
  left_s_ = std::min({to_evaluation_s_, to_checkpoint_s_, to_rollout_s_});
}

/// Mean power of training over `steps` steps from a place within a step on: it computes, then exchanges.
double JobRun::phase_power(double from_step, double steps) const {
  const double compute = 1 - type_.exchange_fraction;
  const auto computed = [compute](double x) { return std::floor(x) * compute + std::min(x - std::floor(x), compute); };
  const double share = steps > 0 ? (computed(from_step + steps) - computed(from_step)) / steps : compute;
  return type_.exchange.value() + (type_.compute - type_.exchange).value() * share;
}

JobRun::Step JobRun::advance(double dt_s, double pace, bool restart) {
  if (restart) {
    phase_ = Phase::startup;
    left_s_ = type_.startup.value();
  }
  Step step;
  double left = dt_s, longest = 0, joules = 0, used = 0;
  while (left > kDone) {
    while (left_s_ <= kDone) next_phase();
    const double part = std::min(left, left_s_);
    double power = 0, busy = 0;
    switch (phase_) {
      case Phase::training: {
        const double steps = part * pace / type_.step.value();
        power = phase_power(step_at_, steps);
        step_at_ = std::fmod(step_at_ + steps, 1.0);
        to_evaluation_s_ -= part;
        to_checkpoint_s_ -= part;
        to_rollout_s_ -= part;
        busy = type_.utilisation_fraction;
        step.progress_s += part * pace;
        break;
      }
      case Phase::rollout:
        power = type_.rollout_power.value();
        busy = type_.step > Seconds(0) ? 0.8 : type_.utilisation_fraction;
        if (type_.step <= Seconds(0)) step.progress_s += part * pace;
        break;
      case Phase::evaluation:
        power = type_.evaluation_power.value();
        busy = 0.9;
        break;
      case Phase::checkpoint:
        power = type_.checkpoint_power.value();
        busy = 0.05;
        break;
      default:
        power = type_.startup_power.value();
        busy = 0.1;
        break;
    }
    joules += power * part;
    used += busy * part;
    if (part > longest) {
      longest = part;
      step.phase = phase_;
    }
    left -= part;
    left_s_ -= part;
  }
  step.gpu_w = joules / dt_s;
  step.utilisation = used / dt_s;
  return step;
}

/// Per rack: watts of boards, and boards that work.
struct FacilityLoad::Mix {
  std::vector<double> gpu_w, busy;
  double clock = 0, busy_gpus = 0;
  double dt_s = 10;
  double intruder_fraction = 0;
};

FacilityLoad::FacilityLoad(const FacilityParameters& parameters, const std::vector<ScheduledJob>& schedule,
                           std::uint64_t seed)
    : p_(parameters),
      racks_(parameters.racks()),
      rack_random_(Random(seed).fork(201)),
      fleet_random_(Random(seed).fork(202)),
      intruder_(*job_type("batch-inference"), {"batch-inference", 0, 1, Seconds(0), Seconds(0)},
                Random(seed).fork(203)) {
  const auto gpus = static_cast<double>(p_.it.gpus), per_rack = static_cast<double>(p_.it.gpus_per_rack);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ScheduledJob& job = schedule[i];
    JobRun& run = runs_.emplace_back(*job_type(job.type), job, Random(seed).fork(1000 + i));
    const double first = job.first_fraction * gpus, last = (job.first_fraction + job.gpus_fraction) * gpus;
    for (std::size_t r = 0; r < racks_; ++r) {
      const double from = static_cast<double>(r) * per_rack, to = std::min(gpus, from + per_rack);
      run.gpus.push_back(std::max(0.0, std::min(to, last) - std::max(from, first)));
    }
  }
  for (std::size_t r = 0; r < racks_; ++r) {
    const double from = static_cast<double>(r) * per_rack;
    rack_gpus_.push_back(std::min(gpus, from + per_rack) - from);
    rack_spread_.push_back(p_.it.rack_spread_sd * rack_random_.normal());
    rack_noise_.push_back(p_.it.rack_noise_sd * rack_random_.normal());
  }
  rack_temperature_c_.assign(racks_, 40);
  now_.rack_w.assign(racks_, 0);
  now_.rack_air_w.assign(racks_, 0);
  now_.rack_throttled_fraction.assign(racks_, 0);
}

/// What a job does in this step, and what noise, faults and neighbours make of it.
struct FacilityLoad::JobNow {
  JobRun::Step step;
  double pace = 1, clock = 1, power = 1;  ///< factors; `power` on what is above idle
  double utilisation = 1, made = 1;       ///< factor on what the driver counts; progress at full pace
  double token_noise = 0, loss_noise = 0;
};

/// What sharing some GPUs does to a synchronous job on all of its own: the slowest rank sets the pace, the others wait.
void FacilityLoad::contend(const JobRun& run, double shared_fraction, JobNow& now) {
  const double last = run.job().first_fraction + run.job().gpus_fraction;
  const double overlap = std::max(0.0, std::min(last, shared_fraction) - run.job().first_fraction);
  if (overlap <= 0) return;
  const double shared = overlap / run.job().gpus_fraction;
  now.pace *= 1 - kContention;
  now.utilisation *= shared + (1 - shared) * (1 - 0.5 * kContention);
  now.power *= shared * 1.03 + (1 - shared) * (1 - 0.6 * kContention);
}

FacilityLoad::JobNow FacilityLoad::run_job(JobRun& run, const FacilityEffects& effects, const Mix& mix) {
  Random& random = run.random();
  const auto wander = [&random](double& value, double keep) {
    value = keep * value + std::sqrt(1 - keep * keep) * random.normal();
  };
  JobNow now;
  // Always the same draws, whatever holds: a run and its counterfactual share them.
  wander(run.drift, std::exp(-mix.dt_s / p_.it.drift_time.value()));
  wander(run.swing, std::exp(-mix.dt_s / kSwingTime));
  const double power_noise = p_.it.step_noise_sd * random.normal() + p_.it.drift_sd * run.drift;
  now.token_noise = p_.it.step_noise_sd * random.normal() + p_.it.drift_sd * run.drift;
  now.loss_noise = 0.01 * random.normal();
  const double dice = random.uniform();

  const std::string& type = run.type().name;
  const double ageing = effects.size(FaultForm::ageing), slower = effects.size(FaultForm::firmware_clock);
  double throttled = 0;
  for (std::size_t r = 0; r < racks_; ++r)
    if (run.gpus[r] > 0) throttled = std::max(throttled, now_.rack_throttled_fraction[r]);
  now.clock = (1 - ageing / 3) * (1 - slower) * (1 - kThrottleLoss * throttled);
  now.pace = (1 - ageing / 3) * (1 - 0.85 * slower) * (1 - kThrottleLoss * throttled);
  now.power = (1 + ageing) * (1 + effects.size(FaultForm::firmware_power)) * (1 - 1.6 * slower) *
              (1 - kThrottleLoss * throttled) * (1 + power_noise) * p_.it.gpu_power_scale;
  contend(run, mix.intruder_fraction, now);

  const bool restart = dice < effects.size(FaultForm::restarts, type) * mix.dt_s / kDay;
  now.step = run.advance(mix.dt_s, now.pace, restart);
  now.made = now.step.progress_s / mix.dt_s;
  if (now.step.phase != Phase::training) return now;
  const double plateau = effects.size(FaultForm::plateau, type);
  const double at_work =
      (1 - plateau + 0.5 * plateau * run.swing) * (1 - effects.size(FaultForm::short_sequences, type));
  now.utilisation *= at_work;
  now.made *= at_work;
  now.power *= 1 - 0.8 * (1 - at_work);
  run.learned_s += plateau > 0 ? 0 : now.step.progress_s;
  return now;
}

/// Into the racks, and what the job says of itself.
void FacilityLoad::book(const JobRun& run, const JobNow& now, const FacilityEffects& effects, Mix& mix) {
  const double idle = p_.it.idle_gpu_power.value();
  const double gpu_w = idle + std::max(0.0, now.step.gpu_w - idle) * std::max(0.0, now.power);
  double gpus = 0;
  for (std::size_t r = 0; r < racks_; ++r) {
    const double n = effects.drained(static_cast<std::uint32_t>(r)) ? 0 : run.gpus[r];
    mix.gpu_w[r] += n * gpu_w;
    mix.busy[r] += n;
    gpus += n;
  }
  if (gpus <= 0) return;
  const double busy = std::clamp(now.step.utilisation, 0.0, 1.0), clock = p_.it.gpu_clock.value() * now.clock;
  mix.clock += gpus * (busy > 0.3 ? clock : kIdleClock + busy * (clock - kIdleClock));
  mix.busy_gpus += gpus;

  const double tokens_per_s = std::max(0.0, gpus * run.type().tokens_per_gpu_s * now.made * (1 + now.token_noise));
  now_.tokens += tokens_per_s * mix.dt_s;
  JobShare& share = now_.jobs.emplace_back();
  share.type = run.type().name;
  share.phase = now.step.phase;
  share.gpus_fraction = gpus / static_cast<double>(p_.it.gpus);
  share.tokens_per_s = tokens_per_s;
  share.utilisation_fraction = std::clamp(busy * now.utilisation, 0.0, 1.0);
  if (run.type().step > Seconds(0)) {
    share.loss = kLossFloor + kLossSpan * std::pow(1 + run.learned_s / kLossTime, -kLossPower) + now.loss_noise;
  }
}

/// A batch job that the scheduler puts onto GPUs which others have; where they have none it has them to itself.
void FacilityLoad::run_intruder(const FacilityEffects& effects, Mix& mix) {
  const double noise = intruder_.random().normal();
  const double fraction = std::min(1.0, effects.size(FaultForm::co_scheduled));
  if (fraction <= 0) return;
  const JobRun::Step step = intruder_.advance(mix.dt_s, 1, false);
  double left = fraction * static_cast<double>(p_.it.gpus);
  for (std::size_t r = 0; r < racks_ && left > 0; ++r) {
    const double here = std::min(left, rack_gpus_[r]);
    const double alone = std::min(here, std::max(0.0, rack_gpus_[r] - mix.busy[r]));
    left -= here;
    mix.gpu_w[r] += alone * step.gpu_w;
    mix.busy[r] += alone;
    mix.clock += alone * p_.it.gpu_clock.value();
    mix.busy_gpus += alone;
  }
  JobShare& share = now_.jobs.emplace_back();
  share.type = intruder_.type().name;
  share.phase = step.phase;
  share.gpus_fraction = fraction;
  share.utilisation_fraction = step.utilisation;
  share.tokens_per_s = fraction * static_cast<double>(p_.it.gpus) * intruder_.type().tokens_per_gpu_s * 0.6 *
                       (1 + p_.it.step_noise_sd * noise);
}

const LoadStep& FacilityLoad::step(Seconds since_start, const FacilityEffects& effects, std::span<const double> inlet_c,
                                   double liquid_c, double voltage_fraction) {
  Mix mix;
  mix.gpu_w.assign(racks_, 0);
  mix.busy.assign(racks_, 0);
  mix.dt_s = p_.period.value();
  mix.intruder_fraction = effects.size(FaultForm::co_scheduled);
  now_.jobs.clear();
  now_.tokens = 0;
  const Seconds middle = since_start + p_.period * 0.5;
  for (JobRun& run : runs_) {
    if (middle >= run.job().start && middle < run.job().stop) book(run, run_job(run, effects, mix), effects, mix);
  }
  run_intruder(effects, mix);
  const auto gpus = static_cast<double>(p_.it.gpus);
  now_.gpu_clock_hz = (mix.clock + std::max(0.0, gpus - mix.busy_gpus) * kIdleClock) / gpus;
  racks(mix, inlet_c, liquid_c, voltage_fraction);
  errors(effects);
  return now_;
}

void FacilityLoad::racks(const Mix& mix, std::span<const double> inlet_c, double liquid_c, double voltage_fraction) {
  const FacilityItParameters& it = p_.it;
  const DeliveryParameters& d = p_.delivery;
  const double keep = std::exp(-mix.dt_s / it.rack_noise_time.value());
  const double kick = it.rack_noise_sd * std::sqrt(1 - keep * keep);
  const double warm = 1 - std::exp(-mix.dt_s / kTemperatureTime);
  const auto first_liquid =
      static_cast<std::size_t>(std::llround(static_cast<double>(racks_) * (1 - it.liquid_racks_fraction)));
  const double rating = d.supply_rating.value(),
               square = d.supply_square_fraction / (voltage_fraction * voltage_fraction);
  now_.gpus_w = now_.supply_loss_w = now_.it_w = now_.air_w = now_.liquid_w = 0;
  double temperature = 0, throttled = 0;
  for (std::size_t r = 0; r < racks_; ++r) {
    rack_noise_[r] = keep * rack_noise_[r] + kick * rack_random_.normal();
    const double n = rack_gpus_[r], busy = std::min(mix.busy[r], n), inlet = inlet_c[r];
    const bool liquid = r >= first_liquid;
    const double base = liquid ? liquid_c : inlet;
    double gpu_w = mix.gpu_w[r] + (n - busy) * it.idle_gpu_power.value();
    gpu_w *= 1 + rack_spread_[r] + rack_noise_[r];
    gpu_w += it.leakage_per_kelvin * busy * (liquid ? 0 : inlet - kReferenceInlet);
    const double other_w = it.other_power.value() * (it.other_idle_fraction * n + (1 - it.other_idle_fraction) * busy) *
                           (1 + it.inlet_fan_gain * std::max(0.0, inlet - it.inlet_fan_start.value()));
    const double per_gpu = (gpu_w + other_w) / n;
    const double loss = n * (d.supply_idle_fraction * rating + d.supply_proportional_fraction * per_gpu +
                             square * per_gpu * per_gpu / rating);
    now_.rack_w[r] = gpu_w + other_w + loss;
    const double liquid_w = liquid ? it.liquid_capture_fraction * now_.rack_w[r] : 0;
    now_.rack_air_w[r] = now_.rack_w[r] - liquid_w;
    now_.gpus_w += gpu_w;
    now_.supply_loss_w += loss;
    now_.it_w += now_.rack_w[r];
    now_.liquid_w += liquid_w;

    const double target = base + (liquid ? kPlateShare : 1) * it.gpu_thermal_resistance * gpu_w / n;
    rack_temperature_c_[r] += warm * (target - rack_temperature_c_[r]);
    const double hot = (rack_temperature_c_[r] + kHotSpot - kThrottleStart) / (kThrottleAll - kThrottleStart);
    now_.rack_throttled_fraction[r] = busy > 0 ? std::clamp(hot, 0.0, 1.0) : 0;
    temperature += n * rack_temperature_c_[r];
    throttled += n * now_.rack_throttled_fraction[r];
  }
  now_.it_w += it.network_power.value();
  now_.air_w = now_.it_w - now_.liquid_w;
  const auto gpus = static_cast<double>(it.gpus);
  now_.gpu_temperature_c = temperature / gpus;
  now_.throttled_fraction = throttled / gpus;
}

void FacilityLoad::errors(const FacilityEffects& effects) {
  const double gpu_days = static_cast<double>(p_.it.gpus) * p_.period.value() / kDay;
  const double ageing = effects.size(FaultForm::ageing);
  now_.ecc_errors += poisson(kEccPerGpuDay * gpu_days * (1 + 100 * ageing), fleet_random_.uniform());
  now_.link_errors += poisson(kLinkPerGpuDay * gpu_days * (1 + 60 * ageing), fleet_random_.uniform());
}

}  // namespace flyball::twin
