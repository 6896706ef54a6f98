#pragma once
// The command line of flyball-guard, joined with its configuration file.

#include <string>

#include "base/filesystem.h"
#include "base/result.h"
#include "core/settings.h"

namespace flyball::guardd {

enum class Command { serve, restore, status };

struct Options {
  Command command = Command::serve;
  Settings settings;  ///< paths given on the command line are in here
  std::string nvml_library;
  bool lift = false;  ///< restore: the owner of the budgets gives them up, so limits go back up too
  bool json = false;
  bool done = false;  ///< help or version was shown
};

/// Errors `input` name the flag or the line.
Result<Options> parse_options(int argc, const char* const* argv, Filesystem& files);

}  // namespace flyball::guardd
