#include "series/windows.h"

#include <algorithm>
#include <cmath>

namespace flyball::series {
namespace {

// Power as steps: E and C (energy, measured time) at the rising instants t. Between two of them power is constant, or
// nothing was measured.
struct Steps {
  std::vector<double> t, energy, covered;
  std::vector<std::size_t> sample_end;  // place of the end of each sample in t
};

void push(Steps& steps, double t, double power, bool measured) {
  const double dt = t - steps.t.back();
  steps.t.push_back(t);
  steps.energy.push_back(steps.energy.back() + (measured ? power * dt : 0));
  steps.covered.push_back(steps.covered.back() + (measured ? dt : 0));
}

Steps make_steps(const Samples& s, double from, double to, const GapRule& gap) {
  Steps steps;
  const std::size_t most = 2 * s.size() + 2;
  for (auto* v : {&steps.t, &steps.energy, &steps.covered}) v->reserve(most);
  steps.sample_end.reserve(s.size());
  steps.t.push_back(from);
  steps.energy.push_back(0);
  steps.covered.push_back(0);
  const double period = s.period.value();
  const double longest = gap.longest(s.period).value();
  for (std::size_t i = 0; i < s.size(); ++i) {
    double begin = i > 0 ? s.t_s[i - 1] : s.t_s[0] - period;
    if (s.t_s[i] - begin > longest) begin = s.t_s[i] - period;
    begin = std::max(begin, from);
    const double end = std::min(s.t_s[i], to);
    if (!(end > begin)) continue;
    if (begin > steps.t.back()) push(steps, begin, 0, false);
    push(steps, end, s.value[i], true);
    steps.sample_end.push_back(steps.t.size() - 1);
  }
  if (to > steps.t.back()) push(steps, to, 0, false);
  return steps;
}

// Walks along the steps; instants must not fall.
class Walker {
 public:
  explicit Walker(const Steps& steps) : s_(steps) {}
  struct At {
    double energy, covered;
  };
  At at(double t) {
    while (i_ + 1 < s_.t.size() && s_.t[i_ + 1] <= t) ++i_;
    if (i_ + 1 == s_.t.size() || t <= s_.t[i_]) return {s_.energy[i_], s_.covered[i_]};
    const double f = (t - s_.t[i_]) / (s_.t[i_ + 1] - s_.t[i_]);
    return {s_.energy[i_] + f * (s_.energy[i_ + 1] - s_.energy[i_]),
            s_.covered[i_] + f * (s_.covered[i_ + 1] - s_.covered[i_])};
  }

 private:
  const Steps& s_;
  std::size_t i_ = 0;
};

struct Judge {
  double width, need;
  std::span<const Watts> budgets;
  Tally common;  // what does not depend on the budget
  std::vector<Tally> by_budget;

  Judge(double w, double coverage, std::span<const Watts> b)
      : width(w), need(coverage * w * (1 - 1e-9)), budgets(b), by_budget(b.size()) {}

  void window(double stop, double energy, double covered, double weight) {
    if (covered < need || !(covered > 0)) {
      ++common.uncovered;
      return;
    }
    const double mean = energy / covered;
    if (common.judged++ == 0 || mean > common.worst_mean.value()) worst_ = stop, common.worst_mean = Watts(mean);
    common.judged_time += Seconds(weight);
    for (std::size_t b = 0; b < budgets.size(); ++b) {
      const double excess = mean - budgets[b].value();
      // Sums of some 10^13 J are good to 10^-9 of a mean; a mean that equals the budget keeps it.
      if (!(excess > 1e-9 * std::max(1.0, std::fabs(budgets[b].value())))) continue;
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
  double worst_ = 0;
};

void tumble(const Steps& steps, double from, double to, Judge& judge) {
  Walker walker(steps);
  auto start = walker.at(from);
  // A rounding error of the last window's end must not lose it.
  const auto count = static_cast<std::uint64_t>((to - from) / judge.width * (1 + 1e-12) + 1e-9);
  for (std::uint64_t k = 1; k <= count; ++k) {
    const double stop = from + static_cast<double>(k) * judge.width;
    const auto end = walker.at(stop);
    judge.window(stop, end.energy - start.energy, end.covered - start.covered, judge.width);
    start = end;
  }
}

void slide(const Steps& steps, double from, Judge& judge) {
  Walker walker(steps);
  for (std::size_t i : steps.sample_end) {
    const double stop = steps.t[i];
    const double start = stop - judge.width;
    if (start < from - 1e-9 * (1 + judge.width)) continue;
    const auto begin = walker.at(start);
    judge.window(stop, steps.energy[i] - begin.energy, steps.covered[i] - begin.covered, stop - steps.t[i - 1]);
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
