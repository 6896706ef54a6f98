#pragma once
// How the rest of a run is best spent among some limits, when the whole run may lose only so much. Two limits are
// always enough: it is a linear programme with one constraint.

#include <cstddef>
#include <span>

#include "core/control.h"

namespace flyball::policy {

/// One limit, relative to the limits as found: power 1 and rate 1.
struct Level {
  double power = 1;
  double rate = 1;       ///< expected
  double sure_rate = 1;  ///< what the bound on loss is reckoned with: expected less a margin
};

/// Sums over the intervals that are gone, and how many there are.
struct Spent {
  double power = 0, rate = 0, sure_rate = 0;
  double intervals = 0;
};

struct Plan {
  std::size_t first = 0, second = 0;  ///< levels
  double share_second = 0;            ///< of the time that is left
  double saved = 0;                   ///< of the whole run, energy per token
  bool feasible = false;              ///< the bound can still be kept
};

/// Most saved over the whole run with at most `max_loss` of its tokens lost, by sure rates. Where that cannot be kept
/// any more: the fastest level. `levels` is not empty.
Plan plan_bounded(std::span<const Level> levels, const Spent& spent, double intervals_left, double max_loss);
/// Most of saved − alpha · lost.
Plan plan_weighted(std::span<const Level> levels, const Spent& spent, double intervals_left, double alpha);

}  // namespace flyball::policy
