#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/presets.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/arguments.h"
#include "cli/meter_profile.h"
#include "cli/progress.h"
#include "cli/record_facility.h"
#include "cli/record_nodes.h"
#include "cli/signals.h"
#include "control/board_reader.h"
#include "control/meter_reader.h"
#include "control/sampler.h"
#include "control/twin_progress.h"
#include "device/nvml/nvml_api.h"
#include "device/twin/twin_driver.h"
#include "device/worker/worker_driver.h"
#include "meter/open.h"
#include "report/json.h"
#include "report/table.h"
#include "series/recording_writer.h"
#include "twin/scenario.h"

namespace flyball::cli {
namespace {

/// Simulated recordings begin at a fixed instant, so that same seed means same bytes.
constexpr WallTime kSimulatedStart(1'767'225'600'000'000'000);

struct Options {
  std::string source = "twin";
  std::string scenario = "v100-bert";
  std::vector<std::string> set;
  std::uint64_t seed = 1;
  std::string duration;
  std::vector<std::string> meters;
  std::string interval;  ///< empty: 0.5 s, of a building 10 s
  FacilityTwinOptions building;
};

/// What is recorded, on which clock.
struct Source {
  std::optional<twin::Machine> machine;
  std::optional<VirtualClock> virtual_clock;
  std::unique_ptr<Driver> driver;
  std::unique_ptr<loop::ProgressSource> job;  ///< null where nobody tells
  std::vector<std::pair<meter::Profile, std::unique_ptr<meter::Meter>>> meters;
  Clock* clock = nullptr;
  std::string name;
  std::string boot_id;  ///< of meters: none, their times are anchored to UTC
  bool real_time = false;
};

Result<> open_meters(const Options& options, Context& context, Source& source) {
  if (options.meters.empty()) {
    return fail(ErrorCode::input, "no meter is named", "--meter",
                "flyball record --source meters --meter rack12.conf --output rack12.fbr");
  }
  for (const std::string& name : options.meters) {
    FLYBALL_ASSIGN(meter::Profile profile, load_meter_profile(name, context));
    FLYBALL_ASSIGN(std::unique_ptr<meter::Meter> meter, meter::open_meter(profile, context.clock));
    source.name += (source.name.empty() ? "meters " : ", ") + profile.id;
    source.meters.emplace_back(std::move(profile), std::move(meter));
  }
  source.clock = &context.clock;
  source.real_time = true;
  return {};
}

Result<twin::Scenario> scenario_of(const Options& options, Context& context) {
  FLYBALL_ASSIGN(const std::string presets, presets_folder());
  FLYBALL_ASSIGN(twin::Scenario scenario, twin::load_scenario(context.files, presets, options.scenario));
  FLYBALL_TRY(twin::override_parameters(scenario, options.set));
  scenario.parameters.seed = options.seed;
  return scenario;
}

Result<std::unique_ptr<Source>> open_source(const Options& options, Context& context) {
  auto source = std::make_unique<Source>();
  if (options.source == "twin") {
    FLYBALL_ASSIGN(const twin::Scenario scenario, scenario_of(options, context));
    FLYBALL_ASSIGN(source->machine, scenario.build());
    source->virtual_clock.emplace(kSimulatedStart);
    source->clock = &*source->virtual_clock;
    source->driver = std::make_unique<device::TwinDriver>(*source->machine, *source->clock);
    source->job = std::make_unique<control::TwinProgress>(*source->machine);
    source->name = fmt::format("{} seed {}", scenario.plant(), options.seed);
    FLYBALL_ASSIGN(const DriverEpoch epoch, source->driver->epoch());
    source->boot_id = epoch.boot_id;
    return source;
  }
  if (options.source == "nvml") {
    source->clock = &context.clock;
    source->driver = worker::make_nvml_in_workers(nvml::kDefaultLibrary, context.clock);  // a hung call costs one board
    source->real_time = true;
    FLYBALL_ASSIGN(const DriverEpoch epoch, source->driver->epoch());
    source->name = fmt::format("nvml {}", epoch.version);
    source->boot_id = epoch.boot_id;
    return source;
  }
  if (options.source == "meters") {
    FLYBALL_TRY(open_meters(options, context, *source));
    return source;
  }
  return fail(ErrorCode::unsupported, fmt::format("the source '{}' is not there", options.source), "--source",
              "use twin, twin-nodes, nvml or meters");
}

Result<std::unique_ptr<control::RoundReader>> reader_of(Source& source, Context& context,
                                                        series::RecordingWriter& writer) {
  if (source.driver) {
    return std::make_unique<control::BoardReader>(*source.driver, *source.clock, writer, context.options.gpus,
                                                  source.job.get());
  }
  auto reader = std::make_unique<control::MeterReader>(*source.clock, writer);
  for (auto& [profile, meter] : source.meters) FLYBALL_TRY(reader->add(profile, std::move(meter)));
  return reader;
}

Result<Seconds> duration_of(const Options& options, const Source& source) {
  if (!options.duration.empty()) return parse_duration(options.duration);
  if (source.real_time) return Seconds(0);  // until it is stopped
  return Seconds(600);
}

/// Until the time is over or someone says stop. Waits in short sleeps, so that a signal is heard at once.
void hold_rounds(control::Sampler& sampler, Clock& clock, Seconds duration, const StopSignal& stop,
                 Progress& progress) {
  constexpr Seconds kNap(0.1);
  const MonoTime begin = clock.now();
  while (!stop.received()) {
    if (duration > Seconds(0) && sampler.due() - begin >= duration) return;
    while (clock.now() < sampler.due() && !stop.received()) {
      clock.sleep_until(std::min(sampler.due(), clock.now() + kNap));
    }
    if (stop.received()) return;
    sampler.round();
    progress.show(fmt::format("recording: {}{}", format(clock.now() - begin),
                              duration > Seconds(0) ? " of " + format(duration) : ""));
  }
}

struct Outcome {
  std::string path;
  std::string source;
  bool real_time = false;
  Seconds lasted;
  std::uint64_t bytes = 0;
  std::uint64_t points = 0;
  std::uint64_t dropped = 0;
  control::SamplerReport sampler;
};

std::string text_of(const Outcome& outcome) {
  const control::SamplerReport& r = outcome.sampler;
  report::Table table;
  table.columns = {{""}, {""}};
  table.rows = {{"Recording", fmt::format("{}, {} bytes", outcome.path, outcome.bytes)},
                {"Source", outcome.source},
                {"Covers", format(outcome.lasted) + (outcome.real_time ? "" : " simulated")},
                {"Rounds", fmt::format("{} every {}, {} points", r.rounds, format(r.interval), outcome.points)},
                {"Gaps", r.gaps == 0 ? "none" : fmt::format("{}, the longest {}", r.gaps, format(r.longest_gap))},
                {"Failed reads", std::to_string(r.failed_reads)}};
  if (outcome.real_time) {
    table.rows.push_back(
        {"Overhead", fmt::format("{} of a core; a round of reads takes {}, {} at most", format_percent(r.core_fraction),
                                 format(r.call_time_mean), format(r.call_time_max))});
  }
  if (r.slowed > 0) table.rows.push_back({"Slowed down", fmt::format("{} times, reading cost too much", r.slowed)});
  if (outcome.dropped > 0) table.rows.push_back({"Lost", fmt::format("{} points: {}", outcome.dropped, r.flush_error)});
  return report::to_text(table);
}

report::Json json_of(const Outcome& outcome) {
  const control::SamplerReport& r = outcome.sampler;
  report::Json made = report::document("record");
  made["file"] = report::text(outcome.path);
  made["source"] = report::text(outcome.source);
  made["duration_s"] = report::number(outcome.lasted.value());
  made["interval_s"] = report::number(r.interval.value());
  made["rounds"] = r.rounds;
  made["points"] = outcome.points;
  made["points_dropped"] = outcome.dropped;
  made["size_bytes"] = outcome.bytes;
  made["gaps"] = r.gaps;
  made["longest_gap_s"] = report::number(r.longest_gap.value());
  made["failed_reads"] = r.failed_reads;
  made["round_mean_s"] = outcome.real_time ? report::number(r.call_time_mean.value()) : report::Json(nullptr);
  made["round_max_s"] = outcome.real_time ? report::number(r.call_time_max.value()) : report::Json(nullptr);
  made["core_fraction"] = outcome.real_time ? report::number(r.core_fraction) : report::Json(nullptr);
  made["slowed"] = r.slowed;
  return made;
}

/// What is in a file that lacks something: whatever ended the disk's patience, these blocks are whole.
std::string kept_text(const series::RecordingWriter& writer) {
  const auto until = writer.kept_until();
  if (!until) return "the file holds no point of this session";
  return fmt::format("the file holds {} of {} points, whole and readable, the last of {}", writer.kept_points(),
                     writer.points(), format_rfc3339(*until));
}

Result<> close_recording(series::RecordingWriter& writer, MonoTime at, const std::string& reason) {
  auto closed = writer.close(at, reason);
  if (!closed) closed.error().what += "; " + kept_text(writer);
  return closed;
}

Result<> all_kept(const series::RecordingWriter& writer, const std::string& path, const std::string& flush_error) {
  if (writer.dropped_points() == 0) return {};
  return fail(ErrorCode::degraded,
              fmt::format("{} points could not be kept; {}", writer.dropped_points(), kept_text(writer)), path,
              flush_error);
}

Result<> record(const Options& options, Context& context) {
  const std::string path = context.out.take_path();
  if (path.empty()) return fail(ErrorCode::input, "no file is named", "--output", "flyball record --output run.fbr");
  const bool building = options.source == "twin" && is_facility(context, options.scenario);
  const char* const usual = building ? "10s" : "0.5s";
  FLYBALL_ASSIGN(const Seconds interval, parse_seconds(options.interval.empty() ? usual : options.interval));
  if (interval < Seconds(0.05) || interval > Seconds(3600)) {
    return fail(ErrorCode::input, fmt::format("an interval of {} is not between 50 ms and 1 h", format(interval)),
                "--interval");
  }
  if (!options.meters.empty() && options.source != "meters") {
    return fail(ErrorCode::input, "the source " + options.source + " has no meters", "--meter", "--source meters");
  }
  if (building) {
    FacilityTwinOptions twin = options.building;
    twin.scenario = options.scenario;
    twin.set = options.set;
    twin.seed = options.seed;
    twin.duration = options.duration;
    return record_facility(twin, interval, path, context);
  }
  if (!options.building.fault.empty())
    return fail(ErrorCode::input, "only a simulated building takes a fault", "--fault", "--scenario facility-1000");
  if (options.source == "twin-nodes") {
    FLYBALL_ASSIGN(twin::Scenario scenario, scenario_of(options, context));
    FLYBALL_ASSIGN(const Seconds lasting, parse_duration(options.duration.empty() ? "10min" : options.duration));
    return record_nodes(std::move(scenario), lasting, path, context);
  }
  FLYBALL_ASSIGN(const auto source, open_source(options, context));
  FLYBALL_ASSIGN(const Seconds duration, duration_of(options, *source));
  if (!source->real_time && context.files.exists(path)) {
    return fail(ErrorCode::input, "exists already, and simulated time would begin in it again", path,
                "name another file");
  }
  if (context.options.dry_run) {
    return say_plan(context, "record",
                    {{"Source", source->name},
                     {"Interval", format(interval)},
                     {"Duration", duration > Seconds(0) ? format(duration) : "until stopped"},
                     {"Recording", "would be written: " + path}});
  }
  Clock& clock = *source->clock;
  const MonoTime begin = clock.now();
  FLYBALL_ASSIGN(const auto writer,
                 series::RecordingWriter::open(context.files, path,
                                               {clock.wall(), begin, source->boot_id,
                                                fmt::format("flyball {}", version()), source->name, interval}));
  FLYBALL_ASSIGN(const auto reader, reader_of(*source, context, *writer));
  control::SamplerOptions sampling;
  sampling.interval = interval;
  if (!source->meters.empty()) sampling.most_busy_fraction = 1;  // waiting for a meter holds up no job
  control::Sampler sampler(*reader, clock, *writer, sampling,
                           source->real_time ? control::process_core_time : std::function<Seconds()>());
  FLYBALL_TRY(sampler.start());
  const StopSignal stop;
  {
    Progress progress(context.options, context.clock);
    hold_rounds(sampler, clock, duration, stop, progress);
  }
  Outcome outcome{path, source->name, source->real_time, clock.now() - begin, 0, 0, 0, sampler.report()};
  FLYBALL_TRY(close_recording(*writer, clock.now(), stop.received() ? "stopped by a signal" : "the time was over"));
  outcome.bytes = writer->bytes();
  outcome.points = writer->points();
  outcome.dropped = writer->dropped_points();
  FLYBALL_TRY(context.out.write(context.options.json ? report::dump(json_of(outcome)) : text_of(outcome)));
  return all_kept(*writer, path, outcome.sampler.flush_error);
}

}  // namespace

void add_record(Registry& registry) {
  auto options = std::make_shared<Options>();
  CLI::App& command = registry.add(
      {.name = "record",
       .summary = "Record what the sensors say",
       .examples =
           "  flyball record --source nvml --output node7.fbr           until Ctrl-C\n"
           "  flyball record --source nvml --duration 1h --interval 0.5s --output node7.fbr\n"
           "  flyball record --scenario v100-bert --duration 30min --output twin.fbr\n"
           "  flyball record --source meters --meter rack12.conf --meter ups.conf --interval 10s --output row3.fbr\n"
           "  flyball record --source twin-nodes --scenario gpt3-64nodes --duration 3412s --output nodes.csv\n"
           "  flyball record --scenario facility-1000 --fault set_point --output building.csv\n"
           "An existing recording of a machine is continued. A signal ends it cleanly; a killed one\n"
           "loses 5 s at most."},
      [options](Context& context) { return record(*options, context); });
  command
      .add_option("--source", options->source,
                  "twin (simulated, in virtual time), twin-nodes (the meters of its nodes, as CSV), nvml or meters")
      ->capture_default_str();
  command.add_option("--scenario", options->scenario, "Of the twin; see flyball scenarios")
      ->type_name("NAME")
      ->capture_default_str();
  add_seed(command, options->seed, "Of the twin: same seed, same recording");
  command.add_option("--set", options->set, "Change a parameter of the scenario; may be given again")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
  command
      .add_option("--meter", options->meters,
                  "Profile of a meter, or the name of one in presets/meters; repeat for more")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  command.add_option("--duration", options->duration, "How long (default: the twin 10min, else until stopped)")
      ->type_name("TIME");
  command.add_option("--interval", options->interval, "Between rounds of reads (0.5s; of a building 10s)")
      ->type_name("TIME");
  add_fault(command, options->building);
}

}  // namespace flyball::cli
