#pragma once
// A budget is on a meter, not on a sum of caps. With DC power behind the supplies and AC power at the meter:
//
//   (Σ caps · (1 + overshoot) + non-GPU bound) / lowest supply efficiency ≤ limit / (1 + meter accuracy)
//
// The non-GPU bound is the configured worst case until enough has been measured, then the largest draw seen over the
// last day: meter · (1 + accuracy) · highest supply efficiency − Σ GPU power. This class admits or refuses; it never
// divides.

#include <array>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "core/device.h"
#include "core/reading.h"

namespace flyball::guard {

struct NodeBudgetConfig {
  DeviceId meter;
  Watts limit;          ///< at the meter
  Watts worst_non_gpu;  ///< DC: processors, memory, fans at full speed, network, drives; from the node's data sheet
  double lowest_supply_efficiency = 0.90;   ///< 80 PLUS Gold at full load is 0.87 to 0.92; from the supply's data sheet
  double highest_supply_efficiency = 0.96;  ///< 80 PLUS Titanium at half load
  double overshoot_fraction = 0.05;         ///< of the caps: what boards draw above their cap within the window
  double meter_accuracy_fraction = 0.02;    ///< class 2; from the meter's data sheet
  Watts idle_per_board{90};                 ///< of a board without a job, for the drain list; H100 idles at 70 to 90 W
  Seconds learn_at_least{3600};             ///< measured time before the worst case may be left
  /// For boards that never told their maximum, e.g. lost since the start.
  std::optional<Milliwatts> board_maximum;
};

/// One board as the budget sees it.
struct BoardDraw {
  DeviceId device;
  Milliwatts cap;      ///< in force, or asked for; what a silent board could draw is its maximum
  Milliwatts minimum;  ///< lowest limit allowed
  Milliwatts safe_cap;
  bool silent = false;  ///< lost, hung or stale: `cap` is the board's maximum
};

class NodeBudget {
 public:
  /// Refuses numbers that cannot be true.
  static Result<NodeBudget> make(const NodeBudgetConfig& config);
  const NodeBudgetConfig& config() const { return config_; }

  /// One pair of simultaneous readings. Pairs with a missing part teach nothing.
  void observe(MonoTime at, const Sample<Watts>& meter, const Sample<Watts>& gpu_sum);
  Watts non_gpu_bound(MonoTime now) const;
  bool learned(MonoTime now) const;

  /// Upper bound of what the meter can show.
  Watts bound(const std::vector<BoardDraw>& boards, MonoTime now) const;
  bool holds(const std::vector<BoardDraw>& boards, MonoTime now) const;
  /// Error `refused` with the sum and the limit when the boards together could exceed the budget.
  Result<> admits(const std::vector<BoardDraw>& boards, MonoTime now) const;
  /// Error `refused` when the budget cannot hold even with each board at its minimum (the error lists which to drain),
  /// or when the safe caps, to which boards fall by themselves, do not fit.
  Result<> feasible(const std::vector<BoardDraw>& boards, MonoTime now) const;
  /// The fewest boards to take jobs off, largest minimum first, so that the others fit at their minimum. All of them
  /// when nothing helps.
  std::vector<DeviceId> drain_list(const std::vector<BoardDraw>& boards, MonoTime now) const;

 private:
  explicit NodeBudget(const NodeBudgetConfig& config) : config_(config) {}
  Watts at_meter(Watts caps, Watts non_gpu) const;
  Watts usable() const { return config_.limit / (1 + config_.meter_accuracy_fraction); }

  struct Hour {
    std::int64_t number = -1;
    Watts largest;
  };
  NodeBudgetConfig config_;
  std::array<Hour, 24> hours_{};  ///< largest non-GPU draw by hour
  Seconds measured_;
  std::optional<MonoTime> last_;
};

}  // namespace flyball::guard
