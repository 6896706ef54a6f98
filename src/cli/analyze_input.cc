#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "cli/analyze.h"
#include "series/fleet_sum.h"
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

Result<> read_all(const AnalyzeOptions& options, series::Recording& all, AnalyzeInput& input) {
  std::vector<std::string> files = options.files;
  if (!options.events.empty()) files.push_back(options.events);
  for (const std::string& file : files) {
    series::RecordingSink sink;
    FLYBALL_ASSIGN(const series::ReadSummary summary, series::read_file(file, {}, sink));
    for (const std::string& warning : summary.warnings) input.warnings.push_back(fmt::format("{}: {}", file, warning));
    if (summary.cut) input.warnings.push_back(file + ": the file is cut");
    input.quarantined += summary.quarantined;
    input.points += summary.all_points();
    input.not_ok += summary.all_points() - summary.good_points();
    for (series::Series& s : sink.recording.series) all.series.push_back(std::move(s));
    for (series::Event& e : sink.recording.events) all.events.push_back(std::move(e));
  }
  if (input.quarantined > 0) input.warnings.push_back(fmt::format("{} rows were set aside", input.quarantined));
  return {};
}

// A counter where there is no power reading becomes power.
void counters_to_power(std::vector<series::Series>& all) {
  std::set<std::pair<std::string, Scope>> with_power;
  for (const series::Series& s : all)
    if (s.key.signal == Signal::power_average || s.key.signal == Signal::power_instant)
      with_power.emplace(s.key.device.text(), s.key.scope);
  for (series::Series& s : all) {
    if (s.key.signal != Signal::energy || with_power.contains({s.key.device.text(), s.key.scope})) continue;
    auto sum = series::integrate_counter(s.points, {Joules(0), Watts(1e9)});
    s.points = std::move(sum.power);
    s.key.signal = Signal::power_average;
    s.key.source += " (from its energy counter)";
  }
}

Result<Scope> choose_scope(const std::vector<series::Series>& power, const std::string& meter) {
  std::set<Scope> there;
  for (const series::Series& s : power) there.insert(s.key.scope);
  if (there.empty())
    return fail(ErrorCode::input, "no power was found in the files", {}, "see doc/formats.md for what is read");
  std::string names;
  for (Scope s : there) names += std::string(names.empty() ? "" : ", ") + std::string(to_string(s));
  if (!meter.empty()) {
    FLYBALL_ASSIGN(const Scope scope, wanted_scope(meter));
    if (there.contains(scope)) return scope;
    return fail(ErrorCode::input, fmt::format("there is no {} power in the files, only {}", to_string(scope), names),
                "--meter");
  }
  if (there.size() == 1) return *there.begin();
  return fail(ErrorCode::input,
              fmt::format("the files hold power of several scopes ({}), which are never added", names), {},
              "choose one with --meter");
}

// The series of one scope; of average and instantaneous power of one device the average. Parts of a series that came in
// several files are joined.
std::map<std::string, std::vector<series::Series>> meters_by_run(std::vector<series::Series> all, Scope scope) {
  std::map<std::string, std::map<std::pair<std::string, Signal>, series::Series>> joined;
  for (series::Series& s : all) {
    const bool power = s.key.signal == Signal::power_average || s.key.signal == Signal::power_instant;
    if (!power || s.key.scope != scope) continue;
    auto& place = joined[run_of(s.key.device)][{s.key.device.text(), s.key.signal}];
    if (place.points.empty()) {
      place = std::move(s);
      continue;
    }
    place.points.insert(place.points.end(), s.points.begin(), s.points.end());
    std::stable_sort(place.points.begin(), place.points.end(),
                     [](const series::Point& a, const series::Point& b) { return a.at < b.at; });
  }
  std::map<std::string, std::vector<series::Series>> runs;
  for (auto& [run, meters] : joined)
    for (auto& [key, s] : meters) {
      if (key.second == Signal::power_instant && meters.contains({key.first, Signal::power_average})) continue;
      runs[run].push_back(std::move(s));
    }
  return runs;
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
  for (const series::Series& s : run.meters)
    for (const series::Point& p : s.points) {
      if (p.status != Status::ok) continue;
      first = first ? std::min(*first, p.at) : p.at;
      last = last ? std::max(*last, p.at) : p.at;
    }
  run.bounded_by_events = start && stop && *start < *stop;
  if (run.bounded_by_events)
    run.interval = {*start, *stop};
  else if (first)
    run.interval = {*first, *last};
  if (!run.bounded_by_events && !run.events.empty())
    input.warnings.push_back(title_of(run) + ": no run_start and run_stop; all that was recorded counts");
}

Result<series::RateSeries> rate(const std::string& text, const std::string& flag, Filesystem& files) {
  if (const auto constant = parse_double(text)) {
    if (*constant >= 0) return series::RateSeries(*constant);
    return fail(ErrorCode::input, "a rate below zero needs a series with its hours", flag);
  }
  constexpr std::size_t kLargest = 64 << 20;
  FLYBALL_ASSIGN(const std::string csv, files.read(text, kLargest));
  auto series = series::RateSeries::parse_csv(csv);
  if (!series) {
    Error error = series.error();
    error.where = text + (error.where.empty() ? "" : ", " + error.where);
    return fail(std::move(error));
  }
  return series;
}

}  // namespace

std::string title_of(const AnalyzedRun& run) { return run.name.empty() ? "the recording" : run.name; }

Result<AnalyzeInput> read_analyze_input(const AnalyzeOptions& options, Filesystem& files) {
  AnalyzeInput input;
  if (!(options.gap_periods > 0)) return fail(ErrorCode::input, "a hole needs a positive length", "--gap");
  input.gap = {options.gap_periods, options.bridge};
  if (!options.extra.empty()) {
    FLYBALL_ASSIGN(input.extra, parse_watts(options.extra));
    if (input.extra < Watts(0)) return fail(ErrorCode::input, "a draw below zero", "--extra");
  }
  FLYBALL_ASSIGN(input.tariff.price, rate(options.price, "--price", files));
  FLYBALL_ASSIGN(input.tariff.carbon_g, rate(options.carbon, "--carbon", files));
  series::Recording all;
  FLYBALL_TRY(read_all(options, all, input));
  counters_to_power(all.series);
  std::vector<series::Series> power;
  for (series::Series& s : all.series)
    if (s.key.signal == Signal::power_average || s.key.signal == Signal::power_instant) power.push_back(std::move(s));
  FLYBALL_ASSIGN(input.scope, choose_scope(power, options.meter));
  for (auto& [name, meters] : meters_by_run(std::move(power), input.scope)) {
    AnalyzedRun run{name, std::move(meters), {}, {}, false, options.tokens};
    for (const series::Event& e : all.events)
      if (e.run == name || e.run.empty() || name.empty()) run.events.push_back(e);
    std::stable_sort(run.events.begin(), run.events.end(),
                     [](const series::Event& a, const series::Event& b) { return a.at < b.at; });
    if (!(run.tokens > 0)) run.tokens = tokens_of(run.events);
    bound(run, input);
    input.runs.push_back(std::move(run));
  }
  return input;
}

series::Series total_power(const AnalyzedRun& run, Watts extra, const series::GapRule& gap) {
  series::Series total;
  if (run.meters.size() == 1) {
    total = run.meters.front();
  } else {
    series::SumOptions options;
    options.gap = gap;
    total = series::fleet_sum(run.meters, options).sum;
  }
  for (series::Point& p : total.points) p.value += extra.value();
  return total;
}

report::Json analyze_document(const std::string& name, const AnalyzeInput& input) {
  report::Json made = report::document("analyze_" + name);
  made["meter"] = std::string(to_string(input.scope));
  made["extra_w"] = report::number(input.extra.value());
  made["points"] = input.points;
  made["points_not_ok"] = input.not_ok;
  made["rows_set_aside"] = input.quarantined;
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

}  // namespace flyball::cli
