#include "twin/facility_scenario.h"

#include "base/text.h"
#include "twin/conf.h"

namespace flyball::twin {

namespace {

constexpr std::string_view kPrefix = "facility.";

std::string dotted(std::string_view key) {
  return (key.starts_with(kPrefix) ? "" : std::string(kPrefix)) + std::string(key);
}

Result<> set(FacilityScenario& scenario, std::string_view key, const std::string& value) {
  FacilitySetup& setup = scenario.setup;
  if (key == "summary") {
    scenario.summary = value;
  } else if (key == "schedule") {
    setup.schedule.clear();
    if (value == "default") return {};
    FLYBALL_TRY(job_type(value));
    setup.schedule = single_job(value, setup.length);
  } else if (key == "start") {
    FLYBALL_ASSIGN(setup.start, parse_rfc3339(value));
  } else if (key == "length") {
    FLYBALL_ASSIGN(setup.length, parse_seconds(value));
    for (ScheduledJob& job : setup.schedule) job.stop = setup.length;
  } else {
    return set_parameter(setup.parameters, key, value);
  }
  return {};
}

bool is_parameter(std::string_view key) {
  return key != "summary" && key != "schedule" && key != "start" && key != "length";
}

}  // namespace

std::string FacilityScenario::source(const ParameterInfo& parameter) const {
  const auto found = sources.find(parameter.key);
  return found == sources.end() ? parameter.source : found->second;
}

Result<std::vector<std::string>> facility_names(Filesystem& files, const std::string& folder) {
  return conf_names(files, folder + "/facility");
}

Result<FacilityScenario> load_facility(Filesystem& files, const std::string& folder, const std::string& name) {
  FLYBALL_ASSIGN(const Conf conf, read_conf(files, folder + "/facility", "facility", name));
  FacilityScenario scenario;
  scenario.name = name;
  for (const ConfEntry& entry : conf.entries) {
    FLYBALL_TRY(located(set(scenario, entry.key, entry.value), conf.path, entry.line));
    if (is_parameter(entry.key)) {
      scenario.sources[dotted(entry.key)] = entry.comment.empty() ? "facility " + name : entry.comment;
    }
  }
  FLYBALL_TRY(located(check(scenario.setup.parameters), conf.path, 1));
  return scenario;
}

Result<> override_parameter(FacilityScenario& scenario, std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) {
    return fail(ErrorCode::input, "'" + std::string(text.substr(0, 80)) + "' is not key=value", "--set",
                "for example --set facility.cooling.set_point=16C");
  }
  const std::string key(trim(text.substr(0, equals)));
  auto done = set(scenario, key, std::string(trim(text.substr(equals + 1))));
  if (!done && done.error().where.empty()) done.error().where = "--set";
  FLYBALL_TRY(std::move(done));
  if (is_parameter(key)) scenario.sources[dotted(key)] = "--set";
  return check(scenario.setup.parameters);
}

}  // namespace flyball::twin
