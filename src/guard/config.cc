#include "guard/config.h"

namespace flyball::guard {
namespace {

BoardPolicy policy_of(const BoardRange& range) {
  return {range.minimum, range.maximum, range.safe_cap, range.clocks_unlocked};
}

}  // namespace

EngineConfig::EngineConfig(const Settings& settings) {
  const GuardSettings& guard = settings.guard;
  journal_path = guard.journal;
  everywhere = policy_of(settings.site.everywhere);
  for (const auto& [device, range] : settings.site.boards) boards[device] = policy_of(range);
  if (const auto& budget = settings.site.node_budget) {
    NodeBudgetConfig node;
    node.meter = budget->meter;
    node.limit = budget->limit;
    node.worst_non_gpu = budget->non_gpu_maximum;
    node.lowest_supply_efficiency = budget->lowest_supply_efficiency;
    node.highest_supply_efficiency = budget->highest_supply_efficiency;
    node.overshoot_fraction = budget->overshoot_fraction;
    node.meter_accuracy_fraction = budget->meter_accuracy_fraction;
    node_budget = node;
  }
  longest_lease = guard.lease;
  verify_period = guard.verify_interval;
  minimum_dwell = guard.dwell;
  stale_after = guard.stale_after;
  dead_band = guard.dead_band;
  rounding = guard.rounding;
  largest_step_down = guard.largest_step_down;
  largest_step_up = guard.largest_step_up;
  drift_rewrites = guard.drift_rewrites;
  drift_quiet = guard.drift_quiet;
  drift_budget_pause = guard.drift_budget_pause;
  retry_first = guard.retry_first;
  retry_longest = guard.retry_longest;
}

}  // namespace flyball::guard
