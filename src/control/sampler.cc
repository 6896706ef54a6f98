#include "control/sampler.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"

namespace flyball::control {

Seconds process_core_time() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return Seconds(static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9);
}

Sampler::Sampler(RoundReader& reader, Clock& clock, series::RecordingWriter& writer, SamplerOptions options,
                 std::function<Seconds()> core_time)
    : reader_(reader),
      clock_(clock),
      writer_(writer),
      options_(options),
      core_time_(std::move(core_time)),
      interval_(options_.interval) {}

Result<> Sampler::start() {
  started_ = due_ = last_round_ = flushed_ = adapted_ = clock_.now();
  wall_offset_ns_ = clock_.wall().nanoseconds() - clock_.now().nanoseconds();
  if (core_time_) core_at_start_ = core_at_adapt_ = core_time_();
  FLYBALL_ASSIGN(const std::string what, reader_.find());
  event(started_, "recording_start", interval_.value(), what);
  reader_.note(started_);
  return {};
}

void Sampler::event(MonoTime at, const std::string& kind, double value, const std::string& detail) {
  (void)writer_.event(at, {{}, kind, {}, {}, value, detail});  // events wait in a bounded queue, they cannot fail here
}

void Sampler::round() {
  const MonoTime begin = clock_.now();
  note_gap(begin);
  note_wall_step(begin);
  report_.failed_reads += reader_.read();
  const MonoTime end = clock_.now();
  const Seconds took = end - begin;
  busy_ += took;
  busy_since_adapt_ += took;
  report_.call_time_max = std::max(report_.call_time_max, took);
  ++report_.rounds;
  last_round_ = begin;
  if (begin - adapted_ >= interval_ * 20) adapt(begin);
  if (end - flushed_ >= options_.flush) flush(end);
  // Rounds that are past are not made up for: a burst of reads tells nothing about the time that was missed.
  due_ = due_ + interval_;
  if (due_ <= clock_.now()) due_ = clock_.now() + interval_;
}

void Sampler::note_gap(MonoTime now) {
  if (report_.rounds == 0) return;
  const Seconds since = now - last_round_;
  if (since < interval_ * 2.5) return;  // one missed round is jitter, two are a gap
  ++report_.gaps;
  report_.longest_gap = std::max(report_.longest_gap, since);
  event(now, "recording_gap", since.value(), "no round was held; the time is not covered");
}

void Sampler::note_wall_step(MonoTime now) {
  constexpr std::int64_t kNoticedNs = 10'000'000;  // slewing corrects at most 0.05 % of a round
  const std::int64_t offset = clock_.wall().nanoseconds() - clock_.now().nanoseconds();
  const std::int64_t step = offset - wall_offset_ns_;
  wall_offset_ns_ = offset;
  if (std::llabs(step) < kNoticedNs) return;
  event(now, "wall_step", static_cast<double>(step) * 1e-9,
        "the wall clock was set; recorded times follow the monotonic clock");
}

/// Doubles the interval where reading costs too much, and halves it again, down to what was asked for, once the cost
/// would still be well inside the limit.
void Sampler::adapt(MonoTime now) {
  const Seconds elapsed = now - adapted_;
  const double core = core_time_ ? (core_time_() - core_at_adapt_) / elapsed : 0;
  const double busy = busy_since_adapt_ / elapsed;
  adapted_ = now;
  busy_since_adapt_ = Seconds(0);
  if (core_time_) core_at_adapt_ = core_time_();
  const double share = std::max(core / options_.most_core_fraction, busy / options_.most_busy_fraction);
  Seconds next = interval_;
  if (share > 1) next = std::min(interval_ * 2, std::max(options_.longest_interval, options_.interval));
  if (share < 0.25) next = std::max(interval_ / 2, options_.interval);
  if (next == interval_) return;
  if (next > interval_) ++report_.slowed;
  interval_ = next;
  event(now, "interval_changed", interval_.value(),
        fmt::format("reading took {} of a core and {} of the time", format_percent(core), format_percent(busy)));
}

void Sampler::flush(MonoTime now) {
  flushed_ = now;
  if (const auto done = writer_.flush(); !done) {
    ++report_.flush_failures;
    report_.flush_error = done.error().message();
  }
}

SamplerReport Sampler::report() const {
  SamplerReport report = report_;
  const Seconds elapsed = clock_.now() - started_;
  if (report.rounds > 0) report.call_time_mean = busy_ / static_cast<double>(report.rounds);
  if (core_time_ && elapsed > Seconds(0)) report.core_fraction = (core_time_() - core_at_start_) / elapsed;
  report.interval = interval_;
  report.flush_failures += reader_.failures();
  if (report.flush_error.empty()) report.flush_error = reader_.last_failure();
  return report;
}

}  // namespace flyball::control
