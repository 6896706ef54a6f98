#pragma once
// How fast power changes: what a generator, a transformer or a grid contract asks about.

#include <span>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "series/samples.h"

namespace flyball::series {

/// Watts per second, as a plain number with its unit in the name.
struct Ramp {
  Seconds span;                 ///< over which the change is taken
  double max_up_w_per_s = 0;    ///< greatest rise, ≥ 0
  double max_down_w_per_s = 0;  ///< greatest fall, as a positive number
  double p50_w_per_s = 0;       ///< quantiles of the absolute rate
  double p95_w_per_s = 0;
  double p99_w_per_s = 0;
  WallTime up_at;  ///< end of the greatest rise
  WallTime down_at;
  std::uint64_t pairs = 0;  ///< instants compared; 0: nothing could be
  bool resolved = true;     ///< false when the span is shorter than the sampling: a lower bound of the true ramp
};

/// (P(t) − P(t − span)) / span at every sample, with P on the straight line between neighbours; never across a hole.
std::vector<Ramp> ramps(const Samples& power, std::span<const Seconds> spans, const GapRule& gap = {});
/// 1, 10 and 60 s.
std::vector<Seconds> default_ramp_spans();

}  // namespace flyball::series
