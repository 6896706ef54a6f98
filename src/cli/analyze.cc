#include "cli/analyze.h"

#include <CLI/CLI.hpp>

#include "cli/arguments.h"

namespace flyball::cli {
namespace {

CLI::App& add(Registry& registry, const std::string& what, const std::string& summary, const std::string& examples,
              Result<> (*run)(const AnalyzeOptions&, Context&), const std::shared_ptr<AnalyzeOptions>& options) {
  CLI::App& command = registry.add({.name = "analyze " + what, .summary = summary, .examples = examples},
                                   [options, run](Context& context) { return run(*options, context); });
  command.add_option("POWER", options->files, "Telemetry of any format that is read, also .gz or .zst")->required();
  command.add_option("--events", options->events, "What happened when: run_start, run_stop, eval_start …")
      ->type_name("FILE");
  command.add_option("--meter", options->meter, "Whose power: ac, dc, board, rack …")->type_name("SCOPE");
  command.add_option("--extra", options->extra, "Declared constant draw that no meter sees, as 59570W")
      ->type_name("POWER");
  command.add_option("--gap", options->gap_periods, "Longer than this many sampling periods is a hole")
      ->check(wrong_if_not_positive)
      ->capture_default_str();
  command.add_option("--report", options->report, "Also write an HTML page")->type_name("FILE");
  return command;
}

}  // namespace

void add_analyze(Registry& registry) {
  auto energy = std::make_shared<AnalyzeOptions>();
  CLI::App& e = add(registry, "energy", "Energy, money and carbon of each run",
                    "  flyball analyze energy power.csv.gz --events events.csv.gz --meter ac --extra 59570W\n"
                    "  flyball analyze energy power.csv --price 0.25 --carbon 380 --report energy.html\n"
                    "--price and --carbon: per kWh, a number or a CSV of time,per_kwh with zoned stamps",
                    analyze_energy, energy);
  e.add_option("--price", energy->price, "Money per kWh: a number or a file")->type_name("RATE")->capture_default_str();
  e.add_option("--carbon", energy->carbon, "gCO2e per kWh: a number or a file")
      ->type_name("RATE")
      ->capture_default_str();
  e.add_option("--currency", energy->currency, "Of the price")->type_name("CODE")->capture_default_str();
  e.add_option("--tokens", energy->tokens, "Made in each run, where the events do not say")
      ->type_name("COUNT")
      ->check(wrong_if_not_positive);
  e.add_flag("--bridge", energy->bridge, "Integrate across holes; the time so filled is stated");

  auto windows = std::make_shared<AnalyzeOptions>();
  CLI::App& w = add(registry, "windows", "How often mean power exceeds budgets, by window",
                    "  flyball analyze windows power.csv.gz --meter dc --budget 450kW --budget 460kW\n"
                    "  flyball analyze windows power.csv --budget 314.6W --window 0.5s --window 30s --json",
                    analyze_windows, windows);
  w.add_option("--budget", windows->budgets, "Of the sum of all meters; may be repeated")
      ->type_name("POWER")
      ->required();
  w.add_option("--window", windows->windows, "May be repeated; default 0.5 s to 5 min")->type_name("TIME");

  auto phases = std::make_shared<AnalyzeOptions>();
  CLI::App& p =
      add(registry, "phases", "Training, evaluations, checkpoints and rest, found in power alone",
          "  flyball analyze phases power.csv.gz --meter dc\n"
          "With --events the found phases are compared with those of the job; they are never used to find them",
          analyze_phases, phases);
  p.add_option("--budget", phases->budgets, "Drawn in the report's plot")->type_name("POWER");

  auto ramps = std::make_shared<AnalyzeOptions>();
  add(registry, "ramps", "How fast power changes, and its spectrum",
      "  flyball analyze ramps power.csv.gz --meter ac --json", analyze_ramps, ramps);
}

}  // namespace flyball::cli
