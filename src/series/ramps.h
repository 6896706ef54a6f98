#pragma once
// How fast power changes: what a generator, a transformer or a grid contract asks about.

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "series/reservoir.h"
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

/// The same piece by piece, in memory that grows with the longest span only. The quantiles are exact up to kExact
/// instants, and those of a fair sample of kExact beyond.
class RampMeter {
 public:
  static constexpr std::size_t kExact = 100'000;
  RampMeter(Seconds period, std::span<const Seconds> spans, const GapRule& gap = {});
  /// Pieces in order of time, each behind the one before.
  void add(const Samples& piece);
  std::vector<Ramp> result() const;

 private:
  struct Span {
    Ramp ramp;
    std::uint64_t at = 0;  ///< number of the sample before t − span
    Reservoir rates;
  };
  struct Sample {
    double t, value;
  };
  const Sample& sample(std::uint64_t number) const { return kept_[number - forgotten_]; }
  void compare(Span& span);

  double longest_step_;
  std::vector<Span> spans_;
  WallTime origin_;
  std::deque<Sample> kept_;
  std::uint64_t forgotten_ = 0, count_ = 0;
  std::uint64_t stretch_ = 0;  ///< first sample of the stretch without a hole
  double stretch_t_ = 0;
  Random random_{1};
};

/// 1, 10 and 60 s.
std::vector<Seconds> default_ramp_spans();

}  // namespace flyball::series
