#pragma once
// What the two ways of `flyball replay` share.

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/app.h"
#include "cli/objective.h"
#include "series/reader.h"

namespace flyball::cli {

/// As they stand on the command line; empty = not given.
struct ReplayOptions {
  std::string file;
  std::string to;
  std::string events;
  std::string format = "detect";
  std::string zone;
  std::string fold = "refuse";
  std::string policy;
  ObjectiveOptions objective;  ///< with a policy
  std::optional<std::uint64_t> seed;
  std::string decision;
};

Result<series::ReadOptions> replay_reading(const ReplayOptions& options);
/// The loop run again with a policy, in replay_policy.cc.
Result<> replay_with_policy(const ReplayOptions& options, Context& context);

}  // namespace flyball::cli
