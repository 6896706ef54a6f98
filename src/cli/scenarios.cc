#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/presets.h"
#include "base/text.h"
#include "cli/app.h"
#include "report/json.h"
#include "report/table.h"
#include "twin/clock_preset.h"
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

Result<> scenarios(const Options& options, Context& context) {
  FLYBALL_ASSIGN(const std::string folder, presets_folder());
  FLYBALL_ASSIGN(std::vector<std::string> names, twin::scenario_names(context.files, folder));
  if (!options.name.empty()) names = {options.name};
  if (options.name.empty() && !options.set.empty()) {
    return fail(ErrorCode::input, "no scenario is named whose parameters are to change", "--set",
                "flyball scenarios pretrain-8 --set absorbable_wait_fraction=0.05");
  }
  report::Json made = report::document("scenarios");
  made["scenarios"] = report::Json::array();
  report::Table list, detail;
  list.columns = {{"scenario"}, {"what it is"}, {"curve"}};
  detail.columns = {{"key (--set key=value)"}, {"value"}, {"source"}};
  for (const std::string& each : names) {
    FLYBALL_ASSIGN(twin::Scenario scenario, twin::load_scenario(context.files, folder, each));
    FLYBALL_TRY(twin::override_parameters(scenario, options.set));
    FLYBALL_ASSIGN(const Measured data, measured(scenario));
    made["scenarios"].push_back(to_json(scenario, data));
    list.rows.push_back({each, scenario.summary, data.name.empty() ? "parametric" : data.name});
    for (const twin::ParameterInfo& p : twin::list_parameters(scenario.parameters)) {
      detail.rows.push_back({p.key, readable(p), scenario.source(p)});
    }
    detail.caption = "sha256 " + scenario.hash() + (data.source.empty() ? "" : "\n" + data.source);
  }
  if (context.options.json) return context.out.write(report::dump(made));
  FLYBALL_TRY(context.out.write(report::to_text(list)));
  return options.name.empty() ? Result<>{} : context.out.write("\n" + report::to_text(detail));
}

}  // namespace

void add_scenarios(Registry& registry) {
  auto options = std::make_shared<Options>();
  CLI::App& command =
      registry.add({.name = "scenarios",
                    .summary = "Machines that the twin can be, and what can be set about them",
                    .examples = "  flyball scenarios\n"
                                "  flyball scenarios pretrain-8 --json               parameters, sources, hash\n"
                                "  flyball scenarios pretrain-8 --set absorbable_wait_fraction=0.05\n"
                                "The hash is the SHA-256 of all that decides what the machine does but the seed"},
                   [options](Context& context) { return scenarios(*options, context); });
  command.add_option("NAME", options->name, "Only this one, with all its parameters");
  command.add_option("--set", options->set, "Change a parameter of it; may be given again")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all();
}

}  // namespace flyball::cli
