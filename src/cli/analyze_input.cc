#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "cli/analyze.h"
#include "cli/arguments.h"
#include "cli/rate.h"
#include "series/reader.h"

namespace flyball::cli {
namespace {

// In the events of this benchmark the counts are tokens; in others they are samples.
constexpr std::string_view kCountsTokens = "gpt3";

Result<Scope> wanted_scope(const std::string& meter) {
  if (meter == "ac") return Scope::node_ac;
  if (meter == "dc") return Scope::node_dc;
  auto scope = parse_scope(meter);
  if (!scope)
    return fail(ErrorCode::input, fmt::format("'{}' is no meter", meter), "--meter",
                "give ac, dc, or a scope such as board, rack, pdu, feed");
  return scope;
}

// "RUN/node-3" belongs to RUN.
std::string run_of(const DeviceId& device) {
  const auto slash = device.text().rfind("/node-");
  return slash == std::string::npos ? std::string() : device.text().substr(0, slash);
}

/// Counts what is set aside and puts the rest into the spool.
class AnalyzeSink final : public series::Sink {
 public:
  AnalyzeSink(const std::string& file, AnalyzeInput& input) : file_(file), input_(input) {}
  std::uint32_t begin_series(const series::SeriesKey& key) override { return input_.spool.begin_series(key); }
  void point(std::uint32_t series, const series::Point& point) override { input_.spool.point(series, point); }
  void event(const series::Event& event) override { input_.spool.event(event); }
  void quarantine(const series::Quarantined& row) override {
    constexpr std::size_t kShown = 20;
    if (input_.set_aside.size() < kShown)
      input_.set_aside.push_back(fmt::format("{} line {}: {}", file_, row.line, row.reason));
  }

 private:
  const std::string& file_;
  AnalyzeInput& input_;
};

std::string rows_set_aside(const AnalyzeInput& input) {
  constexpr std::size_t kNamed = 5;
  std::string text = fmt::format("{} rows were set aside", input.quarantined);
  for (std::size_t i = 0; i < std::min(kNamed, input.set_aside.size()); ++i)
    text += (i == 0 ? ": " : "; ") + input.set_aside[i];
  if (input.quarantined > kNamed) text += "; …";
  return text;
}

Result<> read_all(const AnalyzeOptions& options, AnalyzeInput& input) {
  std::vector<std::string> files = options.files;
  if (!options.events.empty()) files.push_back(options.events);
  for (const std::string& file : files) {
    AnalyzeSink sink(file, input);
    FLYBALL_ASSIGN(const series::ReadSummary summary, series::read_file(file, {}, sink));
    FLYBALL_TRY(input.spool.end_file());
    for (const std::string& warning : summary.warnings) input.warnings.push_back(fmt::format("{}: {}", file, warning));
    if (summary.cut && summary.warnings.empty()) input.warnings.push_back(file + ": the file is cut");
    if (const std::string why = series::refusals_text(summary); !why.empty()) {
      input.unusable += fmt::format("{}{}: {}", input.unusable.empty() ? "" : "; ", file, why);
    }
    input.quarantined += summary.quarantined;
    input.points += summary.all_points();
    input.not_ok += summary.all_points() - summary.good_points();
  }
  std::uint64_t garbage = 0;
  for (const auto& part : input.spool.parts()) garbage += part.garbage;
  if (garbage > 0) {
    std::string text = fmt::format("{} values cannot be true and are not used", garbage);
    if (!input.unusable.empty()) text += ": " + input.unusable;
    input.warnings.push_back(std::move(text));
  }
  if (input.quarantined > 0) input.warnings.push_back(rows_set_aside(input));
  if (input.spool.events_left_out() > 0)
    input.warnings.push_back(fmt::format("{} events beyond the first {} were not used", input.spool.events_left_out(),
                                         series::Spool::kMostEvents));
  return {};
}

bool is_power(Signal signal) { return signal == Signal::power_average || signal == Signal::power_instant; }

void join(Meter& meter, const series::Spool& spool, std::size_t index) {
  const series::Spool::Part& part = spool.parts()[index];
  meter.parts.push_back(index);
  meter.not_ok += part.not_ok;
  if (part.points == 0) return;
  const series::Interval all{part.first, part.last};
  meter.all = meter.points == 0
                  ? all
                  : series::Interval{std::min(meter.all.start, all.start), std::max(meter.all.stop, all.stop)};
  if (part.points > meter.points) meter.period = part.period();
  meter.points += part.points;
}

/// Why there is nothing to compute with, as far as the readers know.
Error no_power(const AnalyzeInput& input) {
  Error error{ErrorCode::input, "no power was found in the files", {}, "see doc/signals.md for what is read"};
  if (!input.unusable.empty()) error.what += "; " + input.unusable;
  if (input.quarantined > 0) error.what += "; " + rows_set_aside(input);
  for (const std::string& warning : input.warnings)
    if (error.what.find(warning) == std::string::npos) error.what += "; " + warning;
  if (error.what.find(';') != std::string::npos) error.remedy = "mend what is named, or export the file again";
  return error;
}

Result<Scope> choose_scope(const std::set<Scope>& there, const std::string& meter, const AnalyzeInput& input) {
  if (there.empty()) return fail(no_power(input));
  std::string names;
  for (Scope s : there) names += std::string(names.empty() ? "" : ", ") + std::string(to_string(s));
  if (meter.empty()) {
    if (there.size() == 1) return *there.begin();
    return fail(ErrorCode::input, "there are meters of several scopes: " + names, {}, "choose one with --meter");
  }
  FLYBALL_ASSIGN(const Scope scope, wanted_scope(meter));
  if (!there.contains(scope))
    return fail(ErrorCode::input, fmt::format("no meter of that scope; there are: {}", names), "--meter " + meter);
  return scope;
}

/// By run, the meters of one scope. Of a device's average power, instantaneous power and counter the first that says
/// anything, and the counter beside it; parts of a series that came in several files belong together.
std::map<std::string, std::vector<Meter>> meters_by_run(const series::Spool& spool, Scope scope) {
  std::map<std::string, std::map<std::pair<std::string, Signal>, Meter>> all;
  for (std::size_t i = 0; i < spool.parts().size(); ++i) {
    const series::SeriesKey& key = spool.parts()[i].key;
    if ((!is_power(key.signal) && key.signal != Signal::energy) || key.scope != scope) continue;
    Meter& meter = all[run_of(key.device)][{key.device.text(), key.signal}];
    meter.device = key.device;
    meter.signal = key.signal;
    meter.scope = scope;
    meter.counter = key.signal == Signal::energy;
    join(meter, spool, i);
  }
  std::map<std::string, std::vector<Meter>> runs;
  for (auto& [run, meters] : all) {
    std::string last;
    for (auto& [key, meter] : meters) {  // by device, then average, instant, counter
      if (meter.points == 0) continue;
      if (meter.counter) meter.counter_parts = meter.parts;
      if (key.first == last) {
        if (meter.counter) runs[run].back().counter_parts = meter.parts;
        continue;
      }
      last = key.first;
      runs[run].push_back(std::move(meter));
    }
  }
  return runs;
}

/// The step of a counter of tokens over an interval; 0 where none was recorded.
Result<double> counted_tokens(const series::Spool& spool, series::Interval interval) {
  for (std::size_t i = 0; i < spool.parts().size(); ++i) {
    if (spool.parts()[i].key.signal != Signal::tokens || spool.parts()[i].points == 0) continue;
    const auto upto = [&](WallTime at) -> Result<double> {
      FLYBALL_ASSIGN(const auto near, spool.load(i, {at, at}, 1));
      double value = 0;
      for (const series::Point& p : near)
        if (p.at <= at) value = p.value;
      return value;
    };
    FLYBALL_ASSIGN(const double before, upto(interval.start));
    FLYBALL_ASSIGN(const double after, upto(interval.stop));
    return std::max(0.0, after - before);
  }
  return 0.0;
}

double tokens_of(const std::vector<series::Event>& events) {
  double tokens = 0;
  for (const series::Event& e : events) {
    const bool counted = e.kind == "train_samples" && e.detail.find(kCountsTokens) != std::string::npos;
    if (e.kind == "tokens" || counted) tokens = std::max(tokens, e.value);
  }
  return tokens;
}

void bound(AnalyzedRun& run, AnalyzeInput& input) {
  std::optional<WallTime> start, stop, first, last;
  for (const series::Event& e : run.events) {
    if (e.kind == "run_start" && !start) start = e.at;
    if (e.kind == "run_stop") stop = e.at;
  }
  for (const Meter& meter : run.meters) {
    first = first ? std::min(*first, meter.all.start) : meter.all.start;
    last = last ? std::max(*last, meter.all.stop) : meter.all.stop;
  }
  if (first) run.recorded = {*first, *last};
  run.bounded_by_events = start && stop && *start < *stop;
  if (run.bounded_by_events)
    run.interval = {*start, *stop};
  else
    run.interval = run.recorded;
  if (!run.bounded_by_events && (start || stop))
    input.warnings.push_back(title_of(run) + ": no run_start and run_stop; all that was recorded counts");
}

}  // namespace

std::string title_of(const AnalyzedRun& run) { return run.name.empty() ? "the recording" : run.name; }

Result<AnalyzeInput> read_analyze_input(const AnalyzeOptions& options, Filesystem& files) {
  AnalyzeInput input;
  if (!(options.gap_periods > 0)) return fail(ErrorCode::input, "a hole needs a positive length", "--gap");
  FLYBALL_TRY(check_report_path(options.report));
  input.gap = {options.gap_periods, options.bridge};
  if (!options.extra.empty()) {
    FLYBALL_ASSIGN(input.extra, parse_watts(options.extra));
    if (input.extra < Watts(0)) return fail(ErrorCode::input, "a draw below zero", "--extra");
  }
  FLYBALL_ASSIGN(input.tariff.price, read_rate(options.price, "--price", files));
  FLYBALL_ASSIGN(input.tariff.carbon_g, read_rate(options.carbon, "--carbon", files));
  FLYBALL_TRY(read_all(options, input));
  std::set<Scope> there;
  for (const auto& part : input.spool.parts())
    if ((is_power(part.key.signal) || part.key.signal == Signal::energy) && part.points > 0)
      there.insert(part.key.scope);
  FLYBALL_ASSIGN(input.scope, choose_scope(there, options.meter, input));
  for (auto& [name, meters] : meters_by_run(input.spool, input.scope)) {
    AnalyzedRun run{name, std::move(meters), {}, {}, {}, false, options.tokens};
    for (const series::Event& e : input.spool.events())
      if (e.run == name || e.run.empty() || name.empty()) run.events.push_back(e);
    std::stable_sort(run.events.begin(), run.events.end(),
                     [](const series::Event& a, const series::Event& b) { return a.at < b.at; });
    if (!(run.tokens > 0)) run.tokens = tokens_of(run.events);
    bound(run, input);
    if (!(run.tokens > 0)) {
      FLYBALL_ASSIGN(run.tokens, counted_tokens(input.spool, run.interval));
    }
    input.runs.push_back(std::move(run));
  }
  return input;
}

report::Json analyze_document(const std::string& name, const AnalyzeInput& input) {
  report::Json made = report::document("analyze_" + name);
  made["meter"] = std::string(to_string(input.scope));
  made["extra_w"] = report::number(input.extra.value());
  made["points"] = input.points;
  made["points_not_ok"] = input.not_ok;
  made["rows_set_aside"] = input.quarantined;
  made["set_aside"] = report::Json::array();
  for (const std::string& row : input.set_aside) made["set_aside"].push_back(report::text(row));
  made["warnings"] = report::Json::array();
  for (const std::string& w : input.warnings) made["warnings"].push_back(report::text(w));
  return made;
}

Result<> give_results(Context& context, const AnalyzeOptions& options, const AnalyzeInput& input,
                      const std::string& text, const report::Json& json, const report::HtmlPage& page) {
  for (const std::string& warning : input.warnings) log::warning("analyze", "{}", warning);
  if (!options.report.empty() && !context.options.dry_run)
    FLYBALL_TRY(context.files.write_atomically(options.report, page.page()));
  return context.out.write(context.options.json ? report::dump(json) : text);
}

Result<series::RateSeries> read_rate(const std::string& text, const std::string& flag, Filesystem& files) {
  if (const auto constant = parse_double(text)) {
    if (*constant >= 0) return series::RateSeries(*constant);
    return fail(ErrorCode::input, "a rate below zero needs a series with its hours", flag);
  }
  constexpr std::size_t kLargest = 64 << 20;
  FLYBALL_ASSIGN(const std::string csv, read_input(files, text, kLargest));
  // Any second column would else be taken for a rate.
  constexpr std::string_view kColumns = "time,per_kwh", kMark = "\xEF\xBB\xBF";
  std::string_view header = std::string_view(csv).substr(0, csv.find('\n'));
  if (header.starts_with(kMark)) header.remove_prefix(kMark.size());
  std::string columns;
  for (const std::string_view cell : split(header, ','))
    columns += (columns.empty() ? "" : ",") + std::string(trim(cell).substr(0, 40));
  if (columns != kColumns)
    return fail(ErrorCode::input, fmt::format("the columns are '{}' and not '{}'", columns.substr(0, 200), kColumns),
                fmt::format("{}, {}:1", flag, text), "name the columns so in the first line, and give no others");
  auto series = series::RateSeries::parse_csv(csv);
  if (!series) {
    Error error = series.error();
    error.where = text + (error.where.empty() ? "" : ", " + error.where);
    return fail(std::move(error));
  }
  return series;
}

}  // namespace flyball::cli
