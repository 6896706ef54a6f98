#pragma once
// What the site tells the guard.

#include <map>
#include <optional>
#include <string>

#include "base/units.h"
#include "core/device.h"
#include "core/settings.h"
#include "guard/node_budget.h"

namespace flyball::guard {

/// What the site says about one board. Absent = the board's own range, as its driver reports it.
struct BoardPolicy {
  std::optional<Milliwatts> floor;
  std::optional<Milliwatts> ceiling;
  /// Where a budget lease falls when it ends. Absent = the lowest limit allowed, which always holds a circuit.
  std::optional<Milliwatts> safe_cap;
  /// Clocks were unlocked before the guard came. A lock cannot be read back, so without this word clocks are not
  /// locked.
  bool clocks_unlocked = false;
};

/// Numbers, their ranges, defaults and where they come from are declared once, with the keys of core/settings.cc.
struct EngineConfig {
  EngineConfig() : EngineConfig(default_settings()) {}
  explicit EngineConfig(const Settings& settings);

  std::string journal_path;
  BoardPolicy everywhere;                  ///< for boards not named below
  std::map<DeviceId, BoardPolicy> boards;  ///< replaces `everywhere` as a whole
  std::optional<NodeBudgetConfig> node_budget;
  Seconds longest_lease;  ///< that a lease lives unrenewed
  Seconds verify_period;  ///< between two looks at each held board
  Seconds minimum_dwell;  ///< between two writes to one board
  Milliwatts dead_band;   ///< wishes nearer than this to what is in force are not written
  Milliwatts rounding;    ///< values this near are the same limit
  /// Largest single step. A budget's decrease is never stepped: its overshoot is in the sum.
  Milliwatts largest_step_down;
  Milliwatts largest_step_up;
  /// Rewrites of a limit that someone else keeps changing: this many with doubling back-off, then the lease yields …
  int drift_rewrites = 0;
  Seconds drift_budget_pause;  ///< … except under a budget, where one rewrite each of these goes on
  Seconds drift_quiet;         ///< for this long: the count starts anew
  /// Back-off of failed writes and restores: doubles from the first to the second value.
  Seconds retry_first;
  Seconds retry_longest;
  Seconds stale_after;  ///< without a good read for this long a board is silent and counts at its maximum

  const BoardPolicy& policy(const DeviceId& device) const {
    const auto found = boards.find(device);
    return found == boards.end() ? everywhere : found->second;
  }
};

}  // namespace flyball::guard
