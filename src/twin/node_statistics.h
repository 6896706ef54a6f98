#pragma once
// How the sum of a job's nodes moves and how much they move together, in training alone: what a twin is held to.

#include <span>
#include <vector>

#include "series/blocks.h"
#include "series/series.h"

namespace flyball::twin {

struct NodeStatistics {
  std::size_t nodes = 0;
  std::vector<series::BlockStatistic> blocks;  ///< of the sum at 2, 5, 10 and 30 s
  double correlation = 0;                      ///< mean over all pairs of nodes, of means over 2 s
  Seconds step_period;                         ///< of the sum, by autocorrelation; 0 = none found
};

/// Evaluations with 4 s on both sides and the first 12 s of the run are left out.
NodeStatistics node_statistics(std::span<const std::span<const series::Point>> nodes,
                               std::span<const series::Event> events);
/// Of the series of that scope in a recording.
NodeStatistics node_statistics(const series::Recording& recording, Scope scope);

}  // namespace flyball::twin
