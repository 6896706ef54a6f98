#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/checksum.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/cause_report.h"
#include "cli/facility_file.h"
#include "cli/signals.h"
#include "control/facility_watch.h"

namespace flyball::cli {
namespace {

struct Options {
  std::string file, map, reference, metrics;
  std::string interval = "10s";
  bool once = false;
};

Result<> show(control::FacilityWatch& watch, const std::vector<std::string>& lines,
              const std::vector<std::string>& texts, const Options& options, Context& context) {
  for (const std::string& notice : watch.notices()) log::warning("calibrate", "{}", notice);
  for (const std::string& line : context.options.json ? lines : texts) FLYBALL_TRY(context.out.write(line));
  if (options.metrics.empty()) return {};
  return context.files.write_atomically(options.metrics, cause_metrics(watch));
}

/// However the way to its folder is written. The name itself stays: a link that is set to the next file is a rotation.
std::string plain_path(const std::string& file) {
  const std::filesystem::path path(file);
  std::error_code absent;  // then opening it tells
  const auto folder = std::filesystem::canonical(path.has_parent_path() ? path.parent_path() : ".", absent);
  return absent || !path.has_filename() ? file : (folder / path.filename()).string();
}

Result<> calibrate_watch(const Options& options, Context& context) {
  // Not after days of reading.
  if (!options.metrics.empty()) FLYBALL_TRY(check_report_path(options.metrics, "--metrics"));
  control::FacilityWatchOptions watching;
  watching.input = plain_path(options.file);
  FLYBALL_ASSIGN(const Settings settings, load_settings(context));
  // Each input has a folder of its own.
  watching.folder =
      fmt::format("{}/facility-watch-{}", settings.run.state_dir, sha256_hex(watching.input).substr(0, 12));
  if (!options.map.empty()) {
    FLYBALL_ASSIGN(watching.map, read_facility_map(options.map, context.files));
  }
  if (!options.reference.empty()) {
    FLYBALL_ASSIGN(watching.causes.reference_time, parse_duration(options.reference, "--reference"));
  }
  FLYBALL_ASSIGN(const Seconds interval, parse_duration(options.interval, "--interval"));
  if (context.options.dry_run)
    return say_plan(context, "calibrate watch",
                    {{"Input", watching.input}, {"State", watching.folder}, {"Every", format(interval)}});
  std::vector<std::string> texts;
  const auto format_event = [&](const control::FacilityEvent& event) {
    texts.push_back(event_text(event));
    return event_line(event);
  };
  FLYBALL_ASSIGN(control::FacilityWatch watch,
                 control::FacilityWatch::open(std::move(watching), context.files, format_event));
  const StopSignal stop;
  std::uint64_t shown_blocks = UINT64_MAX;
  while (!stop.received()) {
    texts.clear();
    FLYBALL_ASSIGN(const std::vector<std::string> lines, watch.poll());
    if (watch.behind()) {
      for (const std::string& text : context.options.json ? lines : texts) FLYBALL_TRY(context.out.write(text));
      continue;
    }
    if (watch.blocks() != shown_blocks || !lines.empty()) {
      FLYBALL_TRY(show(watch, lines, texts, options, context));
      shown_blocks = watch.blocks();
    }
    for (const std::string& notice : watch.notices()) log::warning("calibrate", "{}", notice);
    if (options.once) return {};
    constexpr Seconds kNap(0.1);
    const MonoTime next = context.clock.now() + interval;
    while (context.clock.now() < next && !stop.received())
      context.clock.sleep_until(std::min(next, context.clock.now() + kNap));
  }
  return {};
}

}  // namespace

void add_calibrate_watch(Registry& registry) {
  auto options = std::make_shared<Options>();
  CLI::App& command = registry.add(
      {.name = "calibrate watch",
       .summary = "Follow a growing file of a building's samples and tell what goes wrong, and why",
       .examples =
           std::string(
               "  flyball calibrate watch /var/log/building.csv --metrics /var/lib/node_exporter/building.prom\n"
               "  flyball calibrate watch building.csv --once --json\n"
               "Each finding is told once, also over a restart or kill -9: all of them are in events.ndjson in\n"
               "the state folder. A file that is rotated (f.csv.1, not compressed) is read to its end first, also "
               "after a\n"
               "restart; a shortened one is read from its beginning.\n") +
           kFacilityMapHelp},
      [options](Context& context) { return calibrate_watch(*options, context); });
  command.add_option("FILE", options->file, "Samples of a building: CSV that grows")->required();
  command.add_option("--map", options->map, "Which column is what")->type_name("FILE");
  command.add_option("--reference", options->reference, "So long from the first sample on nothing is wrong (10 d)")
      ->type_name("TIME");
  command.add_option("--interval", options->interval, "Between looks at the file")
      ->type_name("TIME")
      ->capture_default_str();
  command.add_option("--metrics", options->metrics, "Prometheus text, written after every block")->type_name("FILE");
  command.add_flag("--once", options->once, "Read what is there and end");
}

}  // namespace flyball::cli
