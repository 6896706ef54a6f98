#include "guardd/options.h"

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "base/version.h"
#include "device/nvml/nvml_driver.h"

namespace flyball::guardd {
namespace {

constexpr std::size_t kLargestConfig = 1 << 20;

struct Flags {
  std::string config;
  std::string journal;
  std::string audit;
  std::string socket;
  std::string group;
};

Result<Settings> read_settings(const Flags& flags, Filesystem& files) {
  if (flags.config.empty()) return default_settings();
  FLYBALL_ASSIGN(const std::string text, files.read(flags.config, kLargestConfig));
  auto settings = parse_settings(text, flags.config);
  if (settings) return *std::move(settings);
  std::string all;
  for (const Error& error : settings.error()) all += (all.empty() ? "" : "\n") + error.message();
  return fail(ErrorCode::input, all);
}

void add_flags(CLI::App& app, Flags& flags, Options& options, int& verbosity) {
  app.add_option("--config", flags.config, "Configuration file; without it the defaults hold");
  app.add_option("--journal", flags.journal, "What was found on each board before it was written");
  app.add_option("--audit", flags.audit, "Log of who asked and what was written");
  app.add_option("--socket", flags.socket, "Where to listen");
  app.add_option("--group", flags.group, "Group that may talk to the guard");
  app.add_option("--nvml-library", options.nvml_library, "NVIDIA's management library");
  app.add_flag("-v", verbosity, "Say more on stderr");
  app.set_version_flag("--version", std::string(version()));
  app.fallthrough();
  app.add_subcommand("serve", "Guard the limits (the default)");
  auto* restore =
      app.add_subcommand("restore", "Give back all limits now, from the journal or through the running guard");
  restore->add_flag("--lift-budgets", options.lift,
                    "Also what a budget's safe cap still holds: the circuit is yours to watch");
  restore->add_flag("--json", options.json, "One JSON document");
  app.add_subcommand("status", "What the running guard holds, as JSON");
  app.require_subcommand(0, 1);
}

}  // namespace

Result<Options> parse_options(int argc, const char* const* argv, Filesystem& files) {
  Options options;
  options.nvml_library = nvml::kDefaultLibrary;
  Flags flags;
  int verbosity = 0;
  CLI::App app("Guards the power limits of this machine's GPUs: the only program that writes them.", "flyball-guard");
  add_flags(app, flags, options, verbosity);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);
      options.done = true;
      return options;
    }
    return fail(ErrorCode::input, error.what(), {}, "`flyball-guard --help` shows the usage");
  }
  if (app.got_subcommand("restore")) options.command = Command::restore;
  if (app.got_subcommand("status")) options.command = Command::status;
  log::set_level(verbosity > 0 ? log::Level::debug : log::Level::info);
  FLYBALL_ASSIGN(options.settings, read_settings(flags, files));
  GuardSettings& guard = options.settings.guard;
  if (!flags.journal.empty()) guard.journal = flags.journal;
  if (!flags.audit.empty()) guard.audit = flags.audit;
  if (!flags.socket.empty()) guard.socket = flags.socket;
  if (!flags.group.empty()) guard.group = flags.group;
  return options;
}

}  // namespace flyball::guardd
