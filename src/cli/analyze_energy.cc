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

/// One meter by both ways, and which of them counts.
struct MeterEnergy {
  Account by_power, by_counter;
  Seconds power_covered, counter_covered;
  Seconds filled;        ///< of the counter's account, by power
  Joules filled_energy;  ///< in that time
  series::Integral power;
  series::CounterIntegral counter;
  series::Divergence verdict;
  bool counts_counter() const { return verdict.counts == series::Believed::counter; }
};

struct RunEnergy {
  Account total;  ///< meters and the declared extra
  Account metered;
  Joules extra;
  Seconds bridged;
  std::uint64_t holes = 0;
  series::Skipped skipped;
  std::size_t counters = 0, counters_believed = 0, warned = 0;
  Joules counter, integral;  ///< of the meters that have both
};

void add(series::Skipped& sum, const series::Skipped& more) {
  sum.not_ok += more.not_ok;
  sum.duplicate += more.duplicate;
  sum.disordered += more.disordered;
}

void add(Account& sum, Seconds& covered, const Account& part) {
  covered += part.duration * part.coverage_fraction;
  sum.energy += part.energy;
  sum.cost += part.cost;
  sum.carbon_g += part.carbon_g;
  sum.duration += part.duration;
  sum.coverage_fraction = sum.duration > Seconds(0) ? std::min(1.0, covered / sum.duration) : 0;
  sum.scope = part.scope;
  sum.method = part.method;
}

/// Points that a chapter's margin shares with the next are counted in the chapter that they lie in.
series::Skipped skipped_within(const std::vector<series::Point>& points, const series::Interval& chapter, bool first) {
  std::vector<series::Point> own;
  for (const series::Point& p : points)
    if (p.at <= chapter.stop && (p.at > chapter.start || (first && p.at == chapter.start))) own.push_back(p);
  return series::usable_samples(own).skipped;
}

/// Where the counter says nothing, power stands in, as far as there is any.
void fill_gaps(Account& account, const series::CounterIntegral& counter, const series::Samples& power,
               const series::GapRule& gap, MeterEnergy& sum) {
  if (power.size() < 2 || !(account.duration > Seconds(0))) return;
  const series::Cumulative cumulative(power, gap);
  Joules filled;
  Seconds time;
  std::size_t hint = 0;
  for (const series::Interval& missing : counter.gaps) {
    const auto area = cumulative.between(power.seconds_of(missing.start), power.seconds_of(missing.stop), hint);
    filled += Joules(area.energy_j);
    time += Seconds(area.covered_s);
  }
  if (account.energy > Joules(0)) {
    const double more = filled / account.energy;
    account.cost *= 1 + more;
    account.carbon_g *= 1 + more;
  }
  account.energy += filled;
  account.coverage_fraction = std::min(1.0, account.coverage_fraction + time / account.duration);
  sum.filled += time;
  sum.filled_energy += filled;
}

/// A counter that stands still is compared as it is; one that missed some reads, with what was filled in for them.
series::Divergence compare(const MeterEnergy& energy) {
  constexpr Seconds kStill(60);
  series::CounterIntegral counter = energy.counter;
  if (counter.longest_repeat < kStill) {
    counter.energy += energy.filled_energy;
    counter.covered += energy.filled;
  }
  return series::compare_energies(counter, energy.power);
}

/// One meter, chapter by chapter; the power at the seams is interpolated, so that chapters add up to the whole.
Result<MeterEnergy> meter_energy(const AnalyzedRun& run, const AnalyzeInput& input, const Meter& meter,
                                 RunEnergy& out) {
  MeterEnergy sum;
  series::AccountOptions options;
  options.scope = input.scope;
  options.signal = std::string(to_string(meter.signal));
  options.gap = input.gap;
  const auto chapters = chapters_of(run, run.interval);
  for (const series::Interval& chapter : chapters) {
    series::Samples samples;
    if (!meter.counter) {
      FLYBALL_ASSIGN(const auto points, load_meter(input, meter, chapter));
      samples = series::usable_samples(points);
      FLYBALL_ASSIGN(const Account part, series::account_power(samples, chapter, input.tariff, options));
      add(sum.by_power, sum.power_covered, part);
      sum.power += series::integrate_power(samples, chapter, input.gap);
      if (samples.skipped.duplicate + samples.skipped.disordered > 0)
        add(out.skipped, skipped_within(points, chapter, &chapter == &chapters.front()));
    }
    if (meter.counter_parts.empty()) continue;
    FLYBALL_ASSIGN(const auto reads, load_counter(input, meter, chapter));
    const series::CounterOptions how = counter_options(meter.scope);
    FLYBALL_ASSIGN(Account part, series::account_counter(reads, chapter, input.tariff, how, options));
    const series::CounterIntegral detail = series::integrate_counter(reads, how, chapter);
    fill_gaps(part, detail, samples, input.gap, sum);
    add(sum.by_counter, sum.counter_covered, part);
    series::add(sum.counter, detail);
  }
  out.skipped.not_ok += meter.not_ok;
  sum.verdict.counts = meter.counter_parts.empty() ? series::Believed::integral : series::Believed::counter;
  if (!meter.counter && !meter.counter_parts.empty()) sum.verdict = compare(sum);
  return sum;
}

/// Adds what the meter's two ways say to the run, and to the warnings where they do not agree.
Result<Account> decide(const Meter& meter, const MeterEnergy& energy, const AnalyzedRun& run, AnalyzeInput& input,
                       RunEnergy& out) {
  constexpr std::size_t kMostWarned = 8;
  if (energy.verdict.counts == series::Believed::neither)
    return fail(ErrorCode::input, energy.verdict.reason, meter.device.text(),
                "name the right unit in the header, or leave one of the two columns out");
  const bool both = !meter.counter && !meter.counter_parts.empty();
  if (both) {
    ++out.counters;
    out.counters_believed += energy.counts_counter() ? 1 : 0;
    out.counter += energy.by_counter.energy;
    out.integral += energy.by_power.energy;
    if (energy.verdict.diverges || !energy.counts_counter()) {
      std::string warning = fmt::format("{}, {}: {}", title_of(run), meter.device.text(), energy.verdict.reason);
      if (++out.warned <= kMostWarned) input.warnings.push_back(std::move(warning));
    }
  }
  if (energy.counts_counter()) {
    Account account = energy.by_counter;
    // The ends of a recording cost a read or two; more is worth a word.
    if (energy.filled > account.duration * 0.01) account.method += ", power where it says nothing";
    return account;
  }
  out.holes += energy.power.holes;
  out.bridged += energy.power.bridged;
  return energy.by_power;
}

Result<RunEnergy> energy_of(const AnalyzedRun& run, AnalyzeInput& input) {
  RunEnergy out;
  std::vector<Account> parts;
  for (const Meter& meter : run.meters) {
    FLYBALL_ASSIGN(const MeterEnergy both, meter_energy(run, input, meter, out));
    FLYBALL_ASSIGN(const Account part, decide(meter, both, run, input, out));
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

/// Of meters side by side, the mean.
Seconds bridged_of(const AnalyzedRun& run, const RunEnergy& energy) {
  return energy.bridged / static_cast<double>(std::max<std::size_t>(1, run.meters.size()));
}

/// What is beside the account: holes, and the counter against integrated power.
void add_rows(report::Table& table, const std::vector<RunEnergy>& all) {
  const auto row = [&](const char* name, const auto& shown, const auto& text) {
    if (std::none_of(all.begin(), all.end(), shown)) return;
    std::vector<std::string> cells{name};
    for (const RunEnergy& e : all) cells.push_back(shown(e) ? text(e) : "–");
    table.rows.push_back(std::move(cells));
  };
  const auto any_counter = [](const RunEnergy& e) { return e.counters > 0; };
  row("Energy by counter", any_counter, [](const RunEnergy& e) { return format(e.counter); });
  row("Energy by integrated power", any_counter, [](const RunEnergy& e) { return format(e.integral); });
  row("Counter against power", any_counter, [](const RunEnergy& e) {
    return e.integral > Joules(0) ? fmt::format("{:+.2f} %", 100 * (e.counter / e.integral - 1)) : "–";
  });
  row(
      "Holes", [](const RunEnergy& e) { return e.holes > 0; },
      [](const RunEnergy& e) { return std::to_string(e.holes); });
  row(
      "Bridged, of all meters", [](const RunEnergy& e) { return e.bridged > Seconds(0); },
      [](const RunEnergy& e) { return format(e.bridged); });
}

report::Json run_json(const AnalyzedRun& run, const RunEnergy& e, const std::string& currency) {
  report::Json one = report::Json::object();
  one["run"] = run.name.empty() ? report::Json(nullptr) : report::text(run.name);
  one["start"] = report::time(run.interval.start);
  one["stop"] = report::time(run.interval.stop);
  one["bounded_by_events"] = run.bounded_by_events;
  one["meters"] = run.meters.size();
  report::add_account(one, e.total, currency, bridged_of(run, e));
  one["metered_energy_j"] = report::number(e.metered.energy.value());
  one["extra_energy_j"] = report::number(e.extra.value());
  one["counter_energy_j"] = e.counters > 0 ? report::number(e.counter.value()) : report::Json(nullptr);
  one["integrated_energy_j"] = e.counters > 0 ? report::number(e.integral.value()) : report::Json(nullptr);
  one["meters_with_counter"] = e.counters;
  one["meters_by_counter"] = e.counters_believed;
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
  line.draw(plot);
  return plot;
}

}  // namespace

Result<> analyze_energy(const AnalyzeOptions& options, Context& context) {
  FLYBALL_ASSIGN(AnalyzeInput input, read_analyze_input(options, context.files));
  report::HtmlPage page("Energy", "flyball analyze energy");
  std::vector<std::string> titles;
  std::vector<Account> accounts;
  std::vector<RunEnergy> energies;
  std::vector<Seconds> bridged;
  Joules sum;
  report::Json runs = report::Json::array();
  for (const AnalyzedRun& run : input.runs) {
    FLYBALL_ASSIGN(RunEnergy energy, energy_of(run, input));
    runs.push_back(run_json(run, energy, options.currency));
    titles.push_back(title_of(run));
    accounts.push_back(energy.total);
    bridged.push_back(bridged_of(run, energy));
    sum += energy.total.energy;
    energies.push_back(std::move(energy));
  }
  const Joules mean = sum / static_cast<double>(input.runs.size());
  report::Json json = analyze_document("energy", input);
  json["runs"] = std::move(runs);
  json["mean_energy_j"] = report::number(mean.value());
  report::Table table = report::account_table(titles, accounts, options.currency, bridged);
  add_rows(table, energies);
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
