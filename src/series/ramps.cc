#include "series/ramps.h"

#include <algorithm>
#include <cmath>

namespace flyball::series {

std::vector<Seconds> default_ramp_spans() { return {Seconds(1), Seconds(10), Seconds(60)}; }

RampMeter::RampMeter(Seconds period, std::span<const Seconds> spans, const GapRule& gap)
    : longest_step_(gap.longest(period).value()) {
  for (const Seconds span : spans) {
    if (!(span > Seconds(0))) continue;
    spans_.push_back({{}, 0, Reservoir(kExact)});
    spans_.back().ramp.span = span;
    spans_.back().ramp.resolved = span >= period * 0.999;
  }
}

void RampMeter::add(const Samples& piece) {
  if (piece.size() == 0) return;
  if (count_ == 0) origin_ = piece.origin;
  const double offset = (piece.origin - origin_).value();
  for (std::size_t i = 0; i < piece.size(); ++i) {
    const double t = offset + piece.t_s[i];
    if (count_ == 0 || t - kept_.back().t > longest_step_) stretch_ = count_, stretch_t_ = t;
    kept_.push_back({t, piece.value[i]});
    ++count_;
    std::uint64_t needed = count_ - 1;
    for (Span& span : spans_) {
      compare(span);
      needed = std::min(needed, std::max(span.at, stretch_));
    }
    for (; forgotten_ < needed; ++forgotten_) kept_.pop_front();
  }
}

/// The newest sample against the instant one span before it.
void RampMeter::compare(Span& span) {
  const std::uint64_t now = count_ - 1;
  const double then = sample(now).t - span.ramp.span.value();
  if (now == stretch_ || then < stretch_t_) return;
  span.at = std::max(span.at, stretch_);
  while (span.at + 1 < now && sample(span.at + 1).t <= then) ++span.at;
  const Sample& a = sample(span.at);
  const Sample& b = sample(span.at + 1);
  const double before = a.value + (then - a.t) / (b.t - a.t) * (b.value - a.value);
  const double rate = (sample(now).value - before) / span.ramp.span.value();
  span.rates.add(std::fabs(rate), random_);
  Ramp& ramp = span.ramp;
  const WallTime at = origin_ + Seconds(sample(now).t);
  if (rate > ramp.max_up_w_per_s) ramp.max_up_w_per_s = rate, ramp.up_at = at;
  if (-rate > ramp.max_down_w_per_s) ramp.max_down_w_per_s = -rate, ramp.down_at = at;
}

std::vector<Ramp> RampMeter::result() const {
  std::vector<Ramp> all;
  for (const Span& span : spans_) {
    all.push_back(span.ramp);
    all.back().pairs = span.rates.seen();
    all.back().p50_w_per_s = span.rates.quantile_of(0.5);
    all.back().p95_w_per_s = span.rates.quantile_of(0.95);
    all.back().p99_w_per_s = span.rates.quantile_of(0.99);
  }
  return all;
}

std::vector<Ramp> ramps(const Samples& power, std::span<const Seconds> spans, const GapRule& gap) {
  RampMeter meter(power.period, spans, gap);
  meter.add(power);
  return meter.result();
}

}  // namespace flyball::series
