#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/app.h"
#include "policy/policy.h"
#include "report/json.h"
#include "report/table.h"

namespace flyball::cli {
namespace {

Result<> policy_list(Context& context) {
  if (context.options.json) {
    report::Json made = report::document("policies");
    made["policies"] = report::Json::array();
    for (const policy::Description& d : policy::descriptions()) {
      made["policies"].push_back({{"form", d.form}, {"summary", d.summary}});
    }
    return context.out.write(report::dump(made));
  }
  report::Table table;
  table.columns = {{"policy"}, {"what it does"}};
  for (const policy::Description& d : policy::descriptions()) table.rows.push_back({d.form, d.summary});
  return context.out.write(report::to_text(table));
}

}  // namespace

void add_policy_list(Registry& registry) {
  registry.add({.name = "policy list", .summary = "Policies that --policy takes", .examples = "  flyball policy list"},
               policy_list);
}

}  // namespace flyball::cli
