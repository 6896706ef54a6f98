#include "series/windows.h"

#include <algorithm>
#include <cmath>

namespace flyball::series {
namespace {

// Power as steps: between the instant of a knot and the next, power is constant, or nothing was measured.
struct Knot {
  double t = 0;
  double energy = 0;    // up to t
  double covered = 0;   // measured time up to t
  double power = 0;     // from t on
  double measured = 0;  // from t on: 1 or 0
  bool ends_sample = false;
};

using Steps = std::vector<Knot>;

void push(Steps& steps, double t, double power, bool measured) {
  Knot& last = steps.back();
  last.power = measured ? power : 0;
  last.measured = measured ? 1 : 0;
  const double dt = t - last.t;
  steps.push_back({t, last.energy + last.power * dt, last.covered + last.measured * dt, 0, 0, measured});
}

Steps make_steps(const Samples& s, double from, double to, const GapRule& gap) {
  Steps steps;
  steps.reserve(2 * s.size() + 2);
  steps.push_back({.t = from});
  const double period = s.period.value();
  const double longest = gap.longest(s.period).value();
  for (std::size_t i = 0; i < s.size(); ++i) {
    double begin = i > 0 ? s.t_s[i - 1] : s.t_s[0] - period;
    if (s.t_s[i] - begin > longest) begin = s.t_s[i] - period;
    begin = std::max(begin, from);
    const double end = std::min(s.t_s[i], to);
    if (!(end > begin)) continue;
    if (begin > steps.back().t) push(steps, begin, 0, false);
    push(steps, end, s.value[i], true);
  }
  if (to > steps.back().t) push(steps, to, 0, false);
  return steps;
}

// Walks along the steps; instants must not fall.
class Walker {
 public:
  explicit Walker(const Steps& steps) : at_(steps.data()), last_(steps.data() + steps.size() - 1) {}
  struct Area {
    double energy, covered;
  };
  Area upto(double t) {
    while (at_ < last_ && at_[1].t <= t) ++at_;
    const double dt = std::max(0.0, t - at_->t);
    return {at_->energy + at_->power * dt, at_->covered + at_->measured * dt};
  }

 private:
  const Knot* at_;
  const Knot* last_;
};

struct Judge {
  double width, need;
  std::span<const Watts> budgets;
  Tally common;  // what does not depend on the budget
  std::vector<Tally> by_budget;

  Judge(double w, double coverage, std::span<const Watts> b)
      : width(w), need(coverage * w * (1 - 1e-9)), budgets(b), by_budget(b.size()) {
    for (Watts budget : budgets) lowest_limit_ = std::min(lowest_limit_, limit_of(budget));
  }

  void window(double stop, double energy, double covered, double weight) {
    if (covered < need || !(covered > 0)) {
      ++common.uncovered;
      return;
    }
    const double mean = energy / covered;
    if (common.judged++ == 0 || mean > common.worst_mean.value()) worst_ = stop, common.worst_mean = Watts(mean);
    common.judged_time += Seconds(weight);
    if (!(mean > lowest_limit_)) return;
    for (std::size_t b = 0; b < budgets.size(); ++b) {
      if (!(mean > limit_of(budgets[b]))) continue;
      const double excess = mean - budgets[b].value();
      ++by_budget[b].violations;
      by_budget[b].violation_time += Seconds(weight);
      by_budget[b].over += Joules(excess * weight);
    }
  }

  Tally result(std::size_t b, const Samples& s) const {
    Tally t = common;
    t.violations = by_budget[b].violations;
    t.violation_time = by_budget[b].violation_time;
    t.over = by_budget[b].over;
    if (t.judged > 0) t.worst_stop = s.instant_of(worst_);
    return t;
  }

 private:
  // Sums of some 10^13 J are good to 10^-9 of a mean; a mean that equals the budget keeps it.
  static double limit_of(Watts budget) { return budget.value() + 1e-9 * std::max(1.0, std::fabs(budget.value())); }

  double worst_ = 0;
  double lowest_limit_ = INFINITY;
};

void tumble(const Steps& steps, double from, double to, Judge& judge) {
  Walker walker(steps);
  auto start = walker.upto(from);
  // A rounding error of the last window's end must not lose it.
  const auto count = static_cast<std::uint64_t>((to - from) / judge.width * (1 + 1e-12) + 1e-9);
  for (std::uint64_t k = 1; k <= count; ++k) {
    const double stop = from + static_cast<double>(k) * judge.width;
    const auto end = walker.upto(stop);
    judge.window(stop, end.energy - start.energy, end.covered - start.covered, judge.width);
    start = end;
  }
}

void slide(const Steps& steps, double from, Judge& judge) {
  Walker walker(steps);
  const double earliest = from - 1e-9 * (1 + judge.width);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const Knot& stop = steps[i];
    const double start = stop.t - judge.width;
    if (!stop.ends_sample || start < earliest) continue;
    const auto begin = walker.upto(start);
    judge.window(stop.t, stop.energy - begin.energy, stop.covered - begin.covered, stop.t - steps[i - 1].t);
  }
}

}  // namespace

std::vector<Seconds> default_windows() {
  std::vector<Seconds> windows;
  for (double s : {0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0}) windows.emplace_back(s);
  return windows;
}

std::vector<Exceedance> exceedance(const Samples& s, std::span<const Seconds> windows, std::span<const Watts> budgets,
                                   const WindowOptions& options) {
  std::vector<Exceedance> out;
  if (s.size() < 2) return out;
  const double from = options.clip ? s.seconds_of(options.clip->start) : s.t_s.front() - s.period.value();
  const double to = options.clip ? s.seconds_of(options.clip->stop) : s.t_s.back();
  const Steps steps = make_steps(s, from, to, options.gap);
  constexpr std::size_t kMostWindows = 64;
  for (Seconds window : windows.first(std::min(windows.size(), kMostWindows))) {
    if (!(window > Seconds(0)) || !(to - from < 1e12 * window.value())) continue;
    Judge tumbling(window.value(), options.min_coverage, budgets), sliding = tumbling;
    tumble(steps, from, to, tumbling);
    slide(steps, from, sliding);
    for (std::size_t b = 0; b < budgets.size(); ++b)
      out.push_back({window, budgets[b], tumbling.result(b, s), sliding.result(b, s), window >= s.period * 0.999});
  }
  return out;
}

std::vector<Exceedance> exceedance(std::span<const Point> power, std::span<const Seconds> windows,
                                   std::span<const Watts> budgets, const WindowOptions& options) {
  return exceedance(usable_samples(power), windows, budgets, options);
}

}  // namespace flyball::series
