#pragma once
// The frame of the program: global flags, the registry of commands, errors and exit codes. How to add a command is in
// README.md.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/filesystem.h"
#include "base/result.h"
#include "cli/output.h"
#include "core/device.h"
#include "core/settings.h"

namespace CLI {
class App;
}

namespace flyball::cli {

/// The flags every command takes, before or after its name.
struct GlobalOptions {
  std::string config_path;  ///< empty: the defaults hold
  std::string state_dir;    ///< never empty; where the configuration says another, load_settings() knows
  bool state_dir_given = false;
  std::vector<DeviceId> gpus;
  bool dry_run = false;
  bool quiet = false;
  int verbosity = 0;  ///< number of -v
  std::string output = "-";
  bool json = false;
  bool color = false;  ///< decided: the flag, NO_COLOR and whether stdout is a terminal
};

/// What a command gets besides its own options.
struct Context {
  const GlobalOptions& options;
  Output& out;  ///< results
  Filesystem& files;
  Clock& clock;
};

/// What a command is, for help and dispatch.
struct CommandInfo {
  std::string name;      ///< "run", or "audit verify" for a command in a group
  std::string summary;   ///< one line
  std::string examples;  ///< shown under the options in --help: example lines, then notes
};

/// A command returns nothing, or the error whose code the program exits with.
using CommandFunction = std::function<Result<>(Context&)>;

class Registry {
 public:
  explicit Registry(CLI::App& root);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// Options are added to the returned parser; what they bind to must live as long as `run` does (a shared_ptr that
  /// `run` captures).
  CLI::App& add(const CommandInfo& info, CommandFunction run);

  /// The command that the parsed line chose, or null.
  const CommandFunction* chosen() const;

 private:
  struct Entry;
  CLI::App& root_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

/// Files larger than this are no configuration.
constexpr std::size_t kLargestConfig = 1 << 20;

/// A file that the user named: that it is not there is an error of input.
Result<std::string> read_input(Filesystem& files, const std::string& path, std::size_t limit_bytes);

/// The configuration that holds: the file of --config, or the defaults. `run.state_dir` is what holds of flag, file and
/// default.
Result<Settings> load_settings(Context& context);

/// For commands that find several errors: all but the last are printed, the last is returned. `errors` is not empty.
tl::unexpected<Error> fail_all(const std::vector<Error>& errors);

/// Parses, runs, prints errors as "flyball: error: where: what" with the remedy on a second line, returns the exit
/// code.
int run_program(int argc, const char* const* argv, Filesystem& files, Clock& clock);

}  // namespace flyball::cli
