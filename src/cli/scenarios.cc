#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/names.h"
#include "base/presets.h"
#include "base/text.h"
#include "cli/app.h"
#include "report/json.h"
#include "report/table.h"
#include "twin/clock_preset.h"
#include "twin/facility_scenario.h"
#include "twin/scenario.h"

namespace flyball::cli {
namespace {

struct Options {
  std::string name;
  std::vector<std::string> set;
};

/// What was measured, by whom, under which licence: of the curve by limit or of the clock curve, if there is one.
struct Measured {
  std::string name, source, licence, method;
};

Result<Measured> measured(const twin::Scenario& scenario) {
  if (scenario.curve) {
    return Measured{scenario.curve->name, scenario.curve->source, scenario.curve->licence, scenario.curve->method};
  }
  FLYBALL_ASSIGN(const twin::ClockPreset preset, twin::clock_preset(scenario.parameters.preset));
  if (preset.points.empty()) return Measured{};
  return Measured{std::string(preset.name), std::string(preset.source), std::string(preset.licence),
                  std::string(preset.method)};
}

report::Json text_or_null(const std::string& text) { return text.empty() ? report::Json(nullptr) : report::text(text); }

report::Json to_json(const twin::Scenario& scenario, const Measured& data) {
  report::Json one = {{"name", scenario.name}, {"summary", scenario.summary}};
  one["sha256"] = scenario.hash();
  one["curve"] = text_or_null(data.name);
  one["source"] = text_or_null(data.source);
  one["licence"] = text_or_null(data.licence);
  one["method"] = text_or_null(data.method);
  one["parameters"] = report::Json::object();
  one["parameter_sources"] = report::Json::object();
  for (const twin::ParameterInfo& p : twin::list_parameters(scenario.parameters)) {
    one["parameters"][p.key] = p.value;
    one["parameter_sources"][p.key] = report::text(scenario.source(p));
  }
  return one;
}

/// As `--set` takes it, in the unit that people read it in where that is as exact; bytes, which it takes as a number,
/// with the unit behind them.
std::string readable(const twin::ParameterInfo& p) {
  constexpr std::string_view kHertz = "Hz";
  if (p.value.ends_with(kHertz)) {
    const auto hertz = parse_double(std::string_view(p.value).substr(0, p.value.size() - kHertz.size()));
    for (const auto& [unit, factor] : {std::pair{"GHz", 1e9}, std::pair{"MHz", 1e6}, std::pair{"kHz", 1e3}}) {
      if (hertz && *hertz >= factor && format_exact(*hertz / factor).size() < p.value.size() - kHertz.size())
        return format_exact(*hertz / factor) + unit;
    }
  }
  if (p.key.ends_with("_bytes")) {
    const auto bytes = parse_double(p.value);
    if (bytes && *bytes >= 1024.0 * 1024)
      return fmt::format("{} ({:.4g} GiB)", p.value, *bytes / (1024.0 * 1024 * 1024));
  }
  return p.value;
}

struct Lists {
  report::Json document = report::document("scenarios");
  report::Table machines, buildings, detail;

  Lists() {
    document["scenarios"] = report::Json::array();
    document["buildings"] = report::Json::array();
    machines.columns = {{"scenario"}, {"what it is"}, {"curve"}};
    buildings.columns = {{"building"}, {"what it is"}};
    buildings.caption = "for flyball record and calibrate explain, --scenario NAME:";
    detail.columns = {{"key (--set key=value)"}, {"value"}, {"source"}};
  }
};

Result<> add_machine(const std::string& name, const std::string& folder, const Options& options, Context& context,
                     Lists& made) {
  FLYBALL_ASSIGN(twin::Scenario scenario, twin::load_scenario(context.files, folder, name));
  FLYBALL_TRY(twin::override_parameters(scenario, options.set));
  FLYBALL_ASSIGN(const Measured data, measured(scenario));
  made.document["scenarios"].push_back(to_json(scenario, data));
  made.machines.rows.push_back({name, scenario.summary, data.name.empty() ? "parametric" : data.name});
  for (const twin::ParameterInfo& p : twin::list_parameters(scenario.parameters)) {
    made.detail.rows.push_back({p.key, readable(p), scenario.source(p)});
  }
  made.detail.caption = "sha256 " + scenario.hash() + (data.source.empty() ? "" : "\n" + data.source);
  return {};
}

Result<> add_building(const std::string& name, const std::string& folder, const Options& options, Context& context,
                      Lists& made) {
  FLYBALL_ASSIGN(twin::FacilityScenario scenario, twin::load_facility(context.files, folder, name));
  for (const std::string& set : options.set) FLYBALL_TRY(twin::override_parameter(scenario, set));
  report::Json one = {{"name", name}, {"summary", scenario.summary}};
  one["parameters"] = report::Json::object();
  one["parameter_sources"] = report::Json::object();
  for (const twin::ParameterInfo& p : twin::list_parameters(scenario.setup.parameters)) {
    one["parameters"][p.key] = p.value;
    one["parameter_sources"][p.key] = report::text(scenario.source(p));
    made.detail.rows.push_back({p.key, readable(p), scenario.source(p)});
  }
  made.document["buildings"].push_back(std::move(one));
  made.buildings.rows.push_back({name, scenario.summary});
  return {};
}

Result<> scenarios(const Options& options, Context& context) {
  FLYBALL_ASSIGN(const std::string folder, presets_folder());
  FLYBALL_ASSIGN(std::vector<std::string> machines, twin::scenario_names(context.files, folder));
  FLYBALL_ASSIGN(std::vector<std::string> buildings, twin::facility_names(context.files, folder));
  if (options.name.empty() && !options.set.empty()) {
    return fail(ErrorCode::input, "no scenario is named whose parameters are to change", "--set",
                "flyball scenarios pretrain-8 --set absorbable_wait_fraction=0.05");
  }
  if (!options.name.empty()) {
    std::vector<std::string> all = machines;
    all.insert(all.end(), buildings.begin(), buildings.end());
    const auto others = [&](const std::string& each) { return each != options.name; };
    std::erase_if(machines, others);
    std::erase_if(buildings, others);
    if (machines.empty() && buildings.empty()) {
      return fail(ErrorCode::input, fmt::format("there is no scenario '{}'", options.name.substr(0, 64)), {},
                  names_in_words(options.name, all));
    }
  }
  Lists made;
  for (const std::string& each : machines) FLYBALL_TRY(add_machine(each, folder, options, context, made));
  for (const std::string& each : buildings) FLYBALL_TRY(add_building(each, folder, options, context, made));
  if (context.options.json) return context.out.write(report::dump(made.document));
  std::string text;
  for (const report::Table* table : {&made.machines, &made.buildings}) {
    if (!table->rows.empty()) text += (text.empty() ? "" : "\n") + report::to_text(*table);
  }
  if (!options.name.empty()) text += "\n" + report::to_text(made.detail);
  return context.out.write(text);
}

}  // namespace

void add_scenarios(Registry& registry) {
  auto options = std::make_shared<Options>();
  CLI::App& command =
      registry.add({.name = "scenarios",
                    .summary = "Machines and buildings that the twin can be, and what can be set about them",
                    .examples = "  flyball scenarios\n"
                                "  flyball scenarios pretrain-8 --json               parameters, sources, hash\n"
                                "  flyball scenarios pretrain-8 --set absorbable_wait_fraction=0.05\n"
                                "  flyball scenarios facility-1000                   a building\n"
                                "The hash is the SHA-256 of all that decides what the machine does but the seed"},
                   [options](Context& context) { return scenarios(*options, context); });
  command.add_option("NAME", options->name, "Only this one, with all its parameters");
  command.add_option("--set", options->set, "Change a parameter of it; may be given again")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
}

}  // namespace flyball::cli
