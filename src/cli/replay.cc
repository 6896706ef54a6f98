#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/app.h"
#include "report/json.h"
#include "report/table.h"
#include "series/integrate.h"
#include "series/reader.h"
#include "series/recording_reader.h"
#include "series/writer_csv.h"

namespace flyball::cli {
namespace {

struct Options {
  std::string file;
  std::string to;
  std::string events;
  std::string format = "detect";
  std::string zone;
  std::string fold = "refuse";
};

Result<series::ReadOptions> read_options(const Options& options) {
  series::ReadOptions made;
  FLYBALL_ASSIGN(made.format, series::parse_format(options.format));
  FLYBALL_ASSIGN(made.fold, parse_fold(options.fold));
  made.zone = options.zone;
  return made;
}

/// Reads into `sink`; a recording also says what only recordings say.
Result<series::ReadSummary> read(const Options& options, series::Sink& sink, series::RecordingDetails& details) {
  FLYBALL_ASSIGN(const series::ReadOptions how, read_options(options));
  if (how.format == series::Format::recording || options.file.ends_with(".fbr")) {
    return series::read_recording_file(options.file, sink, details);
  }
  return series::read_file(options.file, how, sink);
}

struct Content {
  series::ReadSummary summary;
  series::RecordingDetails details;
  series::Recording recording;
};

report::Json json_of_series(const series::Series& one) {
  const auto integral = series::integrate_power(one.points);
  const auto good =
      std::count_if(one.points.begin(), one.points.end(), [](const auto& p) { return p.status == Status::ok; });
  report::Json made = report::Json::object();
  made["device"] = report::text(one.key.device.text());
  made["signal"] = std::string(to_string(one.key.signal));
  made["scope"] = std::string(to_string(one.key.scope));
  made["source"] = report::text(one.key.source);
  made["points"] = one.points.size();
  made["points_ok"] = good;
  made["start"] = one.points.empty() ? report::Json(nullptr) : report::time(one.points.front().at);
  made["stop"] = one.points.empty() ? report::Json(nullptr) : report::time(one.points.back().at);
  made["period_s"] = report::number(integral.period.value());
  made["coverage_fraction"] = report::number(integral.coverage_fraction());
  made["longest_gap_s"] = report::number(integral.longest_hole.value());
  return made;
}

report::Json json_of(const std::string& file, const Content& content) {
  const series::ReadSummary& summary = content.summary;
  report::Json made = report::document("replay");
  made["file"] = report::text(file);
  made["format"] = std::string(series::to_string(summary.format));
  made["size_bytes"] = summary.bytes;
  made["points"] = summary.all_points();
  made["points_ok"] = summary.good_points();
  made["quarantined"] = summary.quarantined;
  made["backward_stamps"] = summary.backward_stamps;
  made["repeated_stamps"] = summary.repeated_stamps;
  made["suspect_stamps"] = summary.suspect_stamps;
  made["cut"] = summary.cut;
  made["warnings"] = report::Json::array();
  for (const auto& warning : summary.warnings) made["warnings"].push_back(report::text(warning));
  made["sessions"] = report::Json::array();
  for (const auto& s : content.details.sessions) {
    made["sessions"].push_back({{"start", report::time(s.session.wall)},
                                {"source", report::text(s.session.source)},
                                {"writer", report::text(s.session.writer)},
                                {"interval_s", report::number(s.session.interval.value())},
                                {"points", s.points},
                                {"closed", s.closed},
                                {"reason", s.closed ? report::text(s.close_reason) : report::Json(nullptr)}});
  }
  made["lost_bytes"] = content.details.lost_bytes;
  made["series"] = report::Json::array();
  for (const auto& one : content.recording.series) made["series"].push_back(json_of_series(one));
  made["events"] = report::Json::array();
  for (const auto& event : content.recording.events) {
    made["events"].push_back({{"at", report::time(event.at)},
                              {"kind", report::text(event.kind)},
                              {"device", report::text(event.device.text())},
                              {"run", report::text(event.run)},
                              {"value", report::number(event.value)},
                              {"detail", report::text(event.detail)}});
  }
  made["set_aside"] = report::Json::array();
  for (const auto& row : content.recording.quarantined) {
    made["set_aside"].push_back(
        {{"line", row.line}, {"reason", report::text(row.reason)}, {"text", report::text(row.text)}});
  }
  return made;
}

std::string text_of(const std::string& file, const Content& content) {
  constexpr std::size_t kShown = 20;
  const series::ReadSummary& summary = content.summary;
  std::string text =
      fmt::format("{}: {}, {} bytes, {} points, {} of them good\n", file, series::to_string(summary.format),
                  summary.bytes, summary.all_points(), summary.good_points());
  for (const auto& s : content.details.sessions) {
    text += fmt::format("Session {}: {}, every {}, {} points, {}\n", format_rfc3339(s.session.wall), s.session.source,
                        format(s.session.interval), s.points, s.closed ? s.close_reason : "not closed");
  }
  report::Table table;
  table.columns = {{"Device"}, {"Signal"}, {"Scope"}, {"Points"}, {"From"}, {"Covers"}, {"Period"}, {"Coverage"}};
  for (const auto& one : content.recording.series) {
    if (one.points.empty() || table.rows.size() == kShown) continue;
    const auto integral = series::integrate_power(one.points);
    table.rows.push_back({one.key.device.text(), std::string(to_string(one.key.signal)),
                          std::string(to_string(one.key.scope)), std::to_string(one.points.size()),
                          format_rfc3339(one.points.front().at), format(one.points.back().at - one.points.front().at),
                          format(integral.period), format_percent(integral.coverage_fraction())});
  }
  text += '\n' + report::to_text(table);
  if (content.recording.series.size() > kShown)
    text += fmt::format("… and {} series more\n", content.recording.series.size() - kShown);
  std::map<std::string, std::uint64_t> kinds;
  for (const auto& event : content.recording.events) ++kinds[event.kind];
  for (const auto& [kind, count] : kinds) text += fmt::format("Events {}: {}\n", kind, count);
  if (summary.quarantined > 0) {
    text += fmt::format("Set aside: {} rows ({} stamps backwards, {} repeated, {} far ahead)\n", summary.quarantined,
                        summary.backward_stamps, summary.repeated_stamps, summary.suspect_stamps);
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(5, content.recording.quarantined.size()); ++i) {
    const auto& row = content.recording.quarantined[i];
    text += fmt::format("  line {}: {}\n", row.line, row.reason);
  }
  for (const auto& warning : summary.warnings) text += fmt::format("Note: {}\n", warning);
  return text;
}

Result<> export_csv(const Options& options, Context& context) {
  std::unique_ptr<AppendFile> events;
  if (!options.events.empty()) {
    if (context.files.exists(options.events))
      return fail(ErrorCode::input, "exists already", options.events, "name another file");
    FLYBALL_ASSIGN(events, context.files.open_append(options.events));
  }
  // A recording can be larger than memory: to a file it is written as it is read.
  const std::string path = context.out.take_path();
  std::unique_ptr<AppendFile> points;
  if (!path.empty()) {
    if (context.files.exists(path)) return fail(ErrorCode::input, "exists already", path, "name another file");
    FLYBALL_ASSIGN(points, context.files.open_append(path));
  }
  series::CsvWriter::Output to_events;
  if (events != nullptr) to_events = [&](std::string_view text) { return events->append(text); };
  series::CsvWriter writer(
      [&](std::string_view text) { return points != nullptr ? points->append(text) : context.out.write(text); },
      std::move(to_events));
  series::RecordingDetails details;
  FLYBALL_TRY(read(options, writer, details));
  return writer.finish();
}

Result<> replay(const Options& options, Context& context) {
  if (options.to == "csv") return export_csv(options, context);
  if (!options.to.empty())
    return fail(ErrorCode::input, fmt::format("'{}' is not a format to write", options.to), "--to", "write csv");
  Content content;
  series::RecordingSink sink;
  FLYBALL_ASSIGN(content.summary, read(options, sink, content.details));
  content.recording = std::move(sink.recording);
  if (context.options.json) return context.out.write(report::dump(json_of(options.file, content)));
  return context.out.write(text_of(options.file, content));
}

}  // namespace

void add_replay(Registry& registry) {
  auto options = std::make_shared<Options>();
  CLI::App& command = registry.add(
      {.name = "replay",
       .summary = "Show what a recording or a file of other telemetry holds, or write it as CSV",
       .examples =
           "  flyball replay run.fbr\n"
           "  flyball replay run.fbr --to csv --output points.csv --events events.csv\n"
           "  flyball replay smi.csv --zone Europe/Berlin --fold later --json\n"
           "Reads recordings, nvidia-smi CSV, dcgmi dmon, Zeus, node power, MLPerf logs, Prometheus text and tables\n"
           "with units in their header, plain or compressed"},
      [options](Context& context) { return replay(*options, context); });
  command.add_option("FILE", options->file, "What to read")->required();
  command.add_option("--to", options->to, "Write all points as: csv")->type_name("FORMAT");
  command.add_option("--events", options->events, "With --to: write the events into this file")->type_name("FILE");
  command.add_option("--format", options->format, "Of FILE, where its content does not tell")->capture_default_str();
  command.add_option("--zone", options->zone, "Of stamps that carry none (default: UTC, and it is said)")
      ->type_name("ZONE");
  command.add_option("--fold", options->fold, "The hour repeated in autumn: refuse, earlier or later")
      ->capture_default_str();
}

}  // namespace flyball::cli
