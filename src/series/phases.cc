#include "series/phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/stats.h"
#include "base/text.h"
#include "series/envelope.h"

namespace flyball::series {
namespace {

// Samples [first, last) in a row.
struct Stretch {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t size() const { return last - first; }
};

struct View {
  std::string name;
  double sign = 1;            ///< +1: the other level lies below, −1: above
  double own_samples = 0;     ///< how long training itself stays on that side in each step
  std::vector<double> value;  ///< of the samples in the stretches, one after the other
  Separation separation;
};

WallTime begin_of(const Samples& s, std::size_t i) {
  const double before = i == 0 ? s.period.value() : std::min(s.t_s[i] - s.t_s[i - 1], s.period.value());
  return s.instant_of(s.t_s[i] - before);
}

PhaseSpan span_of(const Samples& s, Stretch part, Phase label, double confidence) {
  return {label, begin_of(s, part.first), s.instant_of(s.t_s[part.last - 1]), true, confidence};
}

std::vector<Stretch> runs_where(std::size_t n, const auto& condition) {
  std::vector<Stretch> runs;
  for (std::size_t i = 0; i < n; ++i) {
    if (!condition(i)) continue;
    if (!runs.empty() && runs.back().last == i)
      ++runs.back().last;
    else
      runs.push_back({i, i + 1});
  }
  return runs;
}

// Stretches of rest. Dips that come with every step are part of the step unless they outlast it.
std::vector<Stretch> find_rest(const Samples& s, const StepPeriod& step, const PhaseOptions& o) {
  const double busy = quantile(s.value, 0.9);
  auto low = runs_where(s.size(), [&](std::size_t i) { return s.value[i] < o.rest_fraction * busy; });
  double shortest = std::max(o.min_rest.value(), 2.5 * s.period.value());
  if (step.found && static_cast<double>(low.size()) > 0.5 * s.t_s.back() / step.period.value())
    shortest = std::max(shortest, step.period.value());
  // Work that is shorter than the shortest rest and lies between two rests is none.
  std::vector<Stretch> rest;
  for (const Stretch& r : low) {
    if (!rest.empty() && s.t_s[r.first] - s.t_s[rest.back().last - 1] < shortest)
      rest.back().last = r.last;
    else
      rest.push_back(r);
  }
  // One that a hole or an end of the recording cuts may have been as long as any.
  const double longest_step = o.gap.longest(s.period).value();
  std::erase_if(rest, [&](const Stretch& r) {
    const bool cut = r.first == 0 || r.last == s.size() || s.t_s[r.first] - s.t_s[r.first - 1] > longest_step ||
                     s.t_s[r.last] - s.t_s[r.last - 1] > longest_step;
    return !cut && s.t_s[r.last - 1] - s.t_s[r.first] + s.period.value() < shortest;
  });
  return rest;
}

std::vector<Stretch> work_between(const Samples& s, const std::vector<Stretch>& rest, const GapRule& gap) {
  std::vector<char> resting(s.size(), 0);
  for (const Stretch& r : rest)
    std::fill(resting.begin() + static_cast<std::ptrdiff_t>(r.first),
              resting.begin() + static_cast<std::ptrdiff_t>(r.last), 1);
  std::vector<Stretch> work;
  const double longest = gap.longest(s.period).value();
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (resting[i] != 0) continue;
    if (!work.empty() && work.back().last == i && s.t_s[i] - s.t_s[i - 1] <= longest)
      ++work.back().last;
    else
      work.push_back({i, i + 1});
  }
  return work;
}

// Slow change of level (warming up, clocks) taken out by medians over blocks long against any phase inside the work.
void flatten(std::vector<double>& values, std::size_t block) {
  const std::size_t blocks = values.size() / block;
  if (blocks < 3) return;
  std::vector<double> level;
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t to = b + 1 == blocks ? values.size() : (b + 1) * block;
    level.push_back(median(std::span(values).subspan(b * block, to - b * block)));
  }
  const double overall = median(level);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = std::clamp((static_cast<double>(i) + 0.5) / static_cast<double>(block) - 0.5, 0.0,
                                static_cast<double>(blocks - 1));
    const auto b = std::min(static_cast<std::size_t>(x), blocks - 2);
    values[i] -= level[b] + (x - static_cast<double>(b)) * (level[b + 1] - level[b]) - overall;
  }
}

template <class Filter>
std::vector<double> apply(const Samples& s, const std::vector<Stretch>& work, std::size_t block, Filter filter) {
  std::vector<double> all;
  for (const Stretch& w : work) {
    auto part = filter(std::span(s.value).subspan(w.first, w.size()));
    flatten(part, block);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// What the sampling shows of a step's swing. Point samples of a dip that is shorter than their distance miss it for
// many steps in a row (they beat), and that looks like a phase without dips.
struct Swing {
  double watts = 0;
  double low_samples = 0;  ///< of each step, below the middle of the swing
  double high_samples = 0;
};

Swing swing_of(const Samples& s, const std::vector<Stretch>& work, double step_samples) {
  std::vector<double> all;
  for (const Stretch& w : work)
    all.insert(all.end(), s.value.begin() + static_cast<std::ptrdiff_t>(w.first),
               s.value.begin() + static_cast<std::ptrdiff_t>(w.last));
  if (all.empty()) return {};
  const double low = quantile(all, 0.05), high = quantile(all, 0.95);
  const auto below = std::count_if(all.begin(), all.end(), [&](double v) { return v < (low + high) / 2; });
  const double share = static_cast<double>(below) / static_cast<double>(all.size());
  return {high - low, share * step_samples, (1 - share) * step_samples};
}

View best_view(const Samples& s, const std::vector<Stretch>& work, double step_samples, const PhaseOptions& o) {
  const double dt = s.period.value();
  const Swing swing = swing_of(s, work, step_samples);
  const auto widest = std::max<std::size_t>(2, static_cast<std::size_t>(std::min(step_samples, 256.0)));
  // A block holds some twenty steps, and at least 200 samples for its median.
  const auto block = static_cast<std::size_t>(std::max(200.0, 20 * step_samples));
  View best;
  const auto consider = [&](std::string name, double sign, std::vector<double> value, double least_difference,
                            double own_samples) {
    for (double& v : value) v *= sign;
    const Separation separation = separation_below(value, o.max_minority_fraction);
    if (separation.difference < least_difference || separation.ratio <= best.separation.ratio) return;
    best = {std::move(name), sign, own_samples, std::move(value), separation};
  };
  const std::size_t stride = std::max<std::size_t>(1, widest / 12);
  for (std::size_t w = 2; w <= widest; w += stride) {
    const std::string over = " over " + format(Seconds(static_cast<double>(w) * dt));
    if (swing.high_samples >= 2)
      consider("closing" + over, 1, apply(s, work, block, [&](auto part) { return closing(part, w); }), 0,
               swing.low_samples);
    if (swing.low_samples >= 2)
      consider("opening" + over, -1, apply(s, work, block, [&](auto part) { return opening(part, w); }), 0,
               swing.high_samples);
  }
  // One dip more or less in the mean of a step is the sampling's doing.
  for (double sign : {1.0, -1.0})
    consider("mean over " + format(Seconds(step_samples * dt)), sign,
             apply(s, work, block, [&](auto part) { return moving_mean(part, step_samples); }),
             1.5 * swing.watts / step_samples, 0);
  return best;
}

// Runs beyond the threshold, as sample numbers of the recording. Two that are nearer than one step are one.
std::vector<Stretch> runs_beyond(const View& view, const std::vector<Stretch>& work, double step_samples) {
  std::vector<Stretch> found;
  std::size_t offset = 0;
  for (const Stretch& w : work) {
    for (const Stretch& r :
         runs_where(w.size(), [&](std::size_t i) { return view.value[offset + i] < view.separation.threshold; })) {
      const Stretch run{w.first + r.first, w.first + r.last};
      const bool joins = !found.empty() && found.back().first >= w.first &&
                         static_cast<double>(run.first - found.back().last) < step_samples / 2;
      if (joins)
        found.back().last = run.last;
      else
        found.push_back(run);
    }
    offset += w.size();
  }
  return found;
}

struct Candidate {
  Stretch run;
  double level = 0;
  bool whole = true;        ///< not cut by an end of the recording or by a rest
  std::size_t trimmed = 0;  ///< samples that were taken off its ends
};

constexpr double kTrimmedConfidence = 0.5;

// The dip of a last step may touch an evaluation and lengthen it: what is longer than usual loses its outermost
// samples, the ones farther from its own level first. Only by a little: what is much longer is something else.
void trim(const Samples& s, Candidate& e, std::size_t length) {
  if (static_cast<double>(e.run.size()) > 1.6 * static_cast<double>(length)) return;
  while (e.run.size() > length + 1) {
    const double first = std::fabs(s.value[e.run.first] - e.level), last = std::fabs(s.value[e.run.last - 1] - e.level);
    first > last ? ++e.run.first : --e.run.last;
    ++e.trimmed;
  }
}

// An evaluation repeats the same work: the same level for the same time. What does not is set aside as unknown.
// `doubtful`: excursions too short to be told from a step's own, which speak against all.
void label_events(const Samples& s, std::vector<Candidate>& events, std::size_t doubtful, const View& view,
                  PhaseReport& report) {
  std::vector<double> lengths, levels;
  for (const Candidate& e : events) {
    if (e.whole) lengths.push_back(static_cast<double>(e.run.size()));
    levels.push_back(e.level);
  }
  if (lengths.empty()) {
    report.note = "not identifiable: nothing at another level lasts as long as a step";
    return;
  }
  const double length = median(lengths), level = median(levels);
  const double band = std::fabs(median(view.value) - view.separation.threshold);
  for (Candidate& e : events) trim(s, e, static_cast<std::size_t>(std::lround(length)));
  const auto agrees = [&](const Candidate& e) {
    const double n = static_cast<double>(e.run.size());
    const double room = std::max(2.0, 0.25 * length);
    return std::fabs(e.level - level) <= band && n <= length + room && (!e.whole || n >= length - room);
  };
  const auto count = static_cast<std::size_t>(std::count_if(events.begin(), events.end(), agrees));
  const double share = static_cast<double>(count) / static_cast<double>(events.size() + doubtful);
  report.identifiable = count >= 2 && share >= 0.5;
  const double ratio = report.separation;
  for (const Candidate& e : events) {
    const bool evaluation = report.identifiable && agrees(e);
    // Fewer than four samples in a phase leave its level and its ends in doubt.
    const double seen = std::min(1.0, static_cast<double>(e.run.size()) / 4);
    double confidence = evaluation ? seen * share * ratio / (ratio + 0.25) : 0.3;
    // It was found longer than its kind: at which end the surplus was is a guess, and so are its ends.
    if (evaluation && e.trimmed > 0) confidence = std::min(confidence, kTrimmedConfidence);
    report.spans.push_back(span_of(s, e.run, evaluation ? Phase::evaluation : Phase::unknown, confidence));
  }
  if (!report.identifiable)
    report.note = fmt::format("{} stretches at another level, but not alike in level and length: not identifiable",
                              events.size());
}

void find_levels(const Samples& s, const std::vector<Stretch>& work, const PhaseOptions& o, PhaseReport& report) {
  if (!report.step.found) {
    report.note =
        "not identifiable: without the step's period a phase cannot be told from steps that beat with the "
        "sampling; " +
        report.step.note;
    return;
  }
  const double step_samples = report.step.period / s.period;
  const View view = best_view(s, work, step_samples, o);
  report.separation = view.separation.ratio;
  report.view = view.name;
  if (view.separation.ratio < o.min_separation) {
    report.note = fmt::format(
        "not identifiable: no view removes the step's swing well enough to tell a second level "
        "from training (best separation {:.2f}, needed {:.2f}); sum more nodes or sample faster",
        report.separation, o.min_separation);
    return;
  }
  // Shorter than a step, or than the step's own stay on that side (give or take the sampling), it may be part of one.
  const double shortest = std::max({3.0, o.min_steps * step_samples, view.own_samples + 2});
  std::vector<Candidate> events;
  std::size_t doubtful = 0;
  for (const Stretch& run : runs_beyond(view, work, step_samples)) {
    const bool brief = static_cast<double>(run.size()) < shortest;
    const auto home = std::find_if(work.begin(), work.end(),
                                   [&](const Stretch& w) { return run.first >= w.first && run.last <= w.last; });
    const bool whole = run.first > home->first && run.last < home->last;
    if (brief) {
      doubtful += whole ? 1 : 0;
      continue;
    }
    events.push_back({run, median(std::span(s.value).subspan(run.first, run.size())), whole});
  }
  label_events(s, events, doubtful, view, report);
}

void label_rest(const Samples& s, const std::vector<Stretch>& rest, const PhaseOptions& o, PhaseReport& report) {
  const auto between = [&](const Stretch& r) {
    const PhaseSpan span = span_of(s, r, Phase::checkpoint, 0.5);
    return r.first > 1 && r.last < s.size() && span.stop - span.start <= o.longest_checkpoint;
  };
  std::vector<double> lengths;
  for (const Stretch& r : rest)
    if (between(r)) lengths.push_back(static_cast<double>(r.size()));
  for (const Stretch& r : rest) {
    PhaseSpan span = span_of(s, r, r.first <= 1 ? Phase::startup : Phase::idle, 0.8);
    if (between(r)) {
      // Power alone cannot tell a checkpoint from another stall; coming again at the same length speaks for it.
      const double n = static_cast<double>(r.size());
      const auto alike = std::count_if(lengths.begin(), lengths.end(),
                                       [&](double x) { return std::fabs(x - n) <= std::max(2.0, 0.25 * n); });
      span.label = Phase::checkpoint;
      span.confidence_fraction = alike >= 3 ? 0.8 : 0.5;
    }
    report.spans.push_back(span);
  }
}

// What no other phase claims is training, as far as steps show in it.
void fill_with_training(const Samples& s, const std::vector<Stretch>& work, PhaseReport& report) {
  std::vector<PhaseSpan> claimed = report.spans;
  const auto by_start = [](const PhaseSpan& a, const PhaseSpan& b) { return a.start < b.start; };
  std::sort(claimed.begin(), claimed.end(), by_start);
  const double confidence = report.step.found ? std::min(1.0, 0.5 + report.step.confidence_fraction) : 0.5;
  for (const Stretch& w : work) {
    WallTime from = begin_of(s, w.first);
    const WallTime end = s.instant_of(s.t_s[w.last - 1]);
    for (const PhaseSpan& c : claimed) {
      if (c.stop <= from || c.start >= end) continue;
      if (c.start > from) report.spans.push_back({Phase::training, from, c.start, true, confidence});
      from = c.stop;
    }
    if (from < end) report.spans.push_back({Phase::training, from, end, true, confidence});
  }
  std::sort(report.spans.begin(), report.spans.end(), by_start);
}

// The period again, without the phases that interrupt the steps.
StepPeriod period_of_training(std::span<const Point> power, const PhaseReport& report) {
  std::vector<Point> training;
  std::size_t k = 0;
  for (const Point& p : power) {
    while (k < report.spans.size() && report.spans[k].stop < p.at) ++k;
    const bool inside = k < report.spans.size() && p.at > report.spans[k].start;
    if (!inside || report.spans[k].label == Phase::training) training.push_back(p);
  }
  return find_step_period(usable_samples(training));
}

}  // namespace

PhaseReport find_phases(std::span<const Point> power, const PhaseOptions& options) {
  PhaseReport report;
  const Samples s = usable_samples(power);
  if (s.size() < 20) {
    report.note = fmt::format("{} good samples are too few to look for phases", s.size());
    return report;
  }
  report.step = find_step_period(s, Seconds(300), options.gap);
  const auto rest = find_rest(s, report.step, options);
  const auto work = work_between(s, rest, options.gap);
  find_levels(s, work, options, report);
  label_rest(s, rest, options, report);
  fill_with_training(s, work, report);
  if (report.identifiable || !rest.empty()) {
    StepPeriod again = period_of_training(power, report);
    // A good first estimate is only sharpened; another period altogether would come from the distance of the phases.
    const bool near = !report.step.found || std::fabs(again.period / report.step.period - 1) < 0.1;
    if (again.found && near) report.step = std::move(again);
  }
  return report;
}

std::optional<PhaseEdge> phase_edge(const Event& event) {
  const auto cut = event.kind.rfind('_');
  if (cut == std::string::npos) return {};
  const std::string name = event.kind.substr(0, cut);
  const bool starts = event.kind.ends_with("_start");
  if (!starts && !event.kind.ends_with("_stop")) return {};
  if (name == "eval") return PhaseEdge{Phase::evaluation, starts};
  if (name == "init") return PhaseEdge{Phase::startup, starts};
  const auto phase = parse_phase(name);
  if (!phase || *phase == Phase::unknown) return {};
  return PhaseEdge{*phase, starts};
}

std::vector<PhaseSpan> phases_from_events(std::span<const Event> events) {
  std::vector<PhaseSpan> spans;
  std::map<std::pair<std::string, Phase>, WallTime> open;
  for (const Event& e : events) {
    const auto edge = phase_edge(e);
    if (!edge) continue;
    const std::pair key{e.run, edge->phase};
    if (edge->starts) {
      open[key] = e.at;
    } else if (const auto start = open.find(key); start != open.end()) {
      spans.push_back({edge->phase, start->second, e.at, false, 1});
      open.erase(start);
    }
  }
  return spans;
}

}  // namespace flyball::series
