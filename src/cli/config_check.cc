#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/app.h"
#include "core/settings.h"
#include "report/json.h"

namespace flyball::cli {
namespace {

struct Options {
  std::string file;
  bool print_template = false;
};

/// A configuration that says the same: what the file sets, and the defaults as comments.
std::string effective_text(const Config& config) {
  std::string text;
  for (const Config::Entry& entry : config.entries()) {
    const std::string line = entry.value.empty()        ? "# " + entry.path + " is not set"
                             : entry.where == "default" ? "# " + entry.path + " = " + entry.value
                                                        : entry.path + " = " + entry.value;
    text += fmt::format("{:<48}  # {}\n", line, entry.where);
  }
  return text;
}

report::Json json_of(const std::string& file, const std::vector<Error>& errors, const Config* config) {
  report::Json made = report::document("config");
  made["file"] = report::text(file);
  made["valid"] = errors.empty();
  made["errors"] = report::Json::array();
  for (const Error& error : errors) {
    made["errors"].push_back({{"where", report::text(error.where)},
                              {"what", report::text(error.what)},
                              {"remedy", report::text(error.remedy)}});
  }
  made["keys"] = report::Json::array();
  if (config == nullptr) return made;
  for (const Config::Entry& entry : config->entries()) {
    made["keys"].push_back({{"key", entry.path},
                            {"value", entry.value.empty() ? report::Json(nullptr) : report::Json(entry.value)},
                            {"where", report::text(entry.where)},
                            {"help", std::string(entry.key->help)}});
  }
  return made;
}

Result<> config_check(const Options& options, Context& context) {
  if (options.print_template) return context.out.write(config_template(settings_keys()));
  const std::string file = options.file.empty() ? context.options.config_path : options.file;
  if (file.empty()) return fail(ErrorCode::input, "no file is named", "config check", "flyball config check FILE");
  FLYBALL_ASSIGN(const std::string text, read_input(context.files, file, kLargestConfig));
  auto config = Config::parse(text, file, settings_keys());
  std::vector<Error> errors;
  if (!config) errors = config.error();
  if (config) {
    if (auto settings = make_settings(*config); !settings) errors = settings.error();
  }
  const Config* accepted = config && errors.empty() ? &*config : nullptr;
  if (context.options.json) {
    FLYBALL_TRY(context.out.write(report::dump(json_of(file, errors, accepted))));
  } else if (accepted != nullptr) {
    FLYBALL_TRY(context.out.write(effective_text(*accepted)));
  }
  if (errors.empty()) return {};
  if (context.options.json) FLYBALL_TRY(context.out.commit());
  return fail_all(errors);
}

}  // namespace

void add_config_check(Registry& registry) {
  auto options = std::make_shared<Options>();
  CLI::App& command = registry.add({.name = "config check",
                                    .summary = "Check a configuration file and show what holds",
                                    .examples = "  flyball config check /etc/flyball/flyball.toml\n"
                                                "  flyball config check --template > flyball.toml"},
                                   [options](Context& context) { return config_check(*options, context); });
  command.add_option("FILE", options->file, "The file (default: that of --config)");
  command.add_flag("--template", options->print_template, "Print a file of all keys, commented out");
}

}  // namespace flyball::cli
