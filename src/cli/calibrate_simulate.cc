#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

#include "base/csv.h"
#include "base/presets.h"
#include "base/text.h"
#include "cli/commands.h"
#include "core/facility_columns.h"
#include "twin/facility_scenario.h"

namespace flyball::cli {
namespace {

struct SimulateOptions {
  std::string building = "facility-1000";
  std::uint64_t seed = 1;
  std::string length;
  std::vector<std::string> set;
};

/// The job with the most GPUs, as calibrate fit reads it.
const JobShare* largest_job(const FacilitySample& sample) {
  const JobShare* largest = nullptr;
  for (const JobShare& job : sample.jobs)
    if (largest == nullptr || job.gpus_fraction > largest->gpus_fraction) largest = &job;
  return largest;
}

void add_row(std::string& text, const FacilitySample& sample) {
  text += format_rfc3339(sample.at);
  for (const FacilityColumn& column : facility_columns()) {
    text += ',';
    // Meters resolve no more.
    if (const auto value = column.get(sample)) fmt::format_to(std::back_inserter(text), "{:.8g}", *value);
  }
  const JobShare* job = largest_job(sample);
  text += ',' + (job == nullptr ? std::string() : std::string(to_string(job->phase)));
  text += ',' + (job == nullptr ? std::string() : csv_cell(job->type)) + '\n';
}

Result<> simulate(const SimulateOptions& options, Context& context) {
  FLYBALL_ASSIGN(const std::string presets, presets_folder());
  FLYBALL_ASSIGN(twin::FacilityScenario scenario, twin::load_facility(context.files, presets, options.building));
  for (const std::string& text : options.set) FLYBALL_TRY(twin::override_parameter(scenario, text));
  scenario.setup.seed = options.seed;
  if (!options.length.empty()) {
    FLYBALL_ASSIGN(scenario.setup.length, parse_seconds(options.length));
  }
  FLYBALL_ASSIGN(twin::Facility facility, twin::Facility::make(scenario.setup));
  std::string text = "time";
  for (const FacilityColumn& column : facility_columns()) text += ',' + std::string(column.name);
  text += ",phase,job_type\n";
  for (std::uint64_t i = 0; i < facility.steps(); ++i) add_row(text, facility.step());
  return context.out.write(text);
}

}  // namespace

void add_calibrate_simulate(Registry& registry) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App& command =
      registry.add({.name = "calibrate simulate",
                    .summary = "What the meters of a simulated building show, as CSV that calibrate fit reads",
                    .examples = "  flyball calibrate simulate facility-1000 --seed 1 --output month.csv\n"
                                "  flyball calibrate fit month.csv --report month.html\n"
                                "A simulation's figures are no building's."},
                   [options](Context& context) { return simulate(*options, context); });
  command.add_option("BUILDING", options->building, "presets/facility/NAME.conf")->capture_default_str();
  command.add_option("--seed", options->seed, "Of weather, jobs, meters and noise")->capture_default_str();
  command.add_option("--length", options->length, "Default: as the building's file says")->type_name("TIME");
  command.add_option("--set", options->set, "A parameter, as facility.cooling.set_point=16C; may be repeated")
      ->type_name("KEY=VALUE");
}

}  // namespace flyball::cli
