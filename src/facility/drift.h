#pragma once
// Lasting differences between a facility and the baseline that it had, and in which phases of the job they appear: what
// comes only while nothing is computed is no change of the computing.

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/stats.h"
#include "base/units.h"
#include "facility/phase_library.h"

namespace flyball::facility {

struct DriftOptions {
  Seconds block = Seconds(600);  ///< of one phase's time; shorter differences are nobody's drift
  /// A phase's first ones say how it scatters: at least so many, over at least so long.
  std::size_t reference_blocks = 48;
  Seconds reference_time = Seconds(3 * 86400.0);
  /// Of the cumulative sum (Page, 1954), in the blocks' long-run sd: shifts above twice the allowance are found
  /// soonest.
  double allowance = 1, threshold = 12;
  double ripple_factor = 1.5;  ///< the scatter within blocks is a finding when it is so much larger
  double level = 0.95;
};

/// Stable: "idle", "checkpoint", "busy" (only while it computes), "everywhere", "ripple" (more scatter, no other mean).
struct DriftFinding {
  std::string kind;
  std::vector<PhaseKey> phases;  ///< in which it is seen
  WallTime since;
  Estimate size_w;  ///< mean difference from the reference; of a ripple, the added sd
};

/// Fed with what was measured less what a baseline expected that no longer learns (`PhaseLibrary::freeze`). Points come
/// in order of time. Not for threads.
class DriftWatch {
 public:
  explicit DriftWatch(const DriftOptions& options = {}) : options_(options) {}

  void take(WallTime at, const PhaseKey& key, Watts difference);
  /// What lasts now. Phases that drift alike are one finding.
  std::vector<DriftFinding> findings() const;

 private:
  struct Watched {
    RunningStats block;
    WallTime block_start, last;
    std::vector<double> means, scatters;  ///< of the reference; then the newest, bounded
    double centre = 0, sd = 0, scatter = 0;
    double run_length = 1;  ///< how many blocks in a row say as much as one
    WallTime first;
    bool referenced = false;
    double up = 0, down = 0;  ///< cumulative sums
    WallTime up_since, down_since;
    RunningStats up_blocks, down_blocks, wide_blocks;
    WallTime wide_since;
    bool alarm_up = false, alarm_down = false;
  };
  void finish_block(Watched& watched) const;
  void compare(Watched& watched, double mean, double scatter) const;
  Estimate size_of(const Watched& watched, const RunningStats& blocks) const;

  DriftOptions options_;
  std::map<PhaseKey, Watched> watched_;
};

}  // namespace flyball::facility
