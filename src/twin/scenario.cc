#include "twin/scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/text.h"
#include "twin/clock_preset.h"

namespace flyball::twin {
namespace {

constexpr std::size_t kMostBytes = 1 << 16;
constexpr std::string_view kEnding = ".conf";

struct Entry {
  std::string_view key, value, comment;
  std::size_t line = 0;
};

Result<std::vector<Entry>> parse(std::string_view text, const std::string& path) {
  std::vector<Entry> entries;
  std::size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    const auto hash = line.find('#');
    const std::string_view comment = hash == std::string_view::npos ? "" : trim(line.substr(hash + 1));
    line = trim(line.substr(0, hash));
    if (line.empty()) continue;
    const auto equals = line.find('=');
    if (equals == std::string_view::npos || !is_printable_ascii(line)) {
      return fail(ErrorCode::input, "the line is not 'key = value'", fmt::format("{}:{}", path, number));
    }
    entries.push_back({trim(line.substr(0, equals)), trim(line.substr(equals + 1)), comment, number});
  }
  return entries;
}

std::string_view value_of(const std::vector<Entry>& entries, std::string_view key) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.key == key; });
  return found == entries.end() ? std::string_view() : found->value;
}

Result<> located(Result<> result, const std::string& path, std::size_t line) {
  if (!result) result.error().where = fmt::format("{}:{}", path, line);
  return result;
}

bool good_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace

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
  FLYBALL_ASSIGN(const auto all, files.list(folder + "/scenarios"));
  std::vector<std::string> names;
  for (const std::string& file : all) {
    if (file.size() > kEnding.size() && file.ends_with(kEnding)) {
      names.push_back(file.substr(0, file.size() - kEnding.size()));
    }
  }
  return names;
}

Result<Scenario> load_scenario(Filesystem& files, const std::string& folder, const std::string& name) {
  const std::string path = folder + "/scenarios/" + name + std::string(kEnding);
  if (!good_name(name) || !files.exists(path)) {
    std::string known;
    for (const auto& other : scenario_names(files, folder).value_or(std::vector<std::string>{})) {
      known += (known.empty() ? "" : ", ") + other;
    }
    return fail(ErrorCode::input, "there is no scenario '" + name.substr(0, 64) + "'", {}, "there are " + known);
  }
  FLYBALL_ASSIGN(const std::string text, files.read(path, kMostBytes));
  FLYBALL_ASSIGN(const auto entries, parse(text, path));

  Scenario scenario;
  scenario.name = name;
  scenario.summary = value_of(entries, "summary");
  if (const auto board = value_of(entries, "board"); !board.empty()) {
    FLYBALL_ASSIGN(scenario.parameters.gpu, gpu_preset(board));
  }
  if (const auto curve = value_of(entries, "curve"); !curve.empty()) {
    FLYBALL_ASSIGN(scenario.curve, curve::load_preset(files, folder, std::string(curve)));
    follow_curve(scenario.parameters, scenario.curve->curve);
  }
  for (const Entry& entry : entries) {
    if (entry.key == "summary" || entry.key == "board" || entry.key == "curve") continue;
    FLYBALL_TRY(located(set_parameter(scenario.parameters, entry.key, entry.value), path, entry.line));
    FLYBALL_ASSIGN(const std::string key, parameter_key(entry.key));
    scenario.sources[key] = entry.comment.empty() ? "scenario " + name : std::string(entry.comment);
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
