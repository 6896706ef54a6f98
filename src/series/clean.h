#pragma once
// Values that cannot be true are marked `garbage` before anything is computed from them. Only what physics or a
// device's own "not available" code rules out is marked; an unusual value is left alone.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "core/reading.h"
#include "series/series.h"

namespace flyball::series {

/// Closed range in unit_of(signal).
struct Range {
  double low = 0;
  double high = 0;
};

/// The most that anything of this scope can draw, for CounterOptions::most.
Watts plausible_power(Scope scope);

struct CleanOptions {
  std::optional<Range> range;  ///< of this very device, where it is known: its limit's maximum with a margin
  /// Zeros in a row between readings above zero: a meter that was absent, up to this many; longer, it was switched off.
  std::size_t longest_false_zero = 4;
};

struct CleanReport {
  std::uint64_t checked = 0;
  std::uint64_t not_finite = 0;
  std::uint64_t out_of_range = 0;
  std::uint64_t sentinels = 0;   ///< all bits set, largest signed value and the like, at any decimal scale
  std::uint64_t wrong_unit = 0;  ///< single readings a thousandth of what surrounds them
  std::uint64_t false_zeros = 0;
  std::string unit_hint;  ///< set when the series as a whole looks like another unit
  std::uint64_t garbage() const { return not_finite + out_of_range + sentinels + wrong_unit + false_zeros; }
};

/// Marks garbage in place; points of other status stay as they are.
CleanReport clean(std::vector<Point>& points, const SeriesKey& key, const CleanOptions& options = {});

/// The same, point by point, for what can be told without neighbours.
bool believable(double value, const Range& range);

/// A value is too old to act on when it was measured more than `periods` of its source ago.
bool is_stale(WallTime measured, WallTime now, Seconds period, double periods = 5);
/// Marks every good point that is stale at `now`; returns how many.
std::size_t mark_stale(std::vector<Point>& points, WallTime now, Seconds period, double periods = 5);

}  // namespace flyball::series
