#pragma once
// What full knowledge of a curve would save: the bounds that policies are measured against. Hindsight, all of it.

#include <optional>
#include <span>

#include "core/control.h"
#include "curve/curve.h"
#include "policy/plan.h"

namespace flyball::evaluate {

struct Ideal {
  double saved_fraction = 0;
  double loss_fraction = 0;
  Watts first, second;  ///< limits; equal where one is enough; 0 where clocks are locked instead
  double share_second = 0;
  bool binds = false;  ///< without the bound more would be saved
};

/// Best mix of two limits over time on a grid of `step`; the highest limit may be one of them. `others` are settings of
/// another lever, relative to the highest limit, that may be mixed in.
Ideal best_mix(const curve::Curve& curve, const Objective& objective, Watts step = Watts(1),
               std::span<const policy::Level> others = {});
/// Best single limit.
Ideal best_static(const curve::Curve& curve, const Objective& objective, Watts step);

}  // namespace flyball::evaluate
