#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "cli/analyze.h"
#include "report/table.h"
#include "series/windows.h"

namespace flyball::cli {
namespace {

Result<std::vector<Watts>> parse_budgets(const std::vector<std::string>& texts) {
  std::vector<Watts> out;
  for (const std::string& text : texts) {
    FLYBALL_ASSIGN(const Watts budget, parse_watts(text));
    out.push_back(budget);
  }
  return out;
}

Result<std::vector<Seconds>> parse_windows(const std::vector<std::string>& texts) {
  if (texts.empty()) return series::default_windows();
  std::vector<Seconds> out;
  for (const std::string& text : texts) {
    FLYBALL_ASSIGN(const Seconds window, parse_seconds(text));
    if (!(window > Seconds(0))) return fail(ErrorCode::input, "a window of " + text + " has no length", "--window");
    out.push_back(window);
  }
  std::sort(out.begin(), out.end());
  return out;
}

report::Json tally_json(const series::Tally& t) {
  report::Json one = report::Json::object();
  one["violation_fraction"] = t.judged > 0 ? report::number(t.violation_fraction()) : report::Json(nullptr);
  one["violations"] = t.violations;
  one["judged"] = t.judged;
  one["uncovered"] = t.uncovered;
  one["over_budget_j"] = report::number(t.over.value());
  one["worst_mean_w"] = t.judged > 0 ? report::number(t.worst_mean.value()) : report::Json(nullptr);
  one["worst_stop"] = t.judged > 0 ? report::time(t.worst_stop) : report::Json(nullptr);
  return one;
}

report::Json run_json(const AnalyzedRun& run, const std::vector<series::Exceedance>& all) {
  report::Json one = report::Json::object();
  one["run"] = run.name.empty() ? report::Json(nullptr) : report::text(run.name);
  one["start"] = report::time(run.interval.start);
  one["stop"] = report::time(run.interval.stop);
  one["meters"] = run.meters.size();
  one["windows"] = report::Json::array();
  for (const series::Exceedance& e : all) {
    report::Json entry = report::Json::object();
    entry["window_s"] = report::number(e.window.value());
    entry["budget_w"] = report::number(e.budget.value());
    entry["resolved"] = e.resolved;
    entry["violation_fraction"] =
        e.tumbling.judged > 0 ? report::number(e.tumbling.violation_fraction()) : report::Json(nullptr);
    entry["tumbling"] = tally_json(e.tumbling);
    entry["sliding"] = tally_json(e.sliding);
    one["windows"].push_back(std::move(entry));
  }
  return one;
}

std::string share(const series::Tally& t) { return t.judged > 0 ? format_percent(t.violation_fraction()) : "–"; }

report::Table run_table(const AnalyzedRun& run, const std::vector<series::Exceedance>& all) {
  using report::Align;
  report::Table table{.caption = "Time over budget, " + title_of(run),
                      .columns = {{"window", Align::right},
                                  {"budget", Align::right},
                                  {"tumbling", Align::right},
                                  {"windows over", Align::right},
                                  {"of", Align::right},
                                  {"not covered", Align::right},
                                  {"sliding", Align::right},
                                  {"energy over", Align::right},
                                  {"worst mean", Align::right}},
                      .rows = {}};
  for (const series::Exceedance& e : all)
    table.rows.push_back({format(e.window) + (e.resolved ? "" : " *"), format(e.budget), share(e.tumbling),
                          std::to_string(e.tumbling.violations), std::to_string(e.tumbling.judged),
                          std::to_string(e.tumbling.uncovered), share(e.sliding), format(e.tumbling.over),
                          format(e.sliding.judged > 0 ? e.sliding.worst_mean : e.tumbling.worst_mean)});
  return table;
}

report::Plot exceedance_plot(const AnalyzedRun& run, const std::vector<series::Exceedance>& all,
                             const std::vector<Watts>& budgets) {
  report::Plot plot;
  plot.title = "Share of time over budget by window, " + title_of(run);
  plot.description = "Sliding windows; longer windows forgive short peaks";
  plot.x = {.label = "window", .unit = "s", .kind = report::AxisKind::logarithmic};
  plot.y = {.label = "time over budget", .unit = "%", .kind = report::AxisKind::linear, .from_zero = true};
  for (Watts budget : budgets) {
    report::PlotLine line;
    line.name = format(budget);
    for (const series::Exceedance& e : all)
      if (e.budget == budget && e.sliding.judged > 0)
        line.points.push_back({e.window.value(), 100 * e.sliding.violation_fraction()});
    plot.lines.push_back(std::move(line));
  }
  return plot;
}

report::Plot power_plot(const AnalyzedRun& run, const PowerLine& total, const std::vector<Watts>& budgets) {
  report::Plot plot;
  plot.title = "Power of " + title_of(run);
  plot.description = "Total power with the budgets";
  plot.x = {.label = "time", .unit = "", .kind = report::AxisKind::utc};
  plot.y = {.label = "power", .unit = "W", .kind = report::AxisKind::linear};
  total.draw(plot);
  for (Watts budget : budgets) plot.rules.push_back({budget.value(), "budget " + format(budget)});
  return plot;
}

}  // namespace

Result<> analyze_windows(const AnalyzeOptions& options, Context& context) {
  FLYBALL_ASSIGN(const std::vector<Watts> budgets, parse_budgets(options.budgets));
  FLYBALL_ASSIGN(const std::vector<Seconds> windows, parse_windows(options.windows));
  FLYBALL_ASSIGN(AnalyzeInput input, read_analyze_input(options, context.files));
  report::Json json = analyze_document("windows", input);
  report::HtmlPage page("Power over budget", "flyball analyze windows");
  std::string text;
  bool all_resolved = true;
  json["runs"] = report::Json::array();
  for (const AnalyzedRun& run : input.runs) {
    series::WindowOptions how;
    how.gap = input.gap;
    if (run.bounded_by_events) how.clip = run.interval;
    std::optional<series::ExceedanceMeter> meter;
    PowerLine line(run);
    FLYBALL_TRY(each_chapter(input, run, [&](const series::Series& chapter) {
      const series::Samples samples = series::usable_samples(chapter.points);
      if (!meter && samples.size() > 1) meter.emplace(samples.period, windows, budgets, how);
      if (meter) meter->add(samples);
      line.add(chapter);
    }));
    const auto all = meter ? meter->result() : std::vector<series::Exceedance>();
    for (const series::Exceedance& e : all) all_resolved = all_resolved && e.resolved;
    json["runs"].push_back(run_json(run, all));
    const report::Table table = run_table(run, all);
    text += report::to_text(table) + "\n";
    page.section(title_of(run))
        .plot(power_plot(run, line, budgets))
        .plot(exceedance_plot(run, all, budgets))
        .table(table);
  }
  const std::string note = "* shorter than the sampling period: the samples' own means, a lower bound of true peaks";
  if (!all_resolved) {
    text += note + "\n";
    page.paragraph(note);
  }
  return give_results(context, options, input, text, json, page);
}

}  // namespace flyball::cli
