#include "guard/node_budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace flyball::guard {
namespace {

std::int64_t hour_of(MonoTime at) { return at.nanoseconds() / 3'600'000'000'000; }

bool is_fraction(double value) { return value > 0 && value <= 1; }

}  // namespace

Result<NodeBudget> NodeBudget::make(const NodeBudgetConfig& config) {
  const auto refuse = [&](std::string what) {
    return fail(ErrorCode::input, std::move(what), config.meter.text(), "correct the node budget");
  };
  if (!(config.limit > Watts(0)) || !config.limit.finite()) return refuse("a budget must be above 0 W");
  if (!(config.worst_non_gpu > Watts(0)) || !config.worst_non_gpu.finite()) {
    return refuse("the worst non-GPU draw of the node must be stated and above 0 W");
  }
  if (!is_fraction(config.lowest_supply_efficiency) || !is_fraction(config.highest_supply_efficiency) ||
      config.highest_supply_efficiency < config.lowest_supply_efficiency) {
    return refuse("supply efficiencies must be fractions, the lowest not above the highest");
  }
  if (!(config.overshoot_fraction >= 0 && config.overshoot_fraction < 1) ||
      !(config.meter_accuracy_fraction >= 0 && config.meter_accuracy_fraction < 1)) {
    return refuse("overshoot and meter accuracy must be fractions from 0 to below 1");
  }
  return NodeBudget(config);
}

void NodeBudget::observe(MonoTime at, const Sample<Watts>& meter, const Sample<Watts>& gpu_sum) {
  constexpr Seconds kLongestGap{60};  // a longer silence is not measured time
  if (!meter.ok() || !gpu_sum.ok() || !meter.value.finite() || !gpu_sum.value.finite()) return;
  // A meter that shows less than the GPUs behind it is on another circuit, or wrong; it teaches nothing.
  if (meter.value < gpu_sum.value) return;
  if (last_ && at > *last_) measured_ += std::min(at - *last_, kLongestGap);
  if (!last_ || at > *last_) last_ = at;
  const Watts draw =
      meter.value * (1 + config_.meter_accuracy_fraction) * config_.highest_supply_efficiency - gpu_sum.value;
  Hour& hour = hours_[static_cast<std::size_t>(hour_of(at)) % hours_.size()];
  if (hour.number != hour_of(at)) hour = Hour{hour_of(at), Watts(0)};
  hour.largest = std::max(hour.largest, draw);
}

bool NodeBudget::learned(MonoTime now) const {
  return measured_ >= config_.learn_at_least && last_ && now - *last_ < Seconds(3600);
}

Watts NodeBudget::non_gpu_bound(MonoTime now) const {
  Watts largest;
  for (const Hour& hour : hours_) {
    const std::int64_t age = hour_of(now) - hour.number;
    if (hour.number >= 0 && age < static_cast<std::int64_t>(hours_.size())) largest = std::max(largest, hour.largest);
  }
  return learned(now) ? largest : std::max(largest, config_.worst_non_gpu);
}

Watts NodeBudget::at_meter(Watts caps, Watts non_gpu) const {
  return (caps * (1 + config_.overshoot_fraction) + non_gpu) / config_.lowest_supply_efficiency;
}

Watts NodeBudget::bound(const std::vector<BoardDraw>& boards, MonoTime now) const {
  Milliwatts sum;
  for (const BoardDraw& board : boards) sum = sum + board.cap;
  return at_meter(sum.watts(), non_gpu_bound(now));
}

bool NodeBudget::holds(const std::vector<BoardDraw>& boards, MonoTime now) const {
  return bound(boards, now) <= usable();
}

Result<> NodeBudget::admits(const std::vector<BoardDraw>& boards, MonoTime now) const {
  if (holds(boards, now)) return {};
  Milliwatts sum;
  std::string silent;
  for (const BoardDraw& board : boards) {
    sum = sum + board.cap;
    if (board.silent) silent += (silent.empty() ? "; counted at their maximum: " : ", ") + board.device.text();
  }
  return fail(ErrorCode::refused,
              fmt::format("caps of {} and a non-GPU draw of up to {} could show {} at the meter, above {} ({} less its "
                          "accuracy){}",
                          format(sum), format(non_gpu_bound(now)), format(bound(boards, now)), format(usable()),
                          format(config_.limit), silent),
              config_.meter.text(), "lower other boards first, or raise the budget");
}

std::vector<DeviceId> NodeBudget::drain_list(const std::vector<BoardDraw>& boards, MonoTime now) const {
  std::vector<BoardDraw> by_minimum = boards;
  std::stable_sort(by_minimum.begin(), by_minimum.end(),
                   [](const BoardDraw& a, const BoardDraw& b) { return a.minimum > b.minimum; });
  Watts sum;
  for (const BoardDraw& board : boards) sum += board.minimum.watts();
  std::vector<DeviceId> drained;
  for (const BoardDraw& board : by_minimum) {
    if (at_meter(sum, non_gpu_bound(now)) <= usable()) break;
    sum += std::min(config_.idle_per_board, board.minimum.watts()) - board.minimum.watts();
    drained.push_back(board.device);
  }
  return drained;
}

Result<> NodeBudget::feasible(const std::vector<BoardDraw>& boards, MonoTime now) const {
  Watts minima;
  Watts safe_caps;
  for (const BoardDraw& board : boards) {
    minima += board.minimum.watts();
    safe_caps += board.safe_cap.watts();
  }
  if (at_meter(minima, non_gpu_bound(now)) > usable()) {
    std::string list;
    for (const DeviceId& device : drain_list(boards, now)) list += (list.empty() ? "" : ", ") + device.text();
    return fail(ErrorCode::refused,
                fmt::format("infeasible: with every board at its minimum ({} together) the meter can show {}, above {}",
                            format(minima), format(at_meter(minima, non_gpu_bound(now))), format(usable())),
                config_.meter.text(), "take the jobs off these boards, then ask again: " + list);
  }
  if (at_meter(safe_caps, config_.worst_non_gpu) > usable()) {
    return fail(ErrorCode::refused,
                fmt::format("the safe caps ({} together) and the worst non-GPU draw ({}) can show {}, above {}",
                            format(safe_caps), format(config_.worst_non_gpu),
                            format(at_meter(safe_caps, config_.worst_non_gpu)), format(usable())),
                config_.meter.text(), "lower the safe caps: boards fall to them when the budget's owner is gone");
  }
  return {};
}

}  // namespace flyball::guard
