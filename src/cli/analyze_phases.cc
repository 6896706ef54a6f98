#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/stats.h"
#include "base/text.h"
#include "cli/analyze.h"
#include "report/table.h"
#include "series/integrate.h"
#include "series/phases.h"

namespace flyball::cli {
namespace {

/// How the found evaluations compare with those that the job told.
struct Check {
  std::size_t told = 0, found = 0, matched = 0;
  double worst_boundary_s = 0;
};

constexpr double kTolerance = 4;  // s: two samples of the loggers in use

std::optional<Check> check_evaluations(const AnalyzedRun& run, const series::PhaseReport& found,
                                       WallTime recorded_stop) {
  Check check;
  std::vector<PhaseSpan> told;
  for (const PhaseSpan& span : series::phases_from_events(run.events))
    if (span.label == Phase::evaluation) told.push_back(span);
  if (told.empty()) return {};
  check.told = told.size();
  std::vector<char> taken(told.size(), 0);
  for (const PhaseSpan& span : found.spans) {
    if (span.label != Phase::evaluation) continue;
    ++check.found;
    for (std::size_t k = 0; k < told.size(); ++k) {
      const double a = std::fabs((span.start - told[k].start).value());
      const double b = std::fabs((span.stop - std::min(told[k].stop, recorded_stop)).value());
      if (taken[k] != 0 || a > kTolerance || b > kTolerance) continue;
      taken[k] = 1;
      ++check.matched;
      check.worst_boundary_s = std::max({check.worst_boundary_s, a, b});
      break;
    }
  }
  return check;
}

/// What was measured in one phase.
struct Figures {
  Joules energy;
  Seconds measured;
  Watts mean_power() const { return measured > Seconds(0) ? energy / measured : Watts(0); }
};

double coverage(Seconds measured, Seconds time) { return time > Seconds(0) ? std::min(1.0, measured / time) : 0; }

/// The phases of all chapters, and the figures of each.
struct Phases {
  series::PhaseReport found;
  std::vector<Figures> figures;  ///< one for each span
  std::size_t chapters = 0, identifiable = 0;
  std::vector<double> step_s;

  void add(const series::Series& chapter, const series::GapRule& gap) {
    series::PhaseOptions how;
    how.gap = gap;
    series::PhaseReport report = series::find_phases(chapter.points, how);
    const series::Samples samples = series::usable_samples(chapter.points);
    for (const PhaseSpan& span : report.spans) {
      const series::Integral sum = series::integrate_power(samples, series::Interval{span.start, span.stop}, gap);
      const Figures figures_of_span{sum.energy, sum.covered + sum.bridged + sum.edges};
      if (joins(report, span, samples.period)) {
        found.spans.back().stop = span.stop;
        found.spans.back().confidence_fraction =
            std::min(found.spans.back().confidence_fraction, span.confidence_fraction);
        figures.back().energy += figures_of_span.energy;
        figures.back().measured += figures_of_span.measured;
        continue;
      }
      found.spans.push_back(span);
      figures.push_back(figures_of_span);
    }
    if (report.step.found) step_s.push_back(report.step.period.value());
    if (report.identifiable && identifiable++ == 0) {
      found.separation = report.separation;
      found.view = report.view;
    } else if (report.identifiable) {
      found.separation = std::min(found.separation, report.separation);
    }
    if (chapters++ == 0 || report.identifiable) {
      if (!found.identifiable) found.note = report.note, found.separation = report.separation, found.view = report.view;
      found.identifiable = found.identifiable || report.identifiable;
    }
    if (report.step.found && !found.step.found) found.step = report.step;
  }
  /// A phase goes on across the seam of two chapters.
  bool joins(const series::PhaseReport& report, const PhaseSpan& span, Seconds period) const {
    if (found.spans.empty() || &span != &report.spans.front()) return false;
    const PhaseSpan& last = found.spans.back();
    return last.label == span.label && span.start - last.stop <= period * 2;
  }
  void end() {
    if (step_s.size() > 1) found.step.period = Seconds(median(step_s));
    if (chapters > 1) {
      found.note = fmt::format("{}{}looked at in {} chapters, of which {} show a second level", found.note,
                               found.note.empty() ? "" : "; ", chapters, identifiable);
    }
  }
};

report::Json phase_json(const PhaseSpan& span, const Figures& figures) {
  report::Json one = report::Json::object();
  one["label"] = std::string(to_string(span.label));
  one["start"] = report::time(span.start);
  one["stop"] = report::time(span.stop);
  one["duration_s"] = report::number((span.stop - span.start).value());
  one["mean_power_w"] = report::number(figures.mean_power().value());
  one["energy_j"] = report::number(figures.energy.value());
  one["coverage_fraction"] = report::number(coverage(figures.measured, span.stop - span.start));
  one["inferred"] = span.inferred;
  one["confidence_fraction"] = report::number(span.confidence_fraction);
  return one;
}

report::Json run_json(const AnalyzedRun& run, const Phases& phases, const std::optional<Check>& check) {
  constexpr std::size_t kMostListed = 10'000;
  const series::PhaseReport& found = phases.found;
  report::Json one = report::Json::object();
  one["run"] = run.name.empty() ? report::Json(nullptr) : report::text(run.name);
  one["meters"] = run.meters.size();
  one["identifiable"] = found.identifiable;
  one["separation"] = report::number(found.separation);
  one["view"] = found.view.empty() ? report::Json(nullptr) : report::text(found.view);
  one["step_period_s"] = found.step.found ? report::number(found.step.period.value()) : report::Json(nullptr);
  one["note"] = found.note.empty() ? report::Json(nullptr) : report::text(found.note);
  one["phases"] = report::Json::array();
  for (std::size_t i = 0; i < std::min(kMostListed, found.spans.size()); ++i)
    one["phases"].push_back(phase_json(found.spans[i], phases.figures[i]));
  one["phases_left_out"] = found.spans.size() - one["phases"].size();
  one["told"] = nullptr;
  if (check) {
    report::Json told = report::Json::object();
    told["evaluations"] = check->told;
    told["found"] = check->found;
    told["matched"] = check->matched;
    told["false"] = check->found - check->matched;
    told["tolerance_s"] = kTolerance;
    told["worst_boundary_s"] = report::number(check->worst_boundary_s);
    one["told"] = std::move(told);
  }
  return one;
}

report::Table phase_table(const AnalyzedRun& run, const Phases& phases) {
  struct Sum {
    std::size_t count = 0;
    Seconds time;
    Figures figures;
    double least_confidence = 1;
  };
  std::map<Phase, Sum> sums;
  for (std::size_t i = 0; i < phases.found.spans.size(); ++i) {
    const PhaseSpan& span = phases.found.spans[i];
    Sum& sum = sums[span.label];
    ++sum.count;
    sum.time += span.stop - span.start;
    sum.figures.energy += phases.figures[i].energy;
    sum.figures.measured += phases.figures[i].measured;
    sum.least_confidence = std::min(sum.least_confidence, span.confidence_fraction);
  }
  using report::Align;
  report::Table table{.caption = "Phases of " + title_of(run),
                      .columns = {{"phase", Align::left},
                                  {"spans", Align::right},
                                  {"time", Align::right},
                                  {"measured", Align::right},
                                  {"mean power", Align::right},
                                  {"energy measured", Align::right},
                                  {"least confidence", Align::right}},
                      .rows = {}};
  for (const auto& [label, sum] : sums)
    table.rows.push_back({std::string(to_string(label)), std::to_string(sum.count), format(sum.time),
                          format_percent(coverage(sum.figures.measured, sum.time), 1),
                          sum.figures.measured > Seconds(0) ? format(sum.figures.mean_power()) : "–",
                          format(sum.figures.energy), format_percent(sum.least_confidence, 0)});
  return table;
}

std::string remarks(const series::PhaseReport& found, const std::optional<Check>& check) {
  std::string text;
  if (found.step.found) text += fmt::format("A step takes {}. ", format(found.step.period));
  if (found.identifiable)
    text += fmt::format("Evaluations stand apart in the {} by {:.1f} times training's own spread. ", found.view,
                        found.separation);
  if (!found.note.empty()) text += "Evaluations: " + found.note + ". ";
  if (check)
    text += fmt::format("The job told {} evaluations; {} found, {} of them within {:.0f} s (worst boundary {:.1f} s). ",
                        check->told, check->found, check->matched, kTolerance, check->worst_boundary_s);
  return text;
}

report::Plot phase_plot(const AnalyzedRun& run, const PowerLine& total, const series::PhaseReport& found,
                        const std::vector<Watts>& budgets) {
  report::Plot plot;
  plot.title = "Power and phases of " + title_of(run);
  plot.description = "Phases as found in the power itself";
  plot.x = {.label = "time", .unit = "", .kind = report::AxisKind::utc};
  plot.y = {.label = "power", .unit = "W", .kind = report::AxisKind::linear};
  total.draw(plot);
  plot.spans = report::spans_of(found.spans);
  for (Watts budget : budgets) plot.rules.push_back({budget.value(), "budget " + format(budget)});
  return plot;
}

}  // namespace

Result<> analyze_phases(const AnalyzeOptions& options, Context& context) {
  std::vector<Watts> budgets;
  for (const std::string& text : options.budgets) {
    FLYBALL_ASSIGN(const Watts budget, parse_watts(text));
    budgets.push_back(budget);
  }
  FLYBALL_ASSIGN(AnalyzeInput input, read_analyze_input(options, context.files));
  report::Json json = analyze_document("phases", input);
  report::HtmlPage page("Phases", "flyball analyze phases");
  std::string text;
  json["runs"] = report::Json::array();
  for (const AnalyzedRun& run : input.runs) {
    Phases phases;
    PowerLine line(run);
    FLYBALL_TRY(each_chapter(input, run, [&](const series::Series& chapter) {
      phases.add(chapter, input.gap);
      line.add(chapter);
    }));
    phases.end();
    const series::PhaseReport& found = phases.found;
    const auto check = check_evaluations(run, found, run.recorded.stop);
    json["runs"].push_back(run_json(run, phases, check));
    const report::Table table = phase_table(run, phases);
    text += report::to_text(table) + remarks(found, check) + "\n\n";
    page.section(title_of(run))
        .plot(phase_plot(run, line, found, budgets))
        .table(table)
        .paragraph(remarks(found, check));
  }
  return give_results(context, options, input, text, json, page);
}

}  // namespace flyball::cli
