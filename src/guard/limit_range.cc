#include "guard/limit_range.h"

#include <algorithm>

#include "base/text.h"

namespace flyball::guard {
namespace {

std::string shown(const Sample<Milliwatts>& limit) {
  return limit.ok() ? std::to_string(limit.value.value()) + " mW" : std::string(to_string(limit.status));
}

}  // namespace

bool is_plausible(Milliwatts limit) {
  // 1 W to 100 kW: no board is near either end, every sentinel (0, 2^32 - 1, 2^31 - 1 with other units) is outside.
  constexpr Milliwatts kLowest(1000);
  constexpr Milliwatts kHighest(100'000'000);
  return kLowest <= limit && limit <= kHighest;
}

bool is_known(const Sample<Milliwatts>& limit) { return limit.ok() && is_plausible(limit.value); }

Result<LimitRange> board_range(const DeviceId& device, const PowerLimits& limits) {
  if (!is_known(limits.minimum) || !is_known(limits.maximum) || limits.maximum.value < limits.minimum.value) {
    return fail(ErrorCode::unsupported,
                "the driver reports no usable range of limits (minimum " + shown(limits.minimum) + ", maximum " +
                    shown(limits.maximum) + ")",
                device.text(), "this board is observed only");
  }
  return LimitRange{limits.minimum.value, limits.maximum.value};
}

Result<LimitRange> allowed_range(const DeviceId& device, const BoardPolicy& policy, const PowerLimits& limits) {
  FLYBALL_ASSIGN(LimitRange range, board_range(device, limits));
  if (policy.floor) range.low = std::max(range.low, *policy.floor);
  if (policy.ceiling) range.high = std::min(range.high, *policy.ceiling);
  if (range.high < range.low) {
    return fail(ErrorCode::refused,
                "the site's range and the board's own do not meet (board " + format(limits.minimum.value) + " to " +
                    format(limits.maximum.value) + ")",
                device.text(), "correct the floor or ceiling of this board in the guard's configuration");
  }
  return range;
}

}  // namespace flyball::guard
