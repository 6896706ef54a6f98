#include "evaluate/oracle.h"

#include <algorithm>
#include <vector>

namespace flyball::evaluate {
namespace {

struct Grid {
  std::vector<Watts> limits;
  std::vector<policy::Level> levels;
};

/// Descending from the highest limit, the lowest included.
Grid grid_of(const curve::Curve& curve, Watts step) {
  Grid grid;
  const Watts top = curve.highest();
  const auto add = [&](Watts limit) {
    const double rate = curve.speed_fraction(limit);
    grid.limits.push_back(limit);
    grid.levels.push_back({curve.power(limit) / curve.power(top), rate, rate});
  };
  for (int i = 0;; ++i) {
    const Watts limit = top - step * static_cast<double>(i);
    if (limit <= curve.lowest()) break;
    add(limit);
  }
  add(curve.lowest());
  return grid;
}

Ideal to_ideal(const Grid& grid, const policy::Plan& plan) {
  const policy::Level& a = grid.levels[plan.first];
  const policy::Level& b = grid.levels[plan.second];
  return {plan.saved,
          1 - (a.rate + plan.share_second * (b.rate - a.rate)),
          grid.limits[plan.first],
          grid.limits[plan.second],
          plan.share_second,
          false};
}

policy::Plan plan(const Grid& grid, const Objective& objective) {
  if (objective.alpha) return policy::plan_weighted(grid.levels, {}, 1, *objective.alpha);
  return policy::plan_bounded(grid.levels, {}, 1, *objective.max_loss_fraction);
}

}  // namespace

Ideal best_mix(const curve::Curve& curve, const Objective& objective, Watts step,
               std::span<const policy::Level> others) {
  Grid grid = grid_of(curve, step);
  for (const policy::Level& level : others) {
    grid.limits.emplace_back(0);
    grid.levels.push_back(level);
  }
  Ideal ideal = to_ideal(grid, plan(grid, objective));
  if (objective.max_loss_fraction) {
    const policy::Plan free = policy::plan_weighted(grid.levels, {}, 1, 0);
    ideal.binds = free.saved > ideal.saved_fraction + 1e-9;
  }
  return ideal;
}

Ideal best_static(const curve::Curve& curve, const Objective& objective, Watts step) {
  const Grid grid = grid_of(curve, step);
  Ideal best = {0, 0, grid.limits.front(), grid.limits.front(), 0, false};
  double most = 0;
  for (std::size_t i = 0; i < grid.levels.size(); ++i) {
    const policy::Level& level = grid.levels[i];
    const double loss = 1 - level.rate, saved = 1 - level.power / level.rate;
    if (objective.max_loss_fraction && loss > *objective.max_loss_fraction) continue;
    const double worth = objective.alpha ? saved - *objective.alpha * std::max(0.0, loss) : saved;
    if (worth <= most) continue;
    most = worth;
    best = {saved, loss, grid.limits[i], grid.limits[i], 0, false};
  }
  return best;
}

}  // namespace flyball::evaluate
