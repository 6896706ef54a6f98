#include "series/counter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace flyball::series {

std::string_view to_string(CounterEvent event) {
  switch (event) {
    case CounterEvent::first:
      return "first";
    case CounterEvent::advance:
      return "advance";
    case CounterEvent::repeat:
      return "repeat";
    case CounterEvent::wrapped:
      return "wrapped";
    case CounterEvent::wrap_ambiguous:
      return "wrap_ambiguous";
    case CounterEvent::fall_pending:
      return "fall_pending";
    case CounterEvent::dip_ignored:
      return "dip_ignored";
    case CounterEvent::reset:
      return "reset";
    case CounterEvent::implausible:
      return "implausible";
    case CounterEvent::unusable:
      return "unusable";
  }
  return "unknown";
}

std::string_view to_string(Believed believed) {
  switch (believed) {
    case Believed::counter:
      return "counter";
    case Believed::integral:
      return "integral";
    case Believed::neither:
      return "neither";
  }
  return "unknown";
}

std::optional<MonoTime> CounterReader::last_change() const {
  if (!last_) return {};
  return last_->at;
}

bool CounterReader::plausible(Joules increment, Seconds span) const {
  return increment >= Joules(0) && increment <= options_.most * span;
}

CounterStep CounterReader::good(CounterEvent event, Mark to, Joules increment) {
  const CounterStep step{event, increment, to.at - last_->at, Seconds(0)};
  last_ = to;
  doubt_.reset();
  return step;
}

// A new line: from `from` to `to` it is good, what lies between the last believed read and `from` is lost.
CounterStep CounterReader::rebase(CounterEvent event, Mark from, Mark to) {
  const Seconds lost = from.at - last_->at;
  last_ = from;
  CounterStep step = good(event, to, to.value - from.value);
  step.lost = lost;
  return step;
}

CounterStep CounterReader::read(MonoTime taken, Joules value, Status status) {
  const auto& newest = doubt_ ? doubt_ : last_;
  const bool beyond = options_.modulus > Joules(0) && value > options_.modulus;
  if (beyond || status != Status::ok || !value.finite() || value < Joules(0) || (newest && taken <= newest->at))
    return {};
  const Mark mark{taken, value};
  if (!last_) {
    last_ = mark;
    return {CounterEvent::first, {}, {}, {}};
  }
  // The first read of a value is the nearest to when it came true; a repeat must not shorten the next span.
  if (!doubt_ && value == last_->value) return {CounterEvent::repeat, {}, {}, {}};
  const Seconds span = taken - last_->at;
  if (options_.modulus > Joules(0) && options_.most * span >= options_.modulus) {
    const Seconds lost = span;
    last_ = mark;
    doubt_.reset();
    return {CounterEvent::wrap_ambiguous, {}, {}, lost};
  }
  if (doubt_) return after_doubt(mark);
  if (value < last_->value) {
    doubt_ = mark;
    return {CounterEvent::fall_pending, {}, {}, {}};
  }
  if (plausible(value - last_->value, span)) return good(CounterEvent::advance, mark, value - last_->value);
  doubt_ = mark;
  return {CounterEvent::implausible, {}, {}, {}};
}

CounterStep CounterReader::after_doubt(Mark mark) {
  const Mark doubt = *doubt_;
  const bool back = plausible(mark.value - last_->value, mark.at - last_->at);
  const bool on_new_line = mark.value > doubt.value && plausible(mark.value - doubt.value, mark.at - doubt.at);
  // A dip comes back at once to where the old line leads. After a reset the new line is far below the old value; only a
  // device that drew less before than its new counter already shows could pass for both, and then back wins.
  if (back && mark.value > last_->value) return good(CounterEvent::dip_ignored, mark, mark.value - last_->value);
  if (options_.modulus > Joules(0) && doubt.value < last_->value && mark.value >= doubt.value) {
    const Joules increment = mark.value - last_->value + options_.modulus;
    if (plausible(increment, mark.at - last_->at)) return good(CounterEvent::wrapped, mark, increment);
  }
  if (on_new_line)
    return rebase(doubt.value < last_->value ? CounterEvent::reset : CounterEvent::implausible, doubt, mark);
  if (mark.value == doubt.value) return {CounterEvent::repeat, {}, {}, {}};
  if (mark.value == last_->value) {
    doubt_.reset();
    return {CounterEvent::repeat, {}, {}, {}};
  }
  doubt_ = mark;
  return {mark.value < last_->value ? CounterEvent::fall_pending : CounterEvent::implausible, {}, {}, {}};
}

namespace {

void count(CounterIntegral& sum, CounterEvent event) {
  switch (event) {
    case CounterEvent::first:
      break;
    case CounterEvent::advance:
      ++sum.advances;
      break;
    case CounterEvent::repeat:
      ++sum.repeats;
      break;
    case CounterEvent::wrapped:
      ++sum.wraps;
      break;
    case CounterEvent::wrap_ambiguous:
      ++sum.ambiguous;
      break;
    case CounterEvent::fall_pending:
      break;  // what it was is counted with the next read
    case CounterEvent::dip_ignored:
      ++sum.dips;
      break;
    case CounterEvent::reset:
      ++sum.resets;
      break;
    case CounterEvent::implausible:
      ++sum.implausible;
      break;
    case CounterEvent::unusable:
      ++sum.unusable;
      break;
  }
}

}  // namespace

void add(CounterIntegral& sum, const CounterIntegral& next) {
  sum.energy += next.energy;
  sum.asked += next.asked;
  sum.covered += next.covered;
  sum.advances += next.advances;
  sum.repeats += next.repeats;
  sum.wraps += next.wraps;
  sum.ambiguous += next.ambiguous;
  sum.resets += next.resets;
  sum.dips += next.dips;
  sum.implausible += next.implausible;
  sum.unusable += next.unusable;
  sum.longest_repeat = std::max(sum.longest_repeat, next.longest_repeat);
  sum.gaps.insert(sum.gaps.end(), next.gaps.begin(), next.gaps.end());
}

CounterIntegral integrate_counter(std::span<const Point> counter, const CounterOptions& options,
                                  std::optional<Interval> clip) {
  CounterIntegral sum;
  CounterReader reader(options);
  std::optional<WallTime> first, last, changed;
  WallTime known = clip ? clip->start : WallTime();
  for (const Point& p : counter) {
    const CounterStep step = reader.read(MonoTime(p.at.nanoseconds()), Joules(p.value), p.status);
    count(sum, step.event);
    if (step.event == CounterEvent::unusable) continue;
    if (!first) first = p.at;
    last = p.at;
    if (step.event != CounterEvent::repeat || !changed) changed = p.at;
    sum.longest_repeat = std::max(sum.longest_repeat, p.at - *changed);
    if (!step.has_power()) continue;
    const WallTime begin = p.at - step.span;
    const WallTime from = clip ? std::max(begin, clip->start) : begin;
    const WallTime to = clip ? std::min(p.at, clip->stop) : p.at;
    if (!(from < to)) continue;
    if (clip && from > known) sum.gaps.push_back({known, from});
    known = to;
    sum.energy += step.increment * ((to - from) / step.span);
    sum.covered += to - from;
    sum.power.push_back({p.at, step.power().value(), Status::ok});
  }
  if (clip && known < clip->stop) sum.gaps.push_back({known, clip->stop});
  if (clip)
    sum.asked = std::max(Seconds(0), clip->length());
  else if (first)
    sum.asked = *last - *first;
  return sum;
}

namespace {

// A ratio that is a power of a thousand, to 3 %: one of the two is in another unit.
bool unit_mistake(double ratio) {
  const double decades = std::log10(ratio);
  return std::fabs(decades) > 2.5 && std::fabs(decades - 3 * std::round(decades / 3)) < 0.013;
}

void judge(Divergence& d, const CounterIntegral& c, const Integral& p, double threshold) {
  // Energy that the power says flowed while the counter stood still, at least a minute's worth of the mean.
  const bool stuck = c.longest_repeat > std::max(Seconds(60), p.period * 20) && p.mean_power() > Watts(0);
  d.ratio = d.counter / d.integral;
  if (d.ratio > 0 && unit_mistake(d.ratio)) {
    d.diverges = true;
    d.counts = Believed::neither;
    d.reason = fmt::format(
        "counter and power differ by a factor of {:.0f}: one of them is in another unit (mJ or µJ for "
        "J, mW for W); set its scale",
        d.ratio > 1 ? d.ratio : 1 / d.ratio);
    return;
  }
  d.diverges = std::fabs(d.ratio - 1) > threshold;
  if (!d.diverges) {
    d.reason = fmt::format("counter and integrated power agree to {}", format_percent(std::fabs(d.ratio - 1)));
    return;
  }
  if (stuck || c.advances + c.wraps + c.dips == 0) {
    d.counts = Believed::integral;
    d.reason = fmt::format("the counter stood still for {} while power was {}: it is stuck, integrated power counts",
                           format(c.longest_repeat), format(p.mean_power()));
    return;
  }
  d.counts = Believed::counter;
  d.reason = fmt::format(
      "counter and integrated power differ by {}: sampled power misses what happens between two looks "
      "of the sensor, the counter counts",
      format_percent(std::fabs(d.ratio - 1)));
}

}  // namespace

Divergence compare_energies(const CounterIntegral& c, const Integral& p, double threshold) {
  Divergence d;
  d.counter = c.energy;
  d.integral = p.energy;
  constexpr double kEnough = 0.9;  // of the time, for a comparison of totals to mean anything
  const bool counter_there = c.coverage_fraction() >= kEnough, power_there = p.coverage_fraction() >= kEnough;
  const bool moved = c.advances + c.wraps + c.dips > 0;
  if (!power_there || !(p.energy > Joules(0))) {
    d.counts = counter_there ? Believed::counter : Believed::neither;
    d.reason = fmt::format("power covers only {} of the time: no comparison", format_percent(p.coverage_fraction(), 0));
    return d;
  }
  // A stuck counter covers nothing because it never moves; that is a finding and not a lack of reads.
  if (!counter_there && moved && c.longest_repeat < Seconds(60)) {
    d.counts = Believed::integral;
    d.reason = fmt::format("the counter covers only {} of the time (resets, failed reads): integrated power counts",
                           format_percent(c.coverage_fraction(), 0));
    return d;
  }
  if (c.advances + c.repeats + c.wraps + c.ambiguous + c.resets + c.dips + c.implausible == 0) {
    d.counts = Believed::integral;
    d.reason = "there is no energy counter: integrated power counts";
    return d;
  }
  judge(d, c, p, threshold);
  return d;
}

Divergence compare_counter(std::span<const Point> counter, std::span<const Point> power, const CounterOptions& options,
                           double threshold, std::optional<Interval> clip) {
  const Samples samples = usable_samples(power);
  const Samples reads = usable_samples(counter);
  if (!clip && samples.size() > 1 && reads.size() > 1)
    clip = Interval{std::max(samples.origin, reads.origin),
                    std::min(samples.instant_of(samples.t_s.back()), reads.instant_of(reads.t_s.back()))};
  return compare_energies(integrate_counter(counter, options, clip), integrate_power(samples, clip), threshold);
}

}  // namespace flyball::series
