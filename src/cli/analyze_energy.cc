#include <fmt/format.h>

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

Result<RunEnergy> energy_of(const AnalyzedRun& run, const AnalyzeInput& input) {
  RunEnergy out;
  std::vector<Account> parts;
  for (const series::Series& meter : run.meters) {
    const series::Samples samples = series::usable_samples(meter.points);
    series::AccountOptions options;
    options.scope = input.scope;
    options.signal = std::string(to_string(meter.key.signal));
    options.gap = input.gap;
    FLYBALL_ASSIGN(const Account part, series::account_power(samples, run.interval, input.tariff, options));
    parts.push_back(part);
    const series::Integral detail = series::integrate_power(samples, run.interval, input.gap);
    out.holes += detail.holes;
    out.bridged += detail.bridged;
    out.skipped.not_ok += detail.skipped.not_ok;
    out.skipped.duplicate += detail.skipped.duplicate;
    out.skipped.disordered += detail.skipped.disordered;
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

report::Plot power_plot(const AnalyzedRun& run, const AnalyzeInput& input) {
  report::Plot plot;
  plot.title = "Power of " + title_of(run);
  plot.description =
      fmt::format("Sum of {} meters ({}) and what was declared beside them", run.meters.size(), to_string(input.scope));
  plot.x = {.label = "time", .unit = "", .kind = report::AxisKind::utc};
  plot.y = {.label = "power", .unit = "W", .kind = report::AxisKind::linear};
  plot.lines.push_back(report::line_of(total_power(run, input.extra, input.gap), "total"));
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
  for (const AnalyzedRun& run : input.runs) page.plot(power_plot(run, input));
  return give_results(context, options, input, text, json, page);
}

}  // namespace flyball::cli
