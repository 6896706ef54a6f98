#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/cause_report.h"
#include "cli/facility_file.h"
#include "cli/facility_twin.h"
#include "cli/progress.h"
#include "twin/facility.h"

namespace flyball::cli {
namespace {

struct Options {
  std::string file, map, reference, report;
  FacilityTwinOptions twin;
};

/// Takes samples, makes blocks of them.
class Explanation {
 public:
  explicit Explanation(const facility::CauseOptions& options) : watch(options) {
    input.reference = options.reference_time;
  }

  void take(const FacilitySample& sample) {
    if (input.samples == 0) input.first = sample.at;
    input.last = sample.at;
    ++input.samples;
    if (sample.it && sample.utility) {
      const Watts in = *sample.utility + sample.generated.value_or(Watts()) + sample.discharged.value_or(Watts());
      ++both_;
      if (in < *sample.it) ++less_;
    }
    if (const auto block = builder_.take(sample)) add(*block);
  }
  void finish() {
    if (const auto block = builder_.finish()) add(*block);
    if (2 * less_ > both_)
      input.warnings.push_back(
          fmt::format("less comes in than the IT draws in {} of {} samples: the meters contradict each other, and "
                      "what is learned from them is no building's; check columns and scales",
                      less_, both_));
  }

  facility::CauseWatch watch;
  ExplainInput input;

 private:
  void add(const facility::SampleBlock& block) {
    ++input.blocks;
    watch.take(block);
  }
  facility::BlockBuilder builder_;
  std::uint64_t both_ = 0, less_ = 0;  ///< samples with both meters; those in which they cannot both be right
};

Result<> read_file(const Options& options, Explanation& made, Context& context) {
  series::FacilityMap map;
  if (!options.map.empty()) {
    FLYBALL_ASSIGN(map, read_facility_map(options.map, context.files));
  }
  made.input.source = options.file;
  return read_facility_file(options.file, map, series::RowOrder::of_time, made.input.warnings,
                            [&](const FacilitySample& sample) { made.take(sample); });
}

Result<> simulate(const Options& options, Explanation& made, Context& context) {
  FLYBALL_ASSIGN(const twin::FacilitySetup setup, facility_setup(options.twin, context));
  made.input.source = fmt::format("{} (simulated), seed {}", options.twin.scenario, options.twin.seed);
  for (const twin::FacilityFault& fault : setup.faults) made.input.source += ", with " + twin::to_string(fault);
  FLYBALL_ASSIGN(twin::Facility building, twin::Facility::make(setup));
  Progress progress(context.options, context.clock);
  for (std::uint64_t i = 0; i < building.steps(); ++i) {
    made.take(building.step());
    if (i % 10'000 == 0)
      progress.show(fmt::format("simulating: {} of {}", format(made.input.last - setup.start), format(setup.length)));
  }
  return {};
}

Result<> calibrate_explain(const Options& options, Context& context) {
  if (options.file.empty() == options.twin.scenario.empty())
    return fail(ErrorCode::input, "name a file, or a simulated building with --scenario", "calibrate explain",
                "flyball calibrate explain samples.csv");
  if (!options.twin.fault.empty() && options.twin.scenario.empty())
    return fail(ErrorCode::input, "only a simulated building takes a fault", "--fault", "add --scenario facility-1000");
  facility::CauseOptions causes;
  if (!options.reference.empty()) {
    FLYBALL_ASSIGN(causes.reference_time, parse_duration(options.reference, "--reference"));
  }
  Explanation made(causes);
  FLYBALL_TRY(options.file.empty() ? simulate(options, made, context) : read_file(options, made, context));
  made.finish();
  if (made.input.blocks == 0)
    made.input.warnings.push_back(
        "no ten minutes hold three samples, so nothing is watched: give samples at most 200 s apart");
  for (const std::string& warning : made.input.warnings) log::warning("calibrate", "{}", warning);
  if (made.watch.learning())
    log::warning("calibrate",
                 "all {} are within the reference: nothing can be found; give more, or a shorter --reference",
                 format(made.input.last - made.input.first));
  if (!options.report.empty())
    FLYBALL_TRY(context.files.write_atomically(options.report, explain_html(made.input, made.watch)));
  return context.out.write(context.options.json ? report::dump(explain_json(made.input, made.watch))
                                                : explain_text(made.input, made.watch));
}

}  // namespace

void add_calibrate_explain(Registry& registry) {
  auto options = std::make_shared<Options>();
  CLI::App& command = registry.add(
      {.name = "calibrate explain",
       .summary = "Say what a building no longer does as before, since when, and which cause explains it",
       .examples = std::string("  flyball calibrate explain samples.csv --report causes.html\n"
                               "  flyball calibrate explain bms.csv --map columns.toml --reference 14d --json\n"
                               "  flyball calibrate explain --scenario facility-1000 --fault ups_mode --seed 3\n"
                               "Rows may stand in any order.\n") +
                   kFacilityMapHelp},
      [options](Context& context) { return calibrate_explain(*options, context); });
  command.add_option("FILE", options->file, "Samples of a building: CSV, also .gz or .zst");
  command.add_option("--map", options->map, "Which column is what")->type_name("FILE");
  command.add_option("--reference", options->reference, "So long from the first sample on nothing is wrong (10 d)")
      ->type_name("TIME");
  command.add_option("--report", options->report, "A page with plots")->type_name("FILE");
  command.add_option("--scenario", options->twin.scenario, "A simulated building in place of a file")
      ->type_name("NAME");
  add_seed(command, options->twin.seed, "Of the simulated building");
  command.add_option("--set", options->twin.set, "Change a parameter of it; may be given again")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
  command.add_option("--duration", options->twin.duration, "Of the simulation")->type_name("TIME");
  add_fault(command, options->twin);
}

}  // namespace flyball::cli
