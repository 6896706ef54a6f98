#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/replay.h"
#include "report/json.h"
#include "report/table.h"
#include "series/integrate.h"
#include "series/recording_reader.h"
#include "series/survey.h"
#include "series/writer_csv.h"

namespace flyball::cli {
namespace {

/// What a file holds, in memory that does not grow with it.
struct Content {
  series::ReadSummary summary;
  series::RecordingDetails details;
  series::Survey survey;
  std::vector<series::Integral> integrals;  ///< one for each series, as if its values were power
};

/// With the periods known: what is covered, and where the holes are.
class CoverageSink final : public series::Sink {
 public:
  explicit CoverageSink(const series::Survey& survey) {
    for (const auto& one : survey.series()) integrators_.emplace_back(one.period());
  }
  std::uint32_t begin_series(const series::SeriesKey&) override { return series_++; }
  void point(std::uint32_t series, const series::Point& point) override {
    if (series < integrators_.size()) integrators_[series].add(point);  // the file may grow meanwhile
  }
  void event(const series::Event&) override {}
  void quarantine(const series::Quarantined&) override {}
  std::vector<series::Integral> result() const {
    std::vector<series::Integral> all;
    all.reserve(integrators_.size());
    for (const auto& one : integrators_) all.push_back(one.result());
    return all;
  }

 private:
  std::vector<series::PowerIntegrator> integrators_;
  std::uint32_t series_ = 0;
};

Result<> read_content(const ReplayOptions& options, Content& content) {
  FLYBALL_ASSIGN(const series::ReadOptions how, replay_reading(options));
  FLYBALL_ASSIGN(content.summary, series::read_file(options.file, how, content.survey, &content.details));
  CoverageSink coverage(content.survey);
  FLYBALL_TRY(series::read_file(options.file, how, coverage));
  content.integrals = coverage.result();
  return {};
}

report::Json json_of_series(const series::Survey::One& one, const series::Integral& integral) {
  report::Json made = report::Json::object();
  made["device"] = report::text(one.key.device.text());
  made["signal"] = std::string(to_string(one.key.signal));
  made["scope"] = std::string(to_string(one.key.scope));
  made["source"] = report::text(one.key.source);
  made["points"] = one.points;
  made["points_ok"] = one.ok;
  made["start"] = one.points == 0 ? report::Json(nullptr) : report::time(one.all.start);
  made["stop"] = one.points == 0 ? report::Json(nullptr) : report::time(one.all.stop);
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
  for (std::size_t i = 0; i < content.integrals.size(); ++i)
    made["series"].push_back(json_of_series(content.survey.series()[i], content.integrals[i]));
  made["events"] = report::Json::array();
  for (const auto& [kind, seen] : content.survey.events()) {
    made["events"].push_back({{"kind", report::text(kind)},
                              {"count", seen.count},
                              {"first_at", report::time(seen.first.at)},
                              {"first_device", report::text(seen.first.device.text())},
                              {"first_run", report::text(seen.first.run)},
                              {"first_value", report::number(seen.first.value)},
                              {"first_detail", report::text(seen.first.detail)}});
  }
  made["set_aside"] = report::Json::array();
  for (const auto& row : content.survey.quarantined()) {
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
  for (std::size_t i = 0; i < content.integrals.size() && table.rows.size() < kShown; ++i) {
    const auto& one = content.survey.series()[i];
    const auto& integral = content.integrals[i];
    if (one.points == 0) continue;
    table.rows.push_back({one.key.device.text(), std::string(to_string(one.key.signal)),
                          std::string(to_string(one.key.scope)), std::to_string(one.points),
                          format_rfc3339(one.all.start), format(one.all.length()), format(integral.period),
                          format_percent(integral.coverage_fraction())});
  }
  text += '\n' + report::to_text(table);
  if (content.integrals.size() > kShown)
    text += fmt::format("… and {} series more\n", content.integrals.size() - kShown);
  for (const auto& [kind, seen] : content.survey.events()) text += fmt::format("Events {}: {}\n", kind, seen.count);
  if (summary.quarantined > 0) {
    text += fmt::format("Set aside: {} rows ({} stamps backwards, {} repeated, {} far ahead)\n", summary.quarantined,
                        summary.backward_stamps, summary.repeated_stamps, summary.suspect_stamps);
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(5, content.survey.quarantined().size()); ++i) {
    const auto& row = content.survey.quarantined()[i];
    text += fmt::format("  line {}: {}\n", row.line, row.reason);
  }
  for (const auto& warning : summary.warnings) text += fmt::format("Note: {}\n", warning);
  return text;
}

Result<> export_csv(const ReplayOptions& options, Context& context) {
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
  FLYBALL_ASSIGN(const series::ReadOptions how, replay_reading(options));
  FLYBALL_TRY(series::read_file(options.file, how, writer));
  return writer.finish();
}

Result<> replay(const ReplayOptions& options, Context& context) {
  if (!options.policy.empty()) {
    if (!options.to.empty()) return fail(ErrorCode::input, "--policy and --to are given", {}, "give one of the two");
    return replay_with_policy(options, context);
  }
  if (options.to == "csv") return export_csv(options, context);
  if (!options.to.empty())
    return fail(ErrorCode::input, fmt::format("'{}' is not a format to write", options.to), "--to", "write csv");
  Content content;
  FLYBALL_TRY(read_content(options, content));
  if (context.options.json) return context.out.write(report::dump(json_of(options.file, content)));
  return context.out.write(text_of(options.file, content));
}

}  // namespace

Result<series::ReadOptions> replay_reading(const ReplayOptions& options) {
  series::ReadOptions made;
  FLYBALL_ASSIGN(made.format, series::parse_format(options.format));
  FLYBALL_ASSIGN(made.fold, parse_fold(options.fold));
  made.zone = options.zone;
  return made;
}

void add_replay(Registry& registry) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App& command = registry.add(
      {.name = "replay",
       .summary = "Run the loop again from a recording, or show what it holds, or write it as CSV",
       .examples =
           "  flyball run --record run.fbr; flyball replay run.fbr --policy recorded\n"
           "      the same decisions again, to the last bit, or where they differ\n"
           "  flyball replay smi.csv --policy static:250W --zone Europe/Berlin\n"
           "      what another policy would have asked for; nothing is set, nothing is saved. The limits in the\n"
           "      recording hold: those that its own run wrote freeze nobody, those that nobody explains do\n"
           "  flyball replay run.fbr\n"
           "  flyball replay run.fbr --to csv --output points.csv --events events.csv\n"
           "  flyball replay smi.csv --zone Europe/Berlin --fold later --json\n"
           "Reads recordings, nvidia-smi CSV, dcgmi dmon, Zeus, node power, MLPerf logs, Prometheus text and tables\n"
           "with units in their header, plain or compressed"},
      [options](Context& context) { return replay(*options, context); });
  command.add_option("FILE", options->file, "What to read")->required();
  command.add_option("--policy", options->policy, "Run the loop with it: see flyball policy list, or recorded")
      ->type_name("NAME");
  add_objective(command, options->objective);
  add_seed(command, options->seed, "With --policy: the policy's (default 1)");
  command.add_option("--decision", options->decision, "With --policy: between decisions (default as recorded, or 10s)")
      ->type_name("TIME");
  command.add_option("--to", options->to, "Write all points as: csv")->type_name("FORMAT");
  command.add_option("--events", options->events, "With --to: write the events into this file")->type_name("FILE");
  command.add_option("--format", options->format, "Of FILE, where its content does not tell")->capture_default_str();
  command.add_option("--zone", options->zone, "Of stamps that carry none (default: UTC, and it is said)")
      ->type_name("ZONE");
  command.add_option("--fold", options->fold, "The hour repeated in autumn: refuse, earlier or later")
      ->capture_default_str();
}

}  // namespace flyball::cli
