#pragma once
// What a configuration file says, in types. The keys, their ranges, defaults and the sources of the defaults are
// declared in settings.cc and nowhere else; doc/ and `config check` print them from there.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/result.h"
#include "base/units.h"
#include "core/control.h"
#include "core/device.h"
#include "core/result_types.h"

namespace flyball {

/// What the site allows for a board; a missing field leaves the board's own range.
struct BoardRange {
  std::optional<Milliwatts> minimum;
  std::optional<Milliwatts> maximum;
  std::optional<Milliwatts> safe_cap;  ///< where a budget lease falls when it ends
  bool clocks_unlocked = false;        ///< declared unlocked before the guard came, so that a reset restores them
};

struct RunSettings {
  std::vector<DeviceId> gpus;  ///< empty = all
  std::string policy;
  Seconds interval;             ///< between decisions
  Seconds sample;               ///< between readings
  double switchback_share = 0;  ///< of the time at the limits found; 0 = none
  Objective objective;
  std::optional<Budget> budget;
  std::optional<Seconds> duration;
  std::string state_dir;  ///< empty = the program's own default
};

/// The sum that keeps a meter's budget: see guard/node_budget.h.
struct NodeBudgetSettings {
  DeviceId meter;
  Watts limit;
  Watts non_gpu_maximum;
  double lowest_supply_efficiency = 0;
  double highest_supply_efficiency = 0;
  double overshoot_fraction = 0;
  double meter_accuracy_fraction = 0;
};

struct SiteSettings {
  BoardRange everywhere;
  std::map<DeviceId, BoardRange> boards;  ///< fields of `everywhere` hold where a board does not set its own
  std::optional<NodeBudgetSettings> node_budget;
  const BoardRange& range(const DeviceId& device) const {
    const auto found = boards.find(device);
    return found == boards.end() ? everywhere : found->second;
  }
};

struct GuardSettings {
  std::string socket;
  std::string journal;
  std::string audit;
  std::string group;  ///< of the socket; empty = the guard's own
  std::vector<std::string> site_users;
  std::vector<std::string> fleet_users;
  bool require_allowance = false;
  Seconds lease;
  Seconds verify_interval;
  Seconds dwell;
  Seconds stale_after;
  Milliwatts dead_band;
  Milliwatts rounding;
  Milliwatts largest_step_down;
  Milliwatts largest_step_up;
  int drift_rewrites = 0;
  Seconds drift_quiet;
  Seconds drift_budget_pause;
  Seconds retry_first;
  Seconds retry_longest;
};

struct Settings {
  RunSettings run;
  SiteSettings site;
  Rates rates;
  GuardSettings guard;
};

/// Every key there is.
std::span<const ConfigKey> settings_keys();

/// From a checked file; what only shows when keys are seen together (a minimum above a maximum, a GPU by its index) is
/// checked here, all of it at once.
tl::expected<Settings, std::vector<Error>> make_settings(const Config& config);

/// File to settings in one step.
tl::expected<Settings, std::vector<Error>> parse_settings(std::string_view text, const std::string& name);
Settings default_settings();

}  // namespace flyball
