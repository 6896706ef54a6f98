#include "control/reading_log.h"

#include <fmt/format.h>

#include <utility>

namespace flyball::control {

const DeviceId& job_device() {
  static const DeviceId job = DeviceId::of("job");
  return job;
}

void ReadingLog::keep(std::uint32_t series, MonoTime at, double value, Status status) {
  if (const auto kept = writer_.point(series, at, value, status); !kept) {
    ++failures_;
    last_failure_ = kept.error().message();
  }
}

void ReadingLog::event(MonoTime at, const std::string& kind, const DeviceId& device, double value, std::string detail) {
  (void)writer_.event(at, {{}, kind, device, {}, value, std::move(detail)});  // events wait in a bounded queue
}

void ReadingLog::put(Board& board, const DeviceId& device, Signal signal, MonoTime at, double value, Status status,
                     Scope scope) {
  const auto [found, is_new] = board.kept.try_emplace(signal);
  Kept& kept = found->second;
  // What a board does not have is said once, not twice a second.
  if (!is_new && status == Status::not_supported && kept.last == status) return;
  if (is_new) kept.series = writer_.begin_series({device, signal, scope, source_});
  kept.last = status;
  keep(kept.series, at, value, status);
}

void ReadingLog::reading(const GpuReading& r) {
  Board& board = boards_[r.device];
  const auto give = [&](Signal signal, const auto& sample, auto number) {
    put(board, r.device, signal, r.taken, sample.ok() ? number(*sample) : 0, sample.status, r.scope);
  };
  const auto unit = [](const auto& quantity) { return quantity.value(); };
  const auto plain = [](double value) { return value; };
  const auto watts = [](Milliwatts limit) { return limit.watts().value(); };
  give(Signal::power_average, r.power_average, unit);
  give(Signal::power_instant, r.power_instant, unit);
  give(Signal::energy, r.energy, unit);
  give(Signal::utilisation, r.utilisation_fraction, plain);
  give(Signal::temperature, r.temperature, unit);
  give(Signal::sm_clock, r.sm_clock, unit);
  give(Signal::memory_clock, r.memory_clock, unit);
  give(Signal::limit_requested, r.limit_requested, watts);
  give(Signal::limit_enforced, r.limit_enforced, watts);
  give(Signal::throttle, r.throttle, [](ThrottleReasons reasons) { return static_cast<double>(reasons.bits); });
  give(Signal::fan, r.fan_fraction, plain);
}

void ReadingLog::failed(const DeviceId& device, MonoTime at) {
  Board& board = boards_[device];
  // A board that has answered nothing yet is there all the same.
  if (board.kept.empty()) put(board, device, Signal::power_average, at, 0, Status::failed, Scope::board);
  for (auto& [signal, kept] : board.kept) {
    if (kept.last != Status::not_supported) put(board, device, signal, at, 0, Status::failed, Scope::board);
  }
}

void ReadingLog::range(const DeviceId& device, const PowerLimits& limits, MonoTime at) {
  if (!limits.minimum || !limits.maximum) return;
  Board& board = boards_[device];
  const auto& [low, high] = board.range;
  if (low && high && *low == *limits.minimum && *high == *limits.maximum) return;
  board.range = {limits.minimum, limits.maximum};
  event(at, "board_range", device, (*limits.maximum).watts().value(),
        fmt::format("minimum_mw={} maximum_mw={}", (*limits.minimum).value(), (*limits.maximum).value()));
}

void ReadingLog::progress(const Sample<WorkloadProgress>& progress, MonoTime seen) {
  if (!progress) return;
  const WorkloadProgress& now = *progress;
  if (now.phase != phase_) {
    if (phase_ != Phase::unknown) event(seen, std::string(to_string(phase_)) + "_stop", {}, 0, {});
    if (now.phase != Phase::unknown) event(seen, std::string(to_string(now.phase)) + "_start", {}, 0, {});
    phase_ = now.phase;
  }
  if (!job_seen_) {
    tokens_series_ = writer_.begin_series({job_device(), Signal::tokens, Scope::unknown, source_});
    steps_series_ = writer_.begin_series({job_device(), Signal::other, Scope::unknown, kStepsSource});
  } else if (now.at <= last_step_) {
    return;
  }
  job_seen_ = true;
  last_step_ = now.at;
  keep(tokens_series_, now.at, static_cast<double>(now.tokens), Status::ok);
  keep(steps_series_, now.at, static_cast<double>(now.steps), Status::ok);
}

void ReadingLog::waited(const DeviceId& device, const Sample<Seconds>& waited) {
  if (!waited || !job_seen_) return;
  Board& board = boards_[device];
  if (board.waited_series && board.waited_at == last_step_) return;
  if (!board.waited_series) {
    board.waited_series = writer_.begin_series({device, Signal::other, Scope::unknown, kWaitedSource});
  }
  board.waited_at = last_step_;
  keep(*board.waited_series, last_step_, (*waited).value(), Status::ok);
}

}  // namespace flyball::control
