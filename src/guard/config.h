#pragma once
// What the site tells the guard. Every default names where it comes from.

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

struct EngineConfig {
  std::string journal_path = "flyball-guard.journal";
  BoardPolicy everywhere;                  ///< for boards not named below
  std::map<DeviceId, BoardPolicy> boards;  ///< replaces `everywhere` as a whole
  std::optional<NodeBudgetConfig> node_budget;

  /// Longest that a lease lives unrenewed (doc/safety.md: 10 s).
  Seconds longest_lease{10};
  /// Between two looks at each held board. Two seconds: a driver call takes 10 to 20 ms, a board needs three.
  Seconds verify_period{2};
  /// Between two writes to one board. Clock changes every 50 ms were seen to delay collectives; 1 s is the window over
  /// which most boards since Ampere average their power, so a faster change is not seen anyway.
  Seconds minimum_dwell{1};
  /// Wishes nearer than this to what is in force are not written.
  Milliwatts dead_band{1000};
  /// Boards round requests to whole watts or less: values this near are the same limit.
  Milliwatts rounding{1000};
  /// Largest single step, as some boards overshoot upward for seconds after a large step down. A budget's decrease is
  /// never stepped: its overshoot is in the sum (NodeBudgetConfig::overshoot_per_board).
  Milliwatts largest_step_down{150'000};
  Milliwatts largest_step_up{150'000};
  /// Rewrites of a limit that someone else keeps changing: this many with doubling back-off, then the lease yields …
  int drift_rewrites = 5;
  /// … except under a budget, where one rewrite each of these goes on.
  Seconds drift_budget_pause{1800};
  /// Quiet for this long = the count starts anew.
  Seconds drift_quiet{6 * 3600};
  /// Back-off of failed writes and restores: doubles from the first to the second value.
  Seconds retry_first{1};
  Seconds retry_longest{60};
  /// Without a good read for this long a board is silent and counts at its maximum.
  Seconds stale_after{6};

  const BoardPolicy& policy(const DeviceId& device) const {
    const auto found = boards.find(device);
    return found == boards.end() ? everywhere : found->second;
  }
};

/// What a configuration file says about the site and the guard.
EngineConfig make_engine_config(const Settings& settings);

}  // namespace flyball::guard
