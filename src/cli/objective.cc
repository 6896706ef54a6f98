#include "cli/objective.h"

#include <fmt/format.h>

#include "base/text.h"

namespace flyball::cli {

Result<Objective> parse_objective(const std::optional<double>& alpha, const std::string& max_loss) {
  Objective objective;
  objective.alpha = alpha;
  if (!max_loss.empty()) {
    if (alpha) return fail(ErrorCode::input, "--alpha and --max-loss are given", {}, "give one of the two");
    auto fraction = parse_fraction(max_loss);
    if (!fraction) {
      fraction.error().where = "--max-loss";
      return fail(std::move(fraction.error()));
    }
    objective.max_loss_fraction = *fraction;
  } else if (!alpha) {
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
