#include "cli/objective.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/arguments.h"

namespace flyball::cli {
namespace {

/// What holds if nothing else is asked for: at most 1.2 % slower.
constexpr double kDefaultMaxLoss = 0.012;

}  // namespace

void add_objective(CLI::App& command, ObjectiveOptions& options) {
  command.add_option("--max-loss", options.max_loss, "At most so much slower: 0.012 or 1.2% (the default)")
      ->type_name("FRACTION");
  command.add_option("--alpha", options.alpha, "Weight of lost throughput against saved energy")
      ->type_name("A")
      ->check(wrong_if_no_number);
}

Result<Objective> parse_objective(const ObjectiveOptions& options) {
  Objective objective;
  objective.alpha = options.alpha;
  if (!options.max_loss.empty()) {
    if (options.alpha) return fail(ErrorCode::input, "--alpha and --max-loss are given", {}, "give one of the two");
    auto fraction = parse_fraction(options.max_loss);
    if (!fraction) {
      fraction.error().where = "--max-loss";
      return fail(std::move(fraction.error()));
    }
    objective.max_loss_fraction = *fraction;
  } else if (!options.alpha) {
    objective.max_loss_fraction = kDefaultMaxLoss;
  }
  return objective;
}

std::string objective_text(const Objective& objective) {
  if (objective.alpha) return fmt::format("saved − {} · lost", *objective.alpha);
  if (!objective.max_loss_fraction) return "none";
  return fmt::format("most saved with at most {} lost", format_percent(*objective.max_loss_fraction));
}

}  // namespace flyball::cli
