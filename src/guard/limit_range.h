#pragma once
// Which limits may be written at all: what the site allows, of what the board says it can do.

#include "base/result.h"
#include "base/units.h"
#include "core/driver.h"
#include "guard/config.h"

namespace flyball::guard {

struct LimitRange {
  Milliwatts low;
  Milliwatts high;
  bool contains(Milliwatts limit) const { return low <= limit && limit <= high; }
  Milliwatts clamp(Milliwatts limit) const { return limit < low ? low : (limit > high ? high : limit); }
};

/// Drivers answer "unknown" with 0, all ones or their signed forms; none of them is a limit that a board can have.
bool is_plausible(Milliwatts limit);
/// Present, `ok` and plausible.
bool is_known(const Sample<Milliwatts>& limit);

/// The board's own range; an error when the driver does not know it or says something that cannot be true.
Result<LimitRange> board_range(const DeviceId& device, const PowerLimits& limits);
/// The board's range within the site's, in whole milliwatts.
Result<LimitRange> allowed_range(const DeviceId& device, const BoardPolicy& policy, const PowerLimits& limits);

}  // namespace flyball::guard
