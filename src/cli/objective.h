#pragma once
// --max-loss and --alpha: how a person says what tokens are worth against watts.

#include <optional>
#include <string>

#include "base/result.h"
#include "core/control.h"

namespace CLI {
class App;
}

namespace flyball::cli {

struct ObjectiveOptions {
  std::string max_loss;
  std::optional<double> alpha;
};

void add_objective(CLI::App& command, ObjectiveOptions& options);
/// At most 1.2 % slower where neither is given.
Result<Objective> parse_objective(const ObjectiveOptions& options);
std::string objective_text(const Objective& objective);

}  // namespace flyball::cli
