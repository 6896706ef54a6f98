#include "series/windows.h"

#include <algorithm>
#include <cmath>
#include <deque>

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

// The knots that somebody may still look at, by numbers that stay.
class Steps {
 public:
  explicit Steps(double from) { knots_.push_back({.t = from}); }
  void push(double t, double power, bool measured) {
    Knot& last = knots_.back();
    last.power = measured ? power : 0;
    last.measured = measured ? 1 : 0;
    const double dt = t - last.t;
    knots_.push_back({t, last.energy + last.power * dt, last.covered + last.measured * dt, 0, 0, measured});
  }
  const Knot& operator[](std::uint64_t number) const { return knots_[number - forgotten_]; }
  const Knot& back() const { return knots_.back(); }
  std::uint64_t last() const { return forgotten_ + knots_.size() - 1; }
  /// All before that number.
  void forget(std::uint64_t number) {
    for (; forgotten_ < number && knots_.size() > 1; ++forgotten_) knots_.pop_front();
  }

 private:
  std::deque<Knot> knots_;
  std::uint64_t forgotten_ = 0;
};

// Walks along the steps; instants must not fall.
class Walker {
 public:
  struct Area {
    double energy, covered;
  };
  Area upto(const Steps& steps, double t) {
    while (at_ < steps.last() && steps[at_ + 1].t <= t) ++at_;
    const Knot& knot = steps[at_];
    const double dt = std::max(0.0, t - knot.t);
    return {knot.energy + knot.power * dt, knot.covered + knot.measured * dt};
  }
  std::uint64_t at() const { return at_; }

 private:
  std::uint64_t at_ = 0;
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
    // The first of equals, whatever the rounding of sums.
    if (common.judged++ == 0 || mean > limit_of(common.worst_mean)) worst_ = stop, common.worst_mean = Watts(mean);
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

  Tally result(std::size_t b, WallTime origin) const {
    Tally t = common;
    t.violations = by_budget[b].violations;
    t.violation_time = by_budget[b].violation_time;
    t.over = by_budget[b].over;
    if (t.judged > 0) t.worst_stop = origin + Seconds(worst_);
    return t;
  }

 private:
  // Sums of some 10^13 J are good to 10^-9 of a mean; a mean that equals the budget keeps it.
  static double limit_of(Watts budget) { return budget.value() + 1e-9 * std::max(1.0, std::fabs(budget.value())); }

  double worst_ = 0;
  double lowest_limit_ = INFINITY;
};

// One window in its two ways, as far as the steps reach.
class WindowJudges {
 public:
  WindowJudges(Seconds window, double from, const WindowOptions& options, std::span<const Watts> budgets)
      : window_(window),
        from_(from),
        tumbling_(window.value(), options.min_coverage, budgets),
        sliding_(window.value(), options.min_coverage, budgets) {}

  void follow(const Steps& steps) {
    while (stop_of(next_) <= steps.back().t) tumble(steps);
    const double earliest = from_ - 1e-9 * (1 + tumbling_.width);
    for (; slid_ < steps.last(); ++slid_) {
      const Knot& stop = steps[slid_ + 1];
      const double start = stop.t - sliding_.width;
      if (!stop.ends_sample || start < earliest) continue;
      const auto begin = slider_.upto(steps, start);
      sliding_.window(stop.t, stop.energy - begin.energy, stop.covered - begin.covered, stop.t - steps[slid_].t);
    }
  }
  void end(const Steps& steps, double to) {
    // A rounding error of the last window's end must not lose it.
    const auto count = static_cast<std::uint64_t>((to - from_) / tumbling_.width * (1 + 1e-12) + 1e-9);
    while (next_ <= count) tumble(steps);
  }
  /// Knots before this one are not looked at any more.
  std::uint64_t needs() const { return std::min({tumbler_.at(), slider_.at(), slid_}); }

  Exceedance result(std::size_t b, Watts budget, WallTime origin, Seconds period) const {
    return {window_, budget, tumbling_.result(b, origin), sliding_.result(b, origin), window_ >= period * 0.999};
  }
  /// So many windows are no question but a mistake.
  bool too_many_until(double to) const { return !(to - from_ < 1e12 * window_.value()); }

 private:
  double stop_of(std::uint64_t number) const { return from_ + static_cast<double>(number) * tumbling_.width; }
  void tumble(const Steps& steps) {
    const double stop = stop_of(next_++);
    const auto end = tumbler_.upto(steps, stop);
    tumbling_.window(stop, end.energy - start_.energy, end.covered - start_.covered, tumbling_.width);
    start_ = end;
  }

  Seconds window_;
  double from_;
  Judge tumbling_, sliding_;
  Walker tumbler_, slider_;
  Walker::Area start_{0, 0};
  std::uint64_t next_ = 1;
  std::uint64_t slid_ = 0;
};

}  // namespace

struct ExceedanceMeter::State {
  Seconds period;
  std::vector<Seconds> windows;
  std::vector<Watts> budgets;
  WindowOptions options;
  std::uint64_t samples = 0;
  WallTime origin;
  double last_t = 0, to = INFINITY;
  std::optional<Steps> steps;
  std::vector<WindowJudges> judges;

  void begin(const Samples& piece) {
    origin = piece.origin;
    const auto seconds = [&](WallTime t) { return (t - origin).value(); };
    const double from = options.clip ? seconds(options.clip->start) : piece.t_s.front() - period.value();
    if (options.clip) to = seconds(options.clip->stop);
    steps.emplace(from);
    constexpr std::size_t kMostWindows = 64;
    for (const Seconds window : std::span(windows).first(std::min(windows.size(), kMostWindows)))
      if (window > Seconds(0)) judges.emplace_back(window, from, options, budgets);
    last_t = piece.t_s.front() - period.value();
  }
  void sample(double t, double value) {
    double start = last_t;
    if (t - start > options.gap.longest(period).value()) start = t - period.value();
    last_t = t;
    start = std::max(start, steps->back().t);
    const double end = std::min(t, to);
    if (!(end > start)) return;
    if (start > steps->back().t) steps->push(start, 0, false);
    steps->push(end, value, true);
  }
  void follow() {
    std::erase_if(judges, [&](const WindowJudges& judge) { return judge.too_many_until(steps->back().t); });
    std::uint64_t needed = steps->last();
    for (WindowJudges& judge : judges) {
      judge.follow(*steps);
      needed = std::min(needed, judge.needs());
    }
    steps->forget(needed);
  }
};

ExceedanceMeter::ExceedanceMeter(Seconds period, std::span<const Seconds> windows, std::span<const Watts> budgets,
                                 const WindowOptions& options)
    : state_(std::make_unique<State>()) {
  state_->period = period;
  state_->windows.assign(windows.begin(), windows.end());
  state_->budgets.assign(budgets.begin(), budgets.end());
  state_->options = options;
}

ExceedanceMeter::~ExceedanceMeter() = default;

void ExceedanceMeter::add(const Samples& piece) {
  State& state = *state_;
  if (piece.size() == 0) return;
  if (!state.steps) state.begin(piece);
  const double offset = (piece.origin - state.origin).value();
  constexpr std::size_t kFollowEvery = 4096;
  for (std::size_t i = 0; i < piece.size(); ++i) {
    state.sample(offset + piece.t_s[i], piece.value[i]);
    if (++state.samples % kFollowEvery == 0) state.follow();
  }
  state.follow();
}

std::vector<Exceedance> ExceedanceMeter::result() {
  State& state = *state_;
  std::vector<Exceedance> out;
  if (state.samples < 2) return out;
  const double to = state.options.clip ? state.to : state.last_t;
  if (to > state.steps->back().t) state.steps->push(to, 0, false);
  state.follow();
  for (WindowJudges& judge : state.judges) {
    if (judge.too_many_until(to)) continue;
    judge.end(*state.steps, to);
    for (std::size_t b = 0; b < state.budgets.size(); ++b)
      out.push_back(judge.result(b, state.budgets[b], state.origin, state.period));
  }
  return out;
}

std::vector<Seconds> default_windows() {
  std::vector<Seconds> windows;
  for (double s : {0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0}) windows.emplace_back(s);
  return windows;
}

std::vector<Exceedance> exceedance(const Samples& power, std::span<const Seconds> windows,
                                   std::span<const Watts> budgets, const WindowOptions& options) {
  ExceedanceMeter meter(power.period, windows, budgets, options);
  meter.add(power);
  return meter.result();
}

std::vector<Exceedance> exceedance(std::span<const Point> power, std::span<const Seconds> windows,
                                   std::span<const Watts> budgets, const WindowOptions& options) {
  return exceedance(usable_samples(power), windows, budgets, options);
}

}  // namespace flyball::series
