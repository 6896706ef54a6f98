#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

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

WallTime recorded_until(const AnalyzedRun& run) {
  WallTime last;
  for (const series::Series& s : run.meters)
    if (!s.points.empty()) last = std::max(last, s.points.back().at);
  return last;
}

report::Json phase_json(const PhaseSpan& span, const series::Samples& samples, const series::GapRule& gap) {
  const series::Integral sum = series::integrate_power(samples, series::Interval{span.start, span.stop}, gap);
  report::Json one = report::Json::object();
  one["label"] = std::string(to_string(span.label));
  one["start"] = report::time(span.start);
  one["stop"] = report::time(span.stop);
  one["duration_s"] = report::number((span.stop - span.start).value());
  one["mean_power_w"] = report::number(sum.mean_power().value());
  one["energy_j"] = report::number(sum.energy.value());
  one["inferred"] = span.inferred;
  one["confidence_fraction"] = report::number(span.confidence_fraction);
  return one;
}

report::Json run_json(const AnalyzedRun& run, const series::PhaseReport& found, const series::Samples& samples,
                      const series::GapRule& gap, const std::optional<Check>& check) {
  report::Json one = report::Json::object();
  one["run"] = run.name.empty() ? report::Json(nullptr) : report::text(run.name);
  one["meters"] = run.meters.size();
  one["identifiable"] = found.identifiable;
  one["separation"] = report::number(found.separation);
  one["view"] = found.view.empty() ? report::Json(nullptr) : report::text(found.view);
  one["step_period_s"] = found.step.found ? report::number(found.step.period.value()) : report::Json(nullptr);
  one["note"] = found.note.empty() ? report::Json(nullptr) : report::text(found.note);
  one["phases"] = report::Json::array();
  for (const PhaseSpan& span : found.spans) one["phases"].push_back(phase_json(span, samples, gap));
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

report::Table phase_table(const AnalyzedRun& run, const series::PhaseReport& found, const series::Samples& samples,
                          const series::GapRule& gap) {
  struct Sum {
    std::size_t count = 0;
    Seconds time;
    Seconds measured;
    Joules energy;
    double least_confidence = 1;
  };
  std::map<Phase, Sum> sums;
  for (const PhaseSpan& span : found.spans) {
    Sum& sum = sums[span.label];
    ++sum.count;
    sum.time += span.stop - span.start;
    const series::Integral part = series::integrate_power(samples, series::Interval{span.start, span.stop}, gap);
    sum.energy += part.energy;
    sum.measured += part.covered + part.edges;
    sum.least_confidence = std::min(sum.least_confidence, span.confidence_fraction);
  }
  using report::Align;
  report::Table table{.caption = "Phases of " + title_of(run),
                      .columns = {{"phase", Align::left},
                                  {"spans", Align::right},
                                  {"time", Align::right},
                                  {"mean power", Align::right},
                                  {"energy", Align::right},
                                  {"least confidence", Align::right}},
                      .rows = {}};
  for (const auto& [label, sum] : sums)
    table.rows.push_back({std::string(to_string(label)), std::to_string(sum.count), format(sum.time),
                          sum.measured > Seconds(0) ? format(sum.energy / sum.measured) : "–", format(sum.energy),
                          format_percent(sum.least_confidence, 0)});
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

report::Plot phase_plot(const AnalyzedRun& run, const series::Series& total, const series::PhaseReport& found,
                        const std::vector<Watts>& budgets) {
  report::Plot plot;
  plot.title = "Power and phases of " + title_of(run);
  plot.description = "Phases as found in the power itself";
  plot.x = {.label = "time", .unit = "", .kind = report::AxisKind::utc};
  plot.y = {.label = "power", .unit = "W", .kind = report::AxisKind::linear};
  plot.lines.push_back(report::line_of(total, "total"));
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
    const series::Series total = total_power(run, input.extra, input.gap);
    series::PhaseOptions how;
    how.gap = input.gap;
    const series::PhaseReport found = series::find_phases(total.points, how);
    const auto check = check_evaluations(run, found, recorded_until(run));
    const series::Samples samples = series::usable_samples(total.points);
    json["runs"].push_back(run_json(run, found, samples, input.gap, check));
    const report::Table table = phase_table(run, found, samples, input.gap);
    text += report::to_text(table) + remarks(found, check) + "\n\n";
    page.section(title_of(run))
        .plot(phase_plot(run, total, found, budgets))
        .table(table)
        .paragraph(remarks(found, check));
  }
  return give_results(context, options, input, text, json, page);
}

}  // namespace flyball::cli
