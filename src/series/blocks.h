#pragma once
// Statistics of power over blocks of time, and how nodes move together: what a twin must reproduce and a noise model
// needs.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "series/samples.h"

namespace flyball::series {

struct BlockStatistic {
  Seconds width;
  std::uint64_t blocks = 0;
  double mean_w = 0;
  double sd_w = 0;  ///< of the block means
};

/// Of the sum of the nodes (one node: of itself), read at the instants of a common grid of their median period, each on
/// the straight line between its neighbouring samples; a block mean is the mean of the grid's values in it. Blocks
/// follow each other inside each stretch between excluded intervals; the rest of a stretch is left out, and so is a
/// block with an instant at which less than 90 % of the nodes were measured. Nodes that were not stand in with their
/// own overall mean times the others' ratio to theirs.
std::vector<BlockStatistic> block_statistics(std::span<const std::span<const Point>> nodes,
                                             std::span<const Seconds> widths, std::span<const Interval> excluded = {},
                                             const GapRule& gap = {});

/// Mean of Pearson's correlation over all pairs of nodes, of means over cells of `width` in the time that all share;
/// cells that touch an excluded interval are left out. Empty for fewer than two nodes that vary.
std::optional<double> pairwise_correlation(std::span<const std::span<const Point>> nodes, Seconds width,
                                           std::span<const Interval> excluded = {}, const GapRule& gap = {});

}  // namespace flyball::series
