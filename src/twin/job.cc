#include "twin/job.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace flyball::twin {

namespace {

constexpr double kNoiseWindow = 10.0;  // s; the noise is stated per 10 s
constexpr double kDone = 1e-12;        // s of work: less is rounding

template <class T>
void keep(std::vector<T>& records, T record) {
  if (records.size() >= Job::kMaxRecords) {
    records.erase(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(Job::kMaxRecords / 2));
  }
  records.push_back(std::move(record));
}

}  // namespace

Job::Job(const JobParameters& parameters, std::size_t ranks, Random random)
    : parameters_(parameters), random_(random), work_(ranks, 1.0), left_(ranks, 0.0) {
  double most = 0;
  for (double& work : work_) {
    work = std::max(0.1, 1 + parameters_.rank_work_sd * random_.normal());
    most = std::max(most, work);
  }
  // The rank with most work takes the stated step time; the others have slack.
  const double compute = 1 - parameters_.exposed_wait_fraction - parameters_.absorbable_wait_fraction;
  for (double& work : work_) work *= compute * parameters_.step_time.value() / most;
  drift_ = parameters_.drift_sd * random_.normal();
  part_left_ = parameters_.startup_time.value();
}

void Job::draw_noise(double now) {
  if (now < noise_until_) return;
  noise_until_ = (std::floor(now / kNoiseWindow + 1e-9) + 1) * kNoiseWindow;
  white_ = parameters_.throughput_noise_sd * random_.normal();
  // Exact step of an Ornstein-Uhlenbeck process.
  const double keep_fraction = std::exp(-kNoiseWindow / parameters_.drift_time.value());
  drift_ =
      drift_ * keep_fraction + parameters_.drift_sd * std::sqrt(1 - keep_fraction * keep_fraction) * random_.normal();
}

void Job::advance(std::span<Gpu> gpus, MonoTime now, Seconds tick, double speed) {
  draw_noise(now.seconds());
  const double job_per_real = speed * std::max(0.1, (1 + white_) * (1 + drift_));
  stalled_ = hung_ || std::any_of(gpus.begin(), gpus.end(), [](const Gpu& gpu) { return gpu.lost(); });
  if (part_ == Part::startup && part_left_ <= kDone) finish_part(now);
  for (Gpu& gpu : gpus) gpu.begin_tick();
  load(gpus);
  double left = tick.value();
  while (left > 0) {
    const double until = until_end(gpus, job_per_real);
    const double real = std::min(left, until);
    spend(gpus, real, job_per_real);
    left -= real;
    step_real_ += real;
    if (until > real) break;
    finish_part(now + (tick - Seconds(left)));
    load(gpus);
  }
  for (Gpu& gpu : gpus) gpu.end_tick();
}

void Job::load(std::span<Gpu> gpus) const {
  Load load;
  load.wait_power_fraction = stalled_ ? parameters_.hung_power_fraction : parameters_.wait_power_fraction;
  switch (part_) {
    case Part::compute:
    case Part::exchange:
      load.activity = parameters_.activity_fraction;
      load.compute_share = parameters_.compute_share;
      break;
    case Part::evaluation:
      load.activity = parameters_.evaluation_activity_fraction;
      load.compute_share = parameters_.evaluation_compute_share;
      break;
    case Part::checkpoint:
      load.activity = parameters_.checkpoint_activity_fraction;
      load.compute_share = 0;
      break;
    case Part::startup:
    case Part::finished:
      break;
  }
  for (Gpu& gpu : gpus) gpu.set_load(load);
}

double Job::until_end(std::span<const Gpu> gpus, double job_per_real) const {
  if (hung_ || part_ == Part::finished) return std::numeric_limits<double>::infinity();
  double until = part_left_;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i].lost()) return std::numeric_limits<double>::infinity();
    until = std::max(until, left_[i] / gpus[i].rate());
  }
  return until / job_per_real;
}

void Job::spend(std::span<Gpu> gpus, double real, double job_per_real) {
  if (!hung_) part_left_ = std::max(0.0, part_left_ - real * job_per_real);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    Gpu& gpu = gpus[i];
    if (part_ == Part::startup || part_ == Part::finished || gpu.lost()) {
      gpu.spend_idle(Seconds(real));
    } else if (part_ == Part::checkpoint && !hung_) {
      gpu.spend_busy(Seconds(real));
    } else {
      const double pace = hung_ ? 0 : gpu.rate() * job_per_real;
      const double busy = left_[i] > kDone && pace > 0 ? std::min(real, left_[i] / pace) : 0;
      left_[i] = std::max(0.0, left_[i] - busy * pace);
      if (busy > 0) gpu.spend_busy(Seconds(busy));
      if (real > busy) gpu.spend_waiting(Seconds(real - busy));
    }
  }
}

void Job::finish_part(MonoTime at) {
  const auto due = [this](std::uint64_t every) { return every > 0 && steps_ % every == 0; };
  if (part_ == Part::compute && parameters_.exposed_wait_fraction > 0) return enter(Part::exchange, at);
  const bool step_ended = part_ == Part::compute || part_ == Part::exchange;
  if (step_ended) finish_step(at);
  if (step_ended && due(parameters_.evaluation_every)) return enter(Part::evaluation, at);
  if ((step_ended || part_ == Part::evaluation) && due(parameters_.checkpoint_every)) {
    return enter(Part::checkpoint, at);
  }
  const bool all = parameters_.stop_after_steps > 0 && steps_ >= parameters_.stop_after_steps;
  enter(all ? Part::finished : Part::compute, at);
}

void Job::finish_step(MonoTime at) {
  ++steps_;
  last_step_ = {steps_, at, Seconds(step_real_)};
  keep(step_records_, last_step_);
}

void Job::enter(Part part, MonoTime at) {
  part_ = part;
  std::fill(left_.begin(), left_.end(), 0.0);
  part_left_ = 0;
  Phase phase = Phase::training;
  switch (part) {
    case Part::compute:
      left_ = work_;
      // Wait that slower compute may use: the step cannot end before its floor.
      part_left_ = (1 - parameters_.exposed_wait_fraction) * parameters_.step_time.value();
      step_real_ = 0;
      break;
    case Part::exchange:
      part_left_ = parameters_.exposed_wait_fraction * parameters_.step_time.value();
      break;
    case Part::evaluation:
      std::fill(left_.begin(), left_.end(), parameters_.evaluation_time.value());
      phase = Phase::evaluation;
      break;
    case Part::checkpoint:
      part_left_ = parameters_.checkpoint_time.value();
      phase = Phase::checkpoint;
      break;
    case Part::startup:
      phase = Phase::startup;
      break;
    case Part::finished:
      phase = Phase::idle;
      break;
  }
  if (phase == phase_) return;
  phase_ = phase;
  keep(phase_changes_, PhaseChange{at, phase, steps_});
}

std::uint64_t Job::tokens() const {
  return static_cast<std::uint64_t>(static_cast<double>(steps_) * parameters_.tokens_per_step);
}

double Job::exact_tokens() const {
  double part = 0;
  const double step = parameters_.step_time.value();
  if (part_ == Part::compute) {
    double left = 0;  // the rank that is furthest behind
    for (std::size_t i = 0; i < left_.size(); ++i) left = std::max(left, left_[i] / work_[i]);
    const double compute = (1 - parameters_.exposed_wait_fraction) * step;
    part = (1 - parameters_.exposed_wait_fraction) * (1 - std::max(left, part_left_ / compute));
  } else if (part_ == Part::exchange) {
    part = 1 - part_left_ / step;
  }
  return (static_cast<double>(steps_) + std::clamp(part, 0.0, 1.0)) * parameters_.tokens_per_step;
}

std::vector<StepRecord> Job::take_steps() { return std::exchange(step_records_, {}); }
std::vector<PhaseChange> Job::take_phase_changes() { return std::exchange(phase_changes_, {}); }

}  // namespace flyball::twin
