#pragma once
// --alpha and --max-loss, wherever a policy is asked for.

#include <optional>
#include <string>

#include "base/result.h"
#include "core/control.h"

namespace flyball::cli {

/// What holds if nothing else is asked for: at most 1.2 % slower.
constexpr double kDefaultMaxLoss = 0.012;

/// `max_loss` as it stands on the command line, empty = not given.
Result<Objective> parse_objective(const std::optional<double>& alpha, const std::string& max_loss);
std::string objective_text(const Objective& objective);

}  // namespace flyball::cli
