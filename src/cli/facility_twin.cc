#include "cli/facility_twin.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/presets.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "twin/facility_scenario.h"

namespace flyball::cli {
namespace {

/// A form by its name, or the first form of a cause.
Result<twin::FaultForm> form_of(const std::string& text) {
  if (const auto form = twin::parse_fault_form(text)) return *form;
  const auto cause = parse_cause(text);
  std::string names;
  for (const twin::FaultForm form : twin::fault_forms()) {
    if (cause && twin::cause_of(form) == *cause) return form;
    names += (names.empty() ? "" : " ") + std::string(twin::to_string(form));
  }
  return fail(ErrorCode::input, fmt::format("'{}' is no fault of a building", text.substr(0, 40)), "--fault",
              "use a cause, or one of: " + names);
}

Result<Seconds> time_of(const std::string& text, const char* flag) {
  auto time = parse_seconds(text);
  if (!time) {
    time.error().where = flag;
    return fail(std::move(time.error()));
  }
  if (*time < Seconds(0)) return fail(ErrorCode::input, "a time below 0", flag);
  return *time;
}

Result<twin::FacilityFault> fault_of(const FacilityTwinOptions& options, const twin::FacilitySetup& setup) {
  twin::FacilityFault fault;
  FLYBALL_ASSIGN(fault.form, form_of(options.fault));
  fault.size = options.fault_size;
  if (fault.size == 0) {
    const double least = twin::least_size(fault.form);
    constexpr double kClear = 4;
    fault.size = least >= 0.5 && least <= 1 ? least : kClear * least;
    if (fault.form == twin::FaultForm::set_point_shift) fault.size = kClear * least;
    if (fault.form == twin::FaultForm::meter_deci) fault.size = 10;
  }
  if (auto good = twin::check_fault_size(fault.form, fault.size); !good) {
    good.error().where = "--fault-size";
    return fail(std::move(good.error()));
  }
  FLYBALL_ASSIGN(const Seconds at, time_of(options.fault_at, "--fault-at"));
  fault.onset = setup.start + at;
  fault.duration = setup.length - at;
  if (!options.fault_for.empty()) {
    FLYBALL_ASSIGN(fault.duration, time_of(options.fault_for, "--fault-for"));
  }
  if (!options.fault_ramp.empty()) {
    FLYBALL_ASSIGN(fault.ramp, time_of(options.fault_ramp, "--fault-ramp"));
  }
  if (at >= setup.length)
    return fail(ErrorCode::input, "the fault begins behind the end", "--fault-at", "make the run longer: --duration");
  if (fault.form == twin::FaultForm::recirculation) fault.count = 2;
  if (fault.cause() == Cause::meter_fault) fault.where = "ups_in_w";
  if (fault.cause() == Cause::model_behaviour) fault.where = "pretrain-large";
  return fault;
}

}  // namespace

void add_fault(CLI::App& command, FacilityTwinOptions& options) {
  command.add_option("--fault", options.fault, "Of a simulated building: what goes wrong, a cause or one of its forms")
      ->type_name("FAULT");
  command.add_option("--fault-size", options.fault_size, "How much, as doc/twin.md says of the form")
      ->type_name("NUMBER")
      ->check(wrong_if_no_number);
  command.add_option("--fault-at", options.fault_at, "Since the start")->type_name("TIME")->capture_default_str();
  command.add_option("--fault-ramp", options.fault_ramp, "From nothing to its size (default: at once)")
      ->type_name("TIME");
  command.add_option("--fault-for", options.fault_for, "How long it lasts (default: to the end)")->type_name("TIME");
}

bool is_facility(Context& context, const std::string& scenario) {
  const auto folder = presets_folder();
  if (!folder) return false;
  const auto names = twin::facility_names(context.files, *folder);
  return names && std::find(names->begin(), names->end(), scenario) != names->end();
}

Result<twin::FacilitySetup> facility_setup(const FacilityTwinOptions& options, Context& context) {
  FLYBALL_ASSIGN(const std::string folder, presets_folder());
  FLYBALL_ASSIGN(twin::FacilityScenario scenario, twin::load_facility(context.files, folder, options.scenario));
  for (const std::string& set : options.set) FLYBALL_TRY(twin::override_parameter(scenario, set));
  twin::FacilitySetup setup = std::move(scenario.setup);
  setup.seed = options.seed;
  if (!options.duration.empty()) {
    FLYBALL_ASSIGN(setup.length, parse_duration(options.duration));
  }
  if (!options.fault.empty()) {
    FLYBALL_ASSIGN(twin::FacilityFault fault, fault_of(options, setup));
    setup.faults.push_back(std::move(fault));
  }
  return setup;
}

}  // namespace flyball::cli
