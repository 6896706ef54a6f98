#include <CLI/CLI.hpp>

#include "cli/arguments.h"
#include "cli/calibrate.h"
#include "cli/facility_file.h"

namespace flyball::cli {
namespace {

Result<> calibrate_fit(const CalibrateOptions& options, Context& context) {
  AnyMap map;
  if (!options.map.empty()) {
    FLYBALL_ASSIGN(map, read_map(options.map, context.files));
  } else {
    FLYBALL_ASSIGN(map, known_map(options.train));
  }
  if (const auto* building = std::get_if<FacilityMap>(&map); building != nullptr)
    return calibrate_facility(options, *building, context);
  if (!options.report.empty() || !options.phases.empty() || !options.feed_rating.empty() || !options.carbon.empty())
    return fail(ErrorCode::input, "--report, --phases, --feed-rating and --carbon are for buildings", options.train);
  const auto* meter = std::get_if<MeterMap>(&map);
  if (meter != nullptr && !(options.keep.empty() && options.reproduce.empty()))
    return fail(ErrorCode::input, "versions are kept of plants and buildings, and this is a meter",
                "--keep, --reproduce");
  if (meter != nullptr) return calibrate_savings(options, *meter, context);
  return calibrate_plant(options, std::get<PlantMap>(map), context);
}

}  // namespace

void add_calibrate_fit(Registry& registry) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App& command = registry.add(
      {.name = "calibrate fit",
       .summary = "Learn what a plant or a facility draws, and say how well it is foretold",
       .examples =
           "  flyball calibrate fit plant-12.csv --evaluate plant-03.csv --weather w-12.csv --weather w-03.csv\n"
           "  flyball calibrate fit mine.csv --evaluate later.csv --weather air.csv --map columns.toml --json\n"
           "  flyball calibrate fit meter.csv --weather air.csv --change-from 2025-03-01 --change-to 2025-03-10\n"
           "Built in: the columns of a chiller plant (Time, RT, kW_Tot, CH1 … CH4; weather DateTime, WBT_C), and of a\n"
           "meter (start, value in kWh; weather dt, tempF), whose avoided energy is then stated.\n"
           "A map names those of any other file, a column by its name or as \"#3\":\n"
           "  zone = \"Europe/Berlin\"\n"
           "  plant.time = \"stamp\"\n"
           "  plant.load = \"it_kw\"              # load_unit = \"kW\": W, kW, MW or RT\n"
           "  plant.power = \"utility_kw\"        # power_unit = \"kW\"\n"
           "  plant.units = [\"chiller1\"]        # which run; may be left out\n"
           "  plant.least_load = 10             # hours below are idle\n"
           "  weather.time = \"stamp\"\n"
           "  weather.wet_bulb = \"wb\"           # or dry_bulb and humidity (percent); unit = \"C\" or \"F\"\n"
           "or, of a meter: meter.start, meter.energy, meter.unit = \"kWh\", weather.time, weather.dry_bulb;\n"
           "or, of a building: columns and units as below, means = false where powers are values at their stamp,\n"
           "job = \"pretrain\" where no column says it, phases.start, stop, label, job_type of --phases.\n" +
           std::string("Of a building at least time, it_w and utility_w. ") + kFacilityMapHelp},
      [options](Context& context) { return calibrate_fit(*options, context); });
  command.add_option("TRAIN", options->train, "What is learned from: CSV, also .gz or .zst")->required();
  command.add_option("--evaluate", options->evaluate, "What is foretold; may be repeated")->type_name("FILE");
  command.add_option("--weather", options->weather, "Outdoor air of both; may be repeated")->type_name("FILE");
  command.add_option("--map", options->map, "Which column is what")->type_name("FILE");
  command.add_option("--change-from", options->change_from, "Of a meter: the first day that is not as before")
      ->type_name("DATE");
  command.add_option("--change-to", options->change_to, "The first day after the change")->type_name("DATE");
  command.add_option("--keep", options->keep, "Keep what was learned as a version in the ledger")
      ->type_name("REASON")
      ->check(wrong_if_empty);
  command.add_option("--reproduce", options->reproduce, "Make this kept version again, to the last bit, or fail")
      ->type_name("HASH")
      ->check(wrong_if_empty);
  command
      .add_option("--delay", options->delay, "Foretold from what ended so long before; default 24h, of a building 6h")
      ->type_name("TIME");
  command.add_option("--phases", options->phases, "Of a building: which phase the job was in, with start and stop")
      ->type_name("FILE");
  command.add_option("--report", options->report, "Of a building: also write an HTML page")
      ->type_name("FILE")
      ->check(wrong_if_empty);
  command.add_option("--feed-rating", options->feed_rating, "Of a building: how much IT this feed carries")
      ->type_name("POWER");
  command.add_option("--cooling-rating", options->cooling_rating, "and this cooling, in heat")->type_name("POWER");
  command.add_option("--design-wet-bulb", options->design_wet_bulb, "in this air; default: 99.6th percentile seen")
      ->type_name("TEMPERATURE");
  command.add_option("--carbon", options->carbon, "Of a building: gCO2e per kWh, a number or a CSV of time,per_kwh")
      ->type_name("RATE");
}

}  // namespace flyball::cli
