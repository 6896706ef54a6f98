#include "twin/scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/text.h"
#include "twin/clock_preset.h"
#include "twin/conf.h"

namespace flyball::twin {

Result<Machine> Scenario::build() const {
  return curve ? Machine::create(parameters, curve->curve) : Machine::create(parameters);
}

std::string Scenario::plant() const {
  if (curve) return fmt::format("twin {} (preset {})", name, curve->name);
  if (parameters.preset != MachineParameters{}.preset)
    return fmt::format("twin {} (preset {})", name, parameters.preset);
  return "twin " + name;
}

std::string Scenario::source(const ParameterInfo& parameter) const {
  const auto found = sources.find(parameter.key);
  return found == sources.end() ? parameter.source : found->second;
}

std::string Scenario::canonical_text() const {
  std::string text = "flyball.scenario/1\n";
  for (const ParameterInfo& each : list_parameters(parameters)) {
    if (each.key != "seed") text += fmt::format("{} = {}\n", each.key, each.value);
  }
  if (curve) {
    for (const curve::Point& knot : curve->curve.knots()) {
      text += fmt::format("limit {} mW: {} s {} W\n", knot.limit.value(), format_exact(knot.time.value()),
                          format_exact(knot.power.value()));
    }
  } else if (const auto preset = clock_preset(parameters.preset)) {
    for (const ClockPoint& knot : preset->points) {
      text += fmt::format("clock {} Hz: {} {} W\n", format_exact(knot.clock.value()), format_exact(knot.time),
                          format_exact(knot.power.value()));
    }
  }
  return text;
}

std::string Scenario::hash() const { return sha256_hex(canonical_text()); }

Result<std::vector<std::string>> scenario_names(Filesystem& files, const std::string& folder) {
  return conf_names(files, folder + "/scenarios");
}

Result<Scenario> load_scenario(Filesystem& files, const std::string& folder, const std::string& name) {
  FLYBALL_ASSIGN(const Conf conf, read_conf(files, folder + "/scenarios", "scenario", name));
  const std::string& path = conf.path;

  Scenario scenario;
  scenario.name = name;
  scenario.summary = conf.value("summary");
  if (const auto board = conf.value("board"); !board.empty()) {
    FLYBALL_ASSIGN(scenario.parameters.gpu, gpu_preset(board));
  }
  if (const auto curve = conf.value("curve"); !curve.empty()) {
    FLYBALL_ASSIGN(scenario.curve, curve::load_preset(files, folder, curve));
    follow_curve(scenario.parameters, scenario.curve->curve);
  }
  for (const ConfEntry& entry : conf.entries) {
    if (entry.key == "summary" || entry.key == "board" || entry.key == "curve") continue;
    FLYBALL_TRY(located(set_parameter(scenario.parameters, entry.key, entry.value), path, entry.line));
    FLYBALL_ASSIGN(const std::string key, parameter_key(entry.key));
    scenario.sources[key] = entry.comment.empty() ? "scenario " + name : entry.comment;
  }
  FLYBALL_TRY(located(check(scenario.parameters), path, 1));
  return scenario;
}

namespace {

Result<> override_parameter(Scenario& scenario, std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) {
    return fail(ErrorCode::input, "'" + std::string(text.substr(0, 80)) + "' is not key=value", "--set",
                "for example --set job.throughput_noise_sd=0.01");
  }
  auto set = set_parameter(scenario.parameters, trim(text.substr(0, equals)), trim(text.substr(equals + 1)));
  if (!set && set.error().where.empty()) set.error().where = "--set";
  FLYBALL_TRY(std::move(set));
  FLYBALL_ASSIGN(const std::string key, parameter_key(trim(text.substr(0, equals))));
  scenario.sources[key] = "--set";
  if (key == "preset" && scenario.curve) {
    return fail(ErrorCode::input, "this scenario follows the curve by limit " + scenario.curve->name, "--set preset",
                "choose a scenario without a curve of its own, for example pretrain-1");
  }
  return {};
}

}  // namespace

Result<> override_parameters(Scenario& scenario, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) FLYBALL_TRY(override_parameter(scenario, text));
  return check(scenario.parameters);
}

}  // namespace flyball::twin
