#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/presets.h"
#include "cli/app.h"
#include "report/json.h"
#include "report/table.h"
#include "twin/scenario.h"

namespace flyball::cli {
namespace {

Result<> scenarios(const std::string& name, Context& context) {
  FLYBALL_ASSIGN(const std::string folder, presets_folder());
  FLYBALL_ASSIGN(std::vector<std::string> names, twin::scenario_names(context.files, folder));
  if (!name.empty()) names = {name};
  report::Json made = report::document("scenarios");
  made["scenarios"] = report::Json::array();
  report::Table list, detail;
  list.columns = {{"scenario"}, {"what it is"}, {"curve"}};
  detail.columns = {{"key (--set key=value)"}, {"value"}};
  for (const std::string& each : names) {
    FLYBALL_ASSIGN(const twin::Scenario scenario, twin::load_scenario(context.files, folder, each));
    report::Json one = {{"name", each}, {"summary", scenario.summary}};
    one["curve"] = scenario.curve ? report::Json(scenario.curve->name) : report::Json(nullptr);
    one["source"] = scenario.curve ? report::text(scenario.curve->source) : report::Json(nullptr);
    one["parameters"] = report::Json::object();
    for (const twin::ParameterInfo& p : twin::list_parameters(scenario.parameters)) {
      one["parameters"][p.key] = p.value;
      detail.rows.push_back({p.key, p.value});
    }
    made["scenarios"].push_back(std::move(one));
    list.rows.push_back({each, scenario.summary, scenario.curve ? scenario.curve->name : "parametric"});
  }
  if (context.options.json) return context.out.write(report::dump(made));
  FLYBALL_TRY(context.out.write(report::to_text(list)));
  return name.empty() ? Result<>{} : context.out.write("\n" + report::to_text(detail));
}

}  // namespace

void add_scenarios(Registry& registry) {
  auto name = std::make_shared<std::string>();
  CLI::App& command = registry.add({.name = "scenarios",
                                    .summary = "Machines that the twin can be, and what can be set about them",
                                    .examples = "  flyball scenarios\n  flyball scenarios v100-bert"},
                                   [name](Context& context) { return scenarios(*name, context); });
  command.add_option("NAME", *name, "Only this one, with all its parameters");
}

}  // namespace flyball::cli
