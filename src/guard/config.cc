#include "guard/config.h"

namespace flyball::guard {
namespace {

BoardPolicy policy_of(const BoardRange& range) {
  return {range.minimum, range.maximum, range.safe_cap, range.clocks_unlocked};
}

}  // namespace

EngineConfig make_engine_config(const Settings& settings) {
  const GuardSettings& guard = settings.guard;
  EngineConfig config;
  config.journal_path = guard.journal;
  config.everywhere = policy_of(settings.site.everywhere);
  for (const auto& [device, range] : settings.site.boards) config.boards[device] = policy_of(range);
  if (const auto& budget = settings.site.node_budget) {
    NodeBudgetConfig node;
    node.meter = budget->meter;
    node.limit = budget->limit;
    node.worst_non_gpu = budget->non_gpu_maximum;
    node.lowest_supply_efficiency = budget->lowest_supply_efficiency;
    node.highest_supply_efficiency = budget->highest_supply_efficiency;
    node.overshoot_fraction = budget->overshoot_fraction;
    node.meter_accuracy_fraction = budget->meter_accuracy_fraction;
    config.node_budget = node;
  }
  config.longest_lease = guard.lease;
  config.verify_period = guard.verify_interval;
  config.minimum_dwell = guard.dwell;
  config.stale_after = guard.stale_after;
  config.dead_band = guard.dead_band;
  config.rounding = guard.rounding;
  config.largest_step_down = guard.largest_step_down;
  config.largest_step_up = guard.largest_step_up;
  config.drift_rewrites = guard.drift_rewrites;
  config.drift_quiet = guard.drift_quiet;
  config.drift_budget_pause = guard.drift_budget_pause;
  config.retry_first = guard.retry_first;
  config.retry_longest = guard.retry_longest;
  return config;
}

}  // namespace flyball::guard
