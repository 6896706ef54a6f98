#include "cli/doctor.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "device/nvml/nvml_api.h"
#include "report/json.h"
#include "report/utf8.h"

namespace flyball::cli {
namespace {

struct Options {
  std::string source = "auto";
  std::string nvml_library = nvml::kDefaultLibrary;
};

std::string_view state_of(const Finding& check) {
  switch (check.severity) {
    case Severity::info:
      return "ok";
    case Severity::warning:
      return "warn";
    case Severity::alarm:
      break;
  }
  return "fail";
}

std::string painted(std::string_view state, bool color) {
  std::string padded = fmt::format("{:<4}", state);
  if (!color) return padded;
  const std::string_view code = state == "ok" ? "32" : state == "warn" ? "33" : "31";  // green, yellow, red
  return fmt::format("\x1b[{}m{}\x1b[0m", code, padded);
}

Result<std::vector<Finding>> gpu_checks(const Options& options, Context& context) {
  const std::string& source = options.source;
  for (const GpuDoctor& doctor : gpu_doctors()) {
    if (source == "auto" || source == doctor.source) return doctor.check(context, options.nvml_library);
  }
  if (source != "auto") return fail(ErrorCode::unsupported, "this build has no checks of '" + source + "'", "--source");
  Finding none;
  none.severity = Severity::warning;
  none.code = "gpu";
  none.what = "this build has no checks of GPUs";
  return std::vector<Finding>{none};
}

std::vector<Finding> machine_checks(Context& context) {
  // A configuration with faults is told by its own check; the socket is then looked for where it is by default.
  Settings settings = default_settings();
  const std::string& path = context.options.config_path;
  if (const auto text = context.files.read(path, kLargestConfig); !path.empty() && text) {
    if (auto own = parse_settings(*text, path)) settings = *std::move(own);
  }
  const std::string& state_dir = context.options.state_dir;
  std::vector<Finding> checks = {
      check_kernel(context.files), check_container(context.files),    check_user(),
      check_clock(context.clock),  check_config(path, context.files), check_state_dir(state_dir),
      check_disk_space(state_dir)};
  const std::vector<Finding> guard = check_guard(settings.guard.socket);
  checks.insert(checks.end(), guard.begin(), guard.end());
  return checks;
}

std::string text_of(const std::vector<Finding>& checks, bool color) {
  std::size_t widest = 0;
  for (const Finding& check : checks) widest = std::max(widest, check.code.size());
  std::string text;
  for (const Finding& check : checks) {
    std::string what = report::clean_utf8(check.what);
    if (!check.device.empty()) what = fmt::format("{}: {}", check.device.text(), what);
    text += fmt::format("{}  {:<{}}  {}\n", painted(state_of(check), color), check.code, widest, what);
    if (!check.remedy.empty()) text += fmt::format("{:{}}  {}\n", "", widest + 6, report::clean_utf8(check.remedy));
  }
  return text;
}

report::Json json_of(const std::vector<Finding>& checks, WallTime now) {
  report::Json made = report::document("doctor");
  made["at"] = report::time(now);
  made["checks"] = report::Json::array();
  for (const Finding& check : checks) {
    report::Json entry = report::Json::object();
    entry["name"] = report::text(check.code);
    entry["state"] = std::string(state_of(check));
    entry["device"] = check.device.empty() ? report::Json(nullptr) : report::text(check.device.text());
    entry["found"] = report::text(check.what);
    entry["remedy"] = check.remedy.empty() ? report::Json(nullptr) : report::text(check.remedy);
    made["checks"].push_back(std::move(entry));
  }
  return made;
}

Result<> doctor(const Options& options, Context& context) {
  std::vector<Finding> checks = machine_checks(context);
  FLYBALL_ASSIGN(const std::vector<Finding> gpus, gpu_checks(options, context));
  checks.insert(checks.end(), gpus.begin(), gpus.end());
  FLYBALL_TRY(context.out.write(context.options.json ? report::dump(json_of(checks, context.clock.wall()))
                                                     : text_of(checks, context.options.color)));
  const auto failed = std::count_if(checks.begin(), checks.end(),
                                    [](const Finding& check) { return check.severity == Severity::alarm; });
  if (failed == 0) return {};
  FLYBALL_TRY(context.out.commit());
  return fail(ErrorCode::failed, fmt::format("{} of {} checks failed", failed, checks.size()), "doctor",
              "each failed check says what to do");
}

}  // namespace

void add_doctor(Registry& registry) {
  auto options = std::make_shared<Options>();
  CLI::App& command = registry.add({.name = "doctor",
                                    .summary = "What is here, what is wrong, how to mend it; reads only",
                                    .examples = "  flyball doctor\n  flyball doctor --source nvml --json"},
                                   [options](Context& context) { return doctor(*options, context); });
  command.add_option("--source", options->source, "Whose GPUs: auto, nvml or twin")
      ->check(CLI::IsMember({"auto", "nvml", "twin"}))
      ->default_str("auto");
  command.add_option("--nvml-library", options->nvml_library, "NVIDIA's management library: a file or a name")
      ->capture_default_str();
}

}  // namespace flyball::cli
