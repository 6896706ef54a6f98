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
    : parameters_(parameters),
      random_(random),
      // Streams of their own: a job with jitter has the same noise as one without.
      jitter_(Random(random).fork(1)),
      stalls_(Random(random).fork(2)),
      work_(ranks, 1.0),
      duty_(ranks, 1.0),
      stage_(ranks, 0),
      left_(ranks, 0.0),
      waited_(ranks, 0.0),
      reported_(ranks, 0.0) {
  double most = 0;
  for (std::size_t i = 0; i < ranks; ++i) {
    work_[i] = std::max(0.1, 1 + parameters_.rank_work_sd * random_.normal());
    if (i == 0) work_[i] *= 1 + parameters_.straggler_fraction;
    most = std::max(most, work_[i]);
  }
  const double fractions =
      parameters_.exposed_wait_fraction + parameters_.absorbable_wait_fraction + parameters_.memory_fraction;
  compute_time_ = (1 - fractions) * parameters_.step_time.value();
  const auto batches = static_cast<double>(parameters_.microbatches);
  microbatch_time_ = compute_time_ / (batches + static_cast<double>(hops()));
  for (std::size_t i = 0; i < ranks; ++i) {
    // The rank with most work takes the stated step time; the others have slack.
    work_[i] *= batches * microbatch_time_ / most;
    stage_[i] = i % parameters_.pipeline_stages;
    duty_[i] = 1 - static_cast<double>(hops() - stage_[i]) / batches;
  }
  drift_ = parameters_.drift_sd * random_.normal();
  next_stall_ = -std::log(1 - stalls_.uniform()) * parameters_.stall_interval.value();
  next_checkpoint_ = parameters_.checkpoint_interval.value();
  part_left_ = parameters_.startup_time.value();
}

std::uint64_t Job::stages_at_work() const { return part_ == Part::fill ? hop_ + 1 : hops() - hop_; }

double Job::hop_time() const {
  return microbatch_time_ * (part_ == Part::fill ? parameters_.forward_fraction : 1 - parameters_.forward_fraction);
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
    case Part::fill:
    case Part::compute:
    case Part::drain:
    case Part::slack:
    case Part::exchange:
    case Part::stall:
      load.activity = parameters_.activity_fraction;
      load.compute_share = parameters_.compute_share;
      break;
    case Part::update:
      load.activity = parameters_.memory_activity_fraction;
      load.compute_share = parameters_.memory_compute_share;
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
  constexpr double kNever = std::numeric_limits<double>::infinity();
  if (stalled_ || part_ == Part::finished) return kNever;
  double until = part_left_;
  if (in_hop()) {
    // A hop is the work of one stage, at the pace of its slowest rank.
    double slowest = kNever;
    for (std::size_t i = stages_at_work() - 1; i < gpus.size(); i += parameters_.pipeline_stages) {
      slowest = std::min(slowest, gpus[i].rate());
    }
    return part_left_ / slowest / job_per_real;
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (left_[i] > 0) until = std::max(until, left_[i] / gpus[i].rate());
  }
  return until / job_per_real;
}

void Job::spend(std::span<Gpu> gpus, double real, double job_per_real) {
  if (!hung_) floor_left_ = std::max(0.0, floor_left_ - real * job_per_real);
  if (in_hop()) {
    if (!stalled_) {
      const double share = real / until_end(gpus, job_per_real);
      part_left_ = share < 1 ? part_left_ * (1 - share) : 0;
    }
  } else if (!hung_) {
    part_left_ = std::max(0.0, part_left_ - real * job_per_real);
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) spend_rank(gpus[i], i, real, job_per_real);
}

void Job::spend_rank(Gpu& gpu, std::size_t rank, double real, double job_per_real) {
  if (part_ == Part::startup || part_ == Part::finished || gpu.lost()) return gpu.spend_idle(Seconds(real));
  if (part_ == Part::checkpoint && !hung_) return gpu.spend_busy(Seconds(real));
  double busy = 0;
  if (in_hop()) {
    if (!stalled_ && stage_[rank] < stages_at_work()) busy = real;
  } else {
    const double pace = hung_ ? 0 : gpu.rate() * job_per_real;
    if (left_[rank] > kDone && pace > 0) {
      const double worked = std::min(real, left_[rank] / pace);
      left_[rank] = std::max(0.0, left_[rank] - worked * pace);
      busy = part_ == Part::compute ? worked * duty_[rank] : worked;
    }
  }
  if (busy > 0) gpu.spend_busy(Seconds(busy));
  if (real > busy) {
    gpu.spend_waiting(Seconds(real - busy));
    if (in_step()) waited_[rank] += real - busy;
  }
}

void Job::finish_part(MonoTime at) {
  if (in_hop() && hop_ + 1 < hops()) {
    ++hop_;
    part_left_ = hop_time();
    return;
  }
  if (in_step()) {
    const Part next = after(part_, at);
    if (next != Part::finished) return enter(next, at);
    finish_step(at);
    return enter(after_step(at), at);
  }
  if (part_ == Part::evaluation && checkpoint_due_) return enter(Part::checkpoint, at);
  enter(all_done() ? Part::finished : first_part(), at);
}

/// The next part of the step that has any length; `finished` at its end.
Job::Part Job::after(Part part, MonoTime at) {
  switch (part) {
    case Part::fill:
      return Part::compute;
    case Part::compute:
      if (hops() > 0) return Part::drain;
      [[fallthrough]];
    case Part::drain:
      if (floor_left_ > kDone) return Part::slack;
      [[fallthrough]];
    case Part::slack:
      if (parameters_.exposed_wait_fraction > 0) return Part::exchange;
      [[fallthrough]];
    case Part::exchange:
      if (parameters_.memory_fraction > 0) return Part::update;
      [[fallthrough]];
    case Part::update:
      if (parameters_.stall_interval > Seconds(0) && at.seconds() >= next_stall_) return Part::stall;
      [[fallthrough]];
    default:
      return Part::finished;
  }
}

void Job::finish_step(MonoTime at) {
  ++steps_;
  last_step_ = {steps_, at, Seconds(step_real_)};
  reported_ = waited_;
  keep(step_records_, last_step_);
}

Job::Part Job::after_step(MonoTime at) {
  const auto due = [this](std::uint64_t every) { return every > 0 && steps_ % every == 0; };
  checkpoint_due_ = due(parameters_.checkpoint_every);
  if (parameters_.checkpoint_interval > Seconds(0) && at.seconds() >= next_checkpoint_) {
    checkpoint_due_ = true;
    next_checkpoint_ = at.seconds() + parameters_.checkpoint_interval.value();
  }
  if (due(parameters_.evaluation_every)) return Part::evaluation;
  if (checkpoint_due_) return Part::checkpoint;
  return all_done() ? Part::finished : first_part();
}

void Job::begin_step() {
  step_real_ = 0;
  // Wait that slower compute may use: the step does not go on to its exchange before its floor.
  floor_left_ = compute_time_ + parameters_.absorbable_wait_fraction * parameters_.step_time.value();
}

void Job::enter(Part part, MonoTime at) {
  part_ = part;
  std::fill(left_.begin(), left_.end(), 0.0);
  part_left_ = 0;
  hop_ = 0;
  Phase phase = Phase::training;
  if (part == first_part()) begin_step();
  switch (part) {
    case Part::fill:
    case Part::drain:
      part_left_ = hop_time();
      break;
    case Part::compute:
      left_ = work_;
      if (parameters_.rank_jitter_sd > 0) {
        for (double& left : left_) left *= std::max(0.1, 1 + parameters_.rank_jitter_sd * jitter_.normal());
      }
      break;
    case Part::slack:
      part_left_ = floor_left_;
      break;
    case Part::exchange:
      part_left_ = parameters_.exposed_wait_fraction * parameters_.step_time.value();
      break;
    case Part::update:
      std::fill(left_.begin(), left_.end(), parameters_.memory_fraction * parameters_.step_time.value());
      break;
    case Part::stall:
      part_left_ = parameters_.stall_time.value();
      next_stall_ = at.seconds() - std::log(1 - stalls_.uniform()) * parameters_.stall_interval.value();
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

Phase Job::step_part() const {
  if (part_ == Part::update) return Phase::optimizer;
  return part_ == Part::slack || part_ == Part::exchange || part_ == Part::stall ? Phase::gradient_sync : phase_;
}

std::uint64_t Job::tokens() const {
  return static_cast<std::uint64_t>(static_cast<double>(steps_) * parameters_.tokens_per_step);
}

double Job::exact_tokens() const {
  if (!in_step()) return static_cast<double>(steps_) * parameters_.tokens_per_step;
  const double step = parameters_.step_time.value();
  // Computing and its slack are done as far as the later of the two.
  const double block = compute_time_ + parameters_.absorbable_wait_fraction * step;
  const double filled = static_cast<double>(hops()) * microbatch_time_ * parameters_.forward_fraction;
  const double body = static_cast<double>(parameters_.microbatches) * microbatch_time_;
  double computed = compute_time_;  // s of job time at full clocks
  if (part_ == Part::fill) {
    computed = static_cast<double>(hop_ + 1) * hop_time() - part_left_;
  } else if (part_ == Part::compute) {
    double left = 0;  // of the rank that is furthest behind
    for (std::size_t i = 0; i < left_.size(); ++i) left = std::max(left, left_[i] / work_[i]);
    computed = filled + body * std::max(0.0, 1 - left);
  } else if (part_ == Part::drain) {
    computed = filled + body + static_cast<double>(hop_ + 1) * hop_time() - part_left_;
  }
  const double early = std::min(computed / compute_time_, 1 - floor_left_ / block) * block;
  double part = early / step;
  const double exchange = parameters_.exposed_wait_fraction;
  if (part_ == Part::exchange) part = block / step + exchange - part_left_ / step;
  if (part_ == Part::update) {
    part = 1 - *std::max_element(left_.begin(), left_.end()) / step;
  } else if (part_ == Part::stall) {
    part = 1;
  }
  return (static_cast<double>(steps_) + std::clamp(part, 0.0, 1.0)) * parameters_.tokens_per_step;
}

std::vector<StepRecord> Job::take_steps() { return std::exchange(step_records_, {}); }
std::vector<PhaseChange> Job::take_phase_changes() { return std::exchange(phase_changes_, {}); }

}  // namespace flyball::twin
