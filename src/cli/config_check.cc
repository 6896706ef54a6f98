#include <CLI/CLI.hpp>

#include "cli/app.h"

namespace flyball::cli {
namespace {

struct Options {
  std::string file;
};

Result<> config_check(const Options& options, Context& context) {
  constexpr std::size_t kLargest = 1 << 20;
  FLYBALL_ASSIGN(const std::string text, context.files.read(options.file, kLargest));
  return context.out.write(text);
}

}  // namespace

void add_config_check(Registry& registry) {
  auto options = std::make_shared<Options>();
  CLI::App& command = registry.add({.name = "config check",
                                    .summary = "Check a configuration file and show what holds",
                                    .examples = "  flyball config check /etc/flyball/flyball.toml"},
                                   [options](Context& context) { return config_check(*options, context); });
  command.add_option("FILE", options->file, "The file")->required();
}

}  // namespace flyball::cli
