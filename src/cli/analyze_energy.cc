#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/analyze.h"
#include "report/account_view.h"
#include "report/table.h"
#include "series/integrate.h"

namespace flyball::cli {
namespace {

struct RunEnergy {
  Account total;  ///< meters and the declared extra
  Account metered;
  Joules extra;
  Seconds bridged;
  std::uint64_t holes = 0;
  series::Skipped skipped;
};

void add(series::Skipped& sum, const series::Skipped& more) {
  sum.not_ok += more.not_ok;
  sum.duplicate += more.duplicate;
  sum.disordered += more.disordered;
}

/// One meter, chapter by chapter; the power at the seams is interpolated, so that chapters add up to the whole.
Result<Account> meter_account(const AnalyzedRun& run, const AnalyzeInput& input, const Meter& meter, RunEnergy& out) {
  Account sum;
  Seconds covered;
  series::AccountOptions options;
  options.scope = input.scope;
  options.signal = std::string(to_string(meter.signal));
  if (meter.counter) options.signal = "power from its energy counter";
  options.gap = input.gap;
  for (const series::Interval& chapter : chapters_of(run, run.interval)) {
    FLYBALL_ASSIGN(const auto points, load_meter(input, meter, chapter));
    const series::Samples samples = series::usable_samples(points);
    FLYBALL_ASSIGN(const Account part, series::account_power(samples, chapter, input.tariff, options));
    sum.energy += part.energy;
    sum.cost += part.cost;
    sum.carbon_g += part.carbon_g;
    sum.duration += part.duration;
    covered += part.duration * part.coverage_fraction;
    sum.scope = part.scope;
    sum.method = part.method;
    const series::Integral detail = series::integrate_power(samples, chapter, input.gap);
    out.holes += detail.holes;
    out.bridged += detail.bridged;
    add(out.skipped, detail.skipped);
  }
  out.skipped.not_ok += meter.not_ok;
  sum.coverage_fraction = sum.duration > Seconds(0) ? std::min(1.0, covered / sum.duration) : 0;
  return sum;
}

Result<RunEnergy> energy_of(const AnalyzedRun& run, const AnalyzeInput& input) {
  RunEnergy out;
  std::vector<Account> parts;
  for (const Meter& meter : run.meters) {
    FLYBALL_ASSIGN(const Account part, meter_account(run, input, meter, out));
    parts.push_back(part);
  }
  FLYBALL_ASSIGN(out.metered, series::add_side_by_side(parts, run.tokens));
  out.total = out.metered;
  if (input.extra > Watts(0)) {
    FLYBALL_ASSIGN(const Account extra, series::account_constant(input.extra, run.interval, input.tariff));
    out.extra = extra.energy;
    out.total.energy += extra.energy;
    out.total.cost += extra.cost;
    out.total.carbon_g += extra.carbon_g;
    out.total.method += " + declared " + format(input.extra);
  }
  return out;
}

report::Json run_json(const AnalyzedRun& run, const RunEnergy& e, const std::string& currency) {
  report::Json one = report::Json::object();
  one["run"] = run.name.empty() ? report::Json(nullptr) : report::text(run.name);
  one["start"] = report::time(run.interval.start);
  one["stop"] = report::time(run.interval.stop);
  one["bounded_by_events"] = run.bounded_by_events;
  one["meters"] = run.meters.size();
  report::add_account(one, e.total, currency);
  one["metered_energy_j"] = report::number(e.metered.energy.value());
  one["extra_energy_j"] = report::number(e.extra.value());
  one["holes"] = e.holes;
  one["bridged_meter_s"] = report::number(e.bridged.value());
  one["points_skipped_not_ok"] = e.skipped.not_ok;
  one["points_skipped_duplicate"] = e.skipped.duplicate;
  one["points_skipped_disordered"] = e.skipped.disordered;
  return one;
}

Result<report::Plot> power_plot(const AnalyzedRun& run, const AnalyzeInput& input) {
  report::Plot plot;
  plot.title = "Power of " + title_of(run);
  plot.description =
      fmt::format("Sum of {} meters ({}) and what was declared beside them", run.meters.size(), to_string(input.scope));
  plot.x = {.label = "time", .unit = "", .kind = report::AxisKind::utc};
  plot.y = {.label = "power", .unit = "W", .kind = report::AxisKind::linear};
  PowerLine line(run);
  FLYBALL_TRY(each_chapter(input, run, [&](const series::Series& chapter) { line.add(chapter); }));
  plot.lines.push_back(line.line());
  return plot;
}

}  // namespace

Result<> analyze_energy(const AnalyzeOptions& options, Context& context) {
  FLYBALL_ASSIGN(AnalyzeInput input, read_analyze_input(options, context.files));
  report::Json json = analyze_document("energy", input);
  report::HtmlPage page("Energy", "flyball analyze energy");
  std::vector<std::string> titles;
  std::vector<Account> accounts;
  Joules sum;
  json["runs"] = report::Json::array();
  for (const AnalyzedRun& run : input.runs) {
    FLYBALL_ASSIGN(const RunEnergy energy, energy_of(run, input));
    json["runs"].push_back(run_json(run, energy, options.currency));
    titles.push_back(title_of(run));
    accounts.push_back(energy.total);
    sum += energy.total.energy;
  }
  const Joules mean = sum / static_cast<double>(input.runs.size());
  json["mean_energy_j"] = report::number(mean.value());
  const report::Table table = report::account_table(titles, accounts, options.currency);
  std::string text = report::to_text(table);
  if (input.runs.size() > 1) text += fmt::format("\nMean of {} runs: {}\n", input.runs.size(), format(mean));
  page.figures({{"Energy, mean of the runs", format(mean), fmt::format("{} runs", input.runs.size())}}).table(table);
  for (const AnalyzedRun& run : input.runs) {
    if (options.report.empty()) break;
    FLYBALL_ASSIGN(const report::Plot plot, power_plot(run, input));
    page.plot(plot);
  }
  return give_results(context, options, input, text, json, page);
}

}  // namespace flyball::cli
