#include "cli/record_nodes.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/arguments.h"
#include "report/json.h"
#include "report/table.h"
#include "twin/node.h"
#include "twin/node_statistics.h"

namespace flyball::cli {
namespace {

/// Simulated recordings begin at a fixed instant, so that same seed means same bytes.
constexpr WallTime kSimulatedStart(1'767'225'600'000'000'000);
constexpr Seconds kLongest(24 * 3600.0);

std::int64_t milliseconds(WallTime t) { return t.nanoseconds() / 1'000'000; }

/// The series come in pairs of one node, AC first, with the same stamps.
std::string power_csv(const series::Recording& recording, const std::string& run) {
  std::string text = "run,node,time_ms,ac_w,dc_w\n";
  for (std::size_t node = 0; node < recording.series.size() / 2; ++node) {
    const auto& ac = recording.series[2 * node].points;
    const auto& dc = recording.series[2 * node + 1].points;
    for (std::size_t i = 0; i < ac.size(); ++i) {
      fmt::format_to(std::back_inserter(text), "{},{},{},{:.0f},{:.0f}\n", run, node + 1, milliseconds(ac[i].at),
                     ac[i].value, dc[i].value);
    }
  }
  return text;
}

std::string events_csv(const series::Recording& recording, const std::string& run) {
  std::string text = "system,benchmark,run,time_ms,event,value,step_or_samples\n";
  for (const series::Event& event : recording.events) {
    text += fmt::format("twin,{},{},{},{},,\n", run, run, milliseconds(event.at), event.kind);
  }
  return text;
}

report::Json to_json(const twin::NodeStatistics& statistics) {
  report::Json made = {{"nodes", statistics.nodes}};
  made["mean_w"] = statistics.blocks.empty() ? report::Json(nullptr) : report::number(statistics.blocks.front().mean_w);
  made["blocks"] = report::Json::array();
  for (const series::BlockStatistic& block : statistics.blocks) {
    made["blocks"].push_back({{"window_s", block.width.value()}, {"blocks", block.blocks}, {"sd_w", block.sd_w}});
  }
  made["pairwise_correlation"] = report::number(statistics.correlation);
  made["step_period_s"] =
      statistics.step_period > Seconds(0) ? report::number(statistics.step_period.value()) : report::Json(nullptr);
  return made;
}

std::vector<std::string> row(const std::string& meter, const twin::NodeStatistics& statistics) {
  std::vector<std::string> cells{meter};
  if (!statistics.blocks.empty()) cells.push_back(format(Watts(statistics.blocks.front().mean_w)));
  for (const series::BlockStatistic& block : statistics.blocks) cells.push_back(format(Watts(block.sd_w)));
  cells.push_back(fmt::format("{:.2f}", statistics.correlation));
  cells.push_back(statistics.step_period > Seconds(0) ? format(statistics.step_period) : "none found");
  return cells;
}

}  // namespace

Result<> record_nodes(twin::Scenario scenario, Seconds duration, const std::string& path, Context& context) {
  if (duration < Seconds(60) || duration > kLongest) {
    return fail(ErrorCode::input, fmt::format("a duration of {} is not between 1 min and 24 h", format(duration)),
                "--duration", "for example --duration 57min");
  }
  const std::string events = path + ".events.csv";
  if (context.options.dry_run) {
    return say_plan(context, "record",
                    {{"Source", "the nodes of " + scenario.plant()},
                     {"Duration", format(duration)},
                     {"Recording", "would be written: " + path},
                     {"Events", "would be written: " + events}});
  }
  FLYBALL_ASSIGN(twin::Machine machine, scenario.build());
  const auto recording = twin::record_nodes(machine, duration, kSimulatedStart, scenario.name);
  FLYBALL_TRY(context.files.write_atomically(path, power_csv(recording, scenario.name)));
  FLYBALL_TRY(context.files.write_atomically(events, events_csv(recording, scenario.name)));
  const auto ac = twin::node_statistics(recording, Scope::node_ac);
  const auto dc = twin::node_statistics(recording, Scope::node_dc);
  if (context.options.json) {
    report::Json made = report::document("record");
    made["file"] = report::text(path);
    made["events_file"] = report::text(events);
    made["source"] = report::text(scenario.plant());
    made["seed"] = scenario.parameters.seed;
    made["duration_s"] = report::number(duration.value());
    made["dc"] = to_json(dc);
    made["ac"] = to_json(ac);
    return context.out.write(report::dump(made));
  }
  report::Table table;
  table.caption = fmt::format("{} nodes of {}, seed {}; training only; standard deviation of block means of the sum",
                              dc.nodes, scenario.plant(), scenario.parameters.seed);
  table.columns = {{"meter"}, {"mean"}, {"2 s"}, {"5 s"}, {"10 s"}, {"30 s"}, {"pairwise correlation"}, {"step"}};
  table.rows = {row("DC", dc), row("AC", ac)};
  return context.out.write(report::to_text(table) + fmt::format("\nRecorded into {} and {}\n", path, events));
}

}  // namespace flyball::cli
