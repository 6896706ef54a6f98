#include "cli/app.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <sstream>

#include "base/log.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/signals.h"
#include "report/utf8.h"

namespace flyball::cli {
namespace {

constexpr const char* kDefaultConfig = "/etc/flyball/flyball.toml";
constexpr const char* kExitCodes =
    "Exit: 0 done; 1 failed; 2 bad usage, configuration or input; 3 refused for safety; 4 not supported here;\n"
    "      5 done but degraded; 130, 143 after SIGINT, SIGTERM";

constexpr const char* kGlobalFlags =
    "Of all commands: --config FILE, --state-dir DIR, --gpu UUID, --dry-run, -q, -v, --color WHEN, --output FILE,\n"
    "      --json, --version; see flyball --help\n\n";

/// $XDG_STATE_HOME/flyball, ~/.local/state/flyball (the XDG base directories), or /var/lib/flyball for root.
std::string default_state_dir() {
  if (::geteuid() == 0) return "/var/lib/flyball";
  if (const char* xdg = std::getenv("XDG_STATE_HOME"); xdg != nullptr && *xdg == '/') {
    return std::string(xdg) + "/flyball";
  }
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.local/state/flyball" : "/var/lib/flyball";
}

bool want_color(const std::string& when) {
  const char* no_color = std::getenv("NO_COLOR");
  return when == "auto" && ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0');
}

void print_error(const Error& error) {
  std::string text = "flyball: error: ";
  if (!error.where.empty()) text += report::clean_utf8(error.where) + ": ";
  text += report::clean_utf8(error.what) + '\n';
  if (!error.remedy.empty()) text += "  " + report::clean_utf8(error.remedy) + '\n';
  std::fputs(text.c_str(), stderr);
}

/// The flags as they come from the line, before they are checked.
struct Line {
  GlobalOptions options;
  std::vector<std::string> gpus;
  std::string color = "auto";
};

void add_global_flags(CLI::App& app, Line& line) {
  GlobalOptions& o = line.options;
  app.add_option("--config", o.config_path,
                 fmt::format("Configuration file (default {}, if it is there)", kDefaultConfig));
  app.add_option("--state-dir", o.state_dir, "Where runs, journals and recordings are kept")
      ->default_str(default_state_dir());
  app.add_option("--gpu", line.gpus, "Only this GPU, by UUID; may be given again")
      ->type_name("UUID")
      ->expected(1)
      ->take_all();
  app.add_flag("--dry-run", o.dry_run, "Say what would be written, write nothing");
  app.add_flag("-q,--quiet", o.quiet, "Errors only");
  app.add_flag("-v,--verbose", o.verbosity, "More about what is done; -vv for all");
  app.add_option("--color", line.color, "auto or never; NO_COLOR is honoured")
      ->check(CLI::IsMember({"auto", "never"}))
      ->default_str("auto");
  app.add_option("--output", o.output, "Results to FILE, replaced as a whole; - is stdout")
      ->type_name("FILE")
      ->default_str("-");
  app.add_flag("--json", o.json, "One JSON document instead of text");
  app.set_version_flag("--version", fmt::format("flyball {}", version()));
}

Result<GlobalOptions> checked(const Line& line) {
  GlobalOptions options = line.options;
  for (const std::string& text : line.gpus) {
    auto id = DeviceId::parse(text);
    if (!id) {
      id.error().where = "--gpu";
      return fail(std::move(id.error()));
    }
    options.gpus.push_back(*std::move(id));
  }
  options.state_dir_given = !options.state_dir.empty();
  if (!options.state_dir_given) options.state_dir = default_state_dir();
  if (options.config_path.empty() && ::access(kDefaultConfig, F_OK) == 0) options.config_path = kDefaultConfig;
  options.color = want_color(line.color);
  return options;
}

void set_log_level(const GlobalOptions& options) {
  log::Level level = log::Level::warning;
  if (options.verbosity == 1) level = log::Level::info;
  if (options.verbosity > 1) level = log::Level::debug;
  if (options.quiet) level = log::Level::error;
  log::set_level(level);
}

/// --help or --version: a result, which may not fit on the disk either.
int show_help(const CLI::App& app, const CLI::Success& asked, Filesystem& files) {
  std::ostringstream text;
  app.exit(asked, text, text);
  const auto written = Output(files, "-").write(text.str());
  if (written) return 0;
  print_error(written.error());
  return written.error().exit_code();
}

Error usage_error(const CLI::App& app, const CLI::ParseError& bad) {
  Error error{ErrorCode::input, bad.what(), "usage", "see flyball --help"};
  // A word that is no command shows as a missing command; the word is the better message.
  if (const auto unknown = app.remaining(true); !unknown.empty()) {
    error.what = fmt::format("'{}' is not a command, option or argument here", unknown.front());
  }
  return error;
}

}  // namespace

struct Registry::Entry {
  CLI::App* parser;
  CommandFunction run;
};

Registry::Registry(CLI::App& root) : root_(root) {}
Registry::~Registry() = default;

CLI::App& Registry::add(const CommandInfo& info, CommandFunction run) {
  CLI::App* parent = &root_;
  const std::vector<std::string_view> words = split(info.name, ' ');
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string word(words[i]);
    const auto same_name = parent->get_subcommands([&](CLI::App* other) { return other->get_name() == word; });
    CLI::App* group = same_name.empty() ? nullptr : same_name.front();
    if (group == nullptr) {
      group = parent->add_subcommand(word, fmt::format("Commands of '{}'; see flyball {} --help", word, word));
      group->require_subcommand(1);
      group->fallthrough();
    }
    parent = group;
  }
  CLI::App* parser = parent->add_subcommand(std::string(words.back()), info.summary);
  parser->fallthrough();
  std::string footer;
  if (!info.examples.empty()) footer = "Examples:\n" + info.examples + "\n\n";
  parser->footer(footer + kGlobalFlags + kExitCodes);
  entries_.push_back(std::make_unique<Entry>(Entry{parser, std::move(run)}));
  return *parser;
}

const CommandFunction* Registry::chosen() const {
  for (const auto& entry : entries_) {
    if (entry->parser->parsed()) return &entry->run;
  }
  return nullptr;
}

Result<std::string> read_input(Filesystem& files, const std::string& path, std::size_t limit_bytes) {
  auto content = files.read(path, limit_bytes);
  if (!content && content.error().code == ErrorCode::unsupported) {
    content.error().code = ErrorCode::input;
    content.error().remedy = "check the name";
  }
  return content;
}

Result<Settings> load_settings(Context& context) {
  const GlobalOptions& options = context.options;
  Settings settings;
  if (options.config_path.empty()) {
    settings = default_settings();
  } else {
    FLYBALL_ASSIGN(const std::string text, read_input(context.files, options.config_path, kLargestConfig));
    auto parsed = parse_settings(text, options.config_path);
    if (!parsed) return fail_all(parsed.error());
    settings = *std::move(parsed);
  }
  if (options.state_dir_given || settings.run.state_dir.empty()) settings.run.state_dir = options.state_dir;
  return settings;
}

tl::unexpected<Error> fail_all(const std::vector<Error>& errors) {
  for (std::size_t i = 0; i + 1 < errors.size(); ++i) print_error(errors[i]);
  return fail(errors.back());
}

int run_program(int argc, const char* const* argv, Filesystem& files, Clock& clock) {
  CLI::App app("flyball: an open energy controller for GPU clusters", "flyball");
  Line line;
  add_global_flags(app, line);
  app.require_subcommand(1);
  app.footer(kExitCodes);
  Registry registry(app);
  add_all_commands(registry);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return show_help(app, asked, files);
  } catch (const CLI::ParseError& bad) {
    print_error(usage_error(app, bad));
    return static_cast<int>(ErrorCode::input);
  }

  Result<> result;
  if (auto options = checked(line); !options) {
    result = fail(options.error());
  } else {
    set_log_level(*options);
    Output out(files, options->output);
    Context context{*options, out, files, clock};
    result = (*registry.chosen())(context);
    if (result) result = out.commit();
  }
  if (result) return stop_signal_received() == 0 ? 0 : 128 + stop_signal_received();
  print_error(result.error());
  return result.error().exit_code();
}

}  // namespace flyball::cli
