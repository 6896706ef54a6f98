#include "series/integrate.h"

#include <algorithm>
#include <cmath>

namespace flyball::series {
namespace {

// Adds the part of the straight line from (t0, p0) to (t1, p1) that lies inside [from, to].
void add_piece(Integral& sum, double t0, double p0, double t1, double p1, double from, double to, bool hole,
               bool bridge) {
  const double a = std::max(t0, from);
  const double b = std::min(t1, to);
  if (!(b > a)) return;
  if (hole) {
    ++sum.holes;
    sum.begins_in_hole = sum.begins_in_hole || t0 < from;
    sum.ends_in_hole = t1 > to;
    sum.longest_hole = std::max(sum.longest_hole, Seconds(t1 - t0));
    if (!bridge) return;
  }
  const double slope = (p1 - p0) / (t1 - t0);
  const double middle = p0 + slope * ((a + b) / 2 - t0);
  sum.energy += Watts(middle) * Seconds(b - a);
  (hole ? sum.bridged : sum.covered) += Seconds(b - a);
}

// Time between a clip and the nearest point, if that point's own period reaches the clip.
void add_edge(Integral& sum, double distance, double value, double period) {
  if (!(distance > 0)) return;
  const double held = std::min(distance, period);
  sum.energy += Watts(value) * Seconds(held);
  sum.edges += Seconds(held);
}

}  // namespace

Integral& Integral::operator+=(const Integral& next) {
  begins_in_hole = asked > Seconds(0) ? begins_in_hole : next.begins_in_hole;
  holes += next.holes - (ends_in_hole && next.begins_in_hole ? 1 : 0);
  ends_in_hole = next.ends_in_hole;
  longest_hole = std::max(longest_hole, next.longest_hole);
  energy += next.energy;
  asked += next.asked;
  covered += next.covered;
  bridged += next.bridged;
  edges += next.edges;
  period = std::max(period, next.period);
  used += next.used;
  return *this;
}

Integral integrate_power(const Samples& s, std::optional<Interval> clip, const GapRule& rule) {
  Integral sum;
  sum.skipped = s.skipped;
  sum.period = s.period;
  if (clip) sum.asked = std::max(Seconds(0), clip->length());
  if (s.size() == 0) return sum;
  if (!clip) sum.asked = Seconds(s.t_s.back());
  const double from = clip ? s.seconds_of(clip->start) : 0;
  const double to = clip ? s.seconds_of(clip->stop) : s.t_s.back();
  const double longest = rule.longest(s.period).value();
  const auto begin = std::upper_bound(s.t_s.begin(), s.t_s.end(), from) - s.t_s.begin();
  for (auto i = static_cast<std::size_t>(std::max<std::ptrdiff_t>(begin - 1, 0)); i + 1 < s.size() && s.t_s[i] < to;
       ++i) {
    const bool hole = s.t_s[i + 1] - s.t_s[i] > longest;
    add_piece(sum, s.t_s[i], s.value[i], s.t_s[i + 1], s.value[i + 1], from, to, hole, rule.bridge);
  }
  for (double t : s.t_s) sum.used += t >= from && t <= to ? 1 : 0;
  if (clip && from < to) {
    if (s.t_s.front() < to) add_edge(sum, s.t_s.front() - from, s.value.front(), s.period.value());
    if (s.t_s.back() > from) add_edge(sum, to - s.t_s.back(), s.value.back(), s.period.value());
  }
  return sum;
}

Integral integrate_power(std::span<const Point> power, std::optional<Interval> clip, const GapRule& rule) {
  return integrate_power(usable_samples(power), clip, rule);
}

void PowerIntegrator::add(const Point& point) {
  if (point.status != Status::ok || !std::isfinite(point.value)) {
    ++state_.sum.skipped.not_ok;
    return;
  }
  const auto& last = state_.last;
  if (last && point.at <= last->at) {
    ++(point.at == last->at ? state_.sum.skipped.duplicate : state_.sum.skipped.disordered);
    return;
  }
  if (pending_ && point.at == pending_->at) {
    ++state_.sum.skipped.duplicate;
    return;
  }
  if (pending_ && point.at < pending_->at) {
    // Which of the two stamps is wrong? The one farther from where the next was expected.
    ++state_.sum.skipped.disordered;
    const bool keep_new =
        !last || point.at - last->at <= rule_.longest(period_) || pending_->at - last->at > rule_.longest(period_);
    if (keep_new) pending_ = point;
    return;
  }
  if (pending_) accept(state_, *pending_);
  pending_ = point;
}

void PowerIntegrator::accept(State& state, const Point& point) const {
  const WallTime origin = clip_ ? clip_->start : (state.first ? state.first->at : point.at);
  const auto seconds = [&](WallTime t) { return (t - origin).value(); };
  const double to = clip_ ? clip_->length().value() : seconds(point.at);
  if (!state.first) state.first = point;
  if (state.last) {
    const bool hole = point.at - state.last->at > rule_.longest(period_);
    add_piece(state.sum, seconds(state.last->at), state.last->value, seconds(point.at), point.value, 0, to, hole,
              rule_.bridge);
  }
  if (!clip_ || (point.at >= clip_->start && point.at <= clip_->stop)) ++state.sum.used;
  state.last = point;
}

Integral PowerIntegrator::result() const {
  State done = state_;
  if (pending_) accept(done, *pending_);
  Integral& sum = done.sum;
  sum.period = period_;
  if (clip_) sum.asked = std::max(Seconds(0), clip_->length());
  if (!done.first) return sum;
  if (!clip_) {
    sum.asked = done.last->at - done.first->at;
  } else if (clip_->start < clip_->stop) {
    if (done.first->at < clip_->stop)
      add_edge(sum, (done.first->at - clip_->start).value(), done.first->value, period_.value());
    if (done.last->at > clip_->start)
      add_edge(sum, (clip_->stop - done.last->at).value(), done.last->value, period_.value());
  }
  return sum;
}

Cumulative::Cumulative(const Samples& power, const GapRule& rule)
    : samples_(power), longest_s_(rule.bridge ? INFINITY : rule.longest(power.period).value()) {
  area_.resize(power.size());
  for (std::size_t i = 1; i < power.size(); ++i) {
    const double dt = power.t_s[i] - power.t_s[i - 1];
    area_[i] = area_[i - 1];
    if (dt > longest_s_) continue;
    area_[i].energy_j += dt * (power.value[i] + power.value[i - 1]) / 2;
    area_[i].covered_s += dt;
  }
}

Cumulative::Area Cumulative::upto(double t_s, std::size_t& hint) const {
  const auto& t = samples_.t_s;
  if (t.empty() || t_s <= t.front()) return {};
  if (t_s >= t.back()) return area_.back();
  if (hint >= t.size() || t[hint] > t_s) hint = 0;
  if (hint + 1 < t.size() && t[hint + 1] <= t_s) {
    // Near steps are walked, far ones searched.
    std::size_t steps = 0;
    while (t[hint + 1] <= t_s && ++steps < 16) ++hint;
    if (t[hint + 1] <= t_s) hint = static_cast<std::size_t>(std::upper_bound(t.begin(), t.end(), t_s) - t.begin()) - 1;
  }
  Area a = area_[hint];
  const double dt = t[hint + 1] - t[hint];
  if (dt > longest_s_) return a;
  const double x = t_s - t[hint];
  const double p0 = samples_.value[hint];
  const double slope = (samples_.value[hint + 1] - p0) / dt;
  a.energy_j += x * (p0 + slope * x / 2);
  a.covered_s += x;
  return a;
}

Cumulative::Area Cumulative::between(double from_s, double to_s, std::size_t& hint) const {
  const Area a = upto(from_s, hint);
  std::size_t ahead = hint;
  const Area b = upto(to_s, ahead);
  return {b.energy_j - a.energy_j, b.covered_s - a.covered_s};
}

}  // namespace flyball::series
