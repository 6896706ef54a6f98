#include "policy/plan.h"

#include <algorithm>

namespace flyball::policy {
namespace {

struct Sums {
  double power, rate, sure_rate;
};

Sums mix(const Level& a, const Level& b, double share, const Spent& spent, double left) {
  const auto of = [&](double x, double y, double gone) { return gone + left * (x + share * (y - x)); };
  return {of(a.power, b.power, spent.power), of(a.rate, b.rate, spent.rate),
          of(a.sure_rate, b.sure_rate, spent.sure_rate)};
}

double saved(const Sums& sums) { return sums.rate > 0 ? 1 - sums.power / sums.rate : 0; }

}  // namespace

Plan plan_bounded(std::span<const Level> levels, const Spent& spent, double intervals_left, double max_loss) {
  const double needed = (1 - max_loss) * (spent.intervals + intervals_left);
  Plan best;
  const auto offer = [&](std::size_t i, std::size_t j, double share) {
    const double worth = saved(mix(levels[i], levels[j], share, spent, intervals_left));
    if (best.feasible && worth <= best.saved) return;
    best = {i, j, share, worth, true};
  };
  const auto slack = [&](const Level& level) { return spent.sure_rate + intervals_left * level.sure_rate - needed; };
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const double here = slack(levels[i]);
    if (here >= 0) offer(i, i, 0);
    for (std::size_t j = i + 1; j < levels.size(); ++j) {
      const double there = slack(levels[j]);
      // Only a pair of which one alone would lose too much and the other not has a mix that loses just enough.
      if ((here >= 0) != (there >= 0)) offer(i, j, here / (here - there));
    }
  }
  if (best.feasible) return best;
  const auto fastest = std::max_element(levels.begin(), levels.end(),
                                        [](const Level& a, const Level& b) { return a.sure_rate < b.sure_rate; });
  const auto at = static_cast<std::size_t>(fastest - levels.begin());
  return {at, at, 0, saved(mix(*fastest, *fastest, 0, spent, intervals_left)), false};
}

Plan plan_weighted(std::span<const Level> levels, const Spent& spent, double intervals_left, double alpha) {
  Plan best;
  double most = 0;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const Sums sums = mix(levels[i], levels[i], 0, spent, intervals_left);
    const double worth = saved(sums) - alpha * std::max(0.0, 1 - sums.rate / (spent.intervals + intervals_left));
    if (best.feasible && worth <= most) continue;
    most = worth;
    best = {i, i, 0, saved(sums), true};
  }
  return best;
}

}  // namespace flyball::policy
