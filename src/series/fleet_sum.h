#pragma once
// The power of many meters as one series: each is averaged by time onto a common grid, then they are added.

#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "series/samples.h"
#include "series/series.h"

namespace flyball::series {

struct SumOptions {
  Seconds step;                      ///< of the grid; 0 = the median period of the series
  std::optional<Interval> clip;      ///< default: from the first to the last good point of any series
  double min_cell_coverage = 0.5;    ///< a series counts in a cell if this share of the cell was measured
  double min_series_fraction = 0.9;  ///< a cell is `ok` if this share of the series counts in it
  GapRule gap;
};

/// A cell's point stands at the cell's end and holds the mean power over the cell, as a meter's trailing mean would.
/// Where some series are missing, each stands in with its own overall mean times the present ones' ratio to theirs: a
/// sum that left them out would pass under a budget. Cells with too few series have status `missing`.
struct FleetSum {
  Series sum;
  std::vector<double> present_fraction;  ///< by cell: share of the series that were measured
  Seconds step;
  std::size_t series = 0;
  Seconds complete;  ///< time of cells in which all series were measured
  Skipped skipped;
};

FleetSum fleet_sum(std::span<const Series> nodes, const SumOptions& options = {});
FleetSum fleet_sum(std::span<const std::span<const Point>> nodes, const SumOptions& options = {});

/// Means over cells [start + k·step, start + (k+1)·step); NaN where less than min_coverage of the cell was measured.
std::vector<double> cell_means(const Samples& samples, WallTime start, Seconds step, std::size_t cells,
                               double min_coverage, const GapRule& gap = {});

}  // namespace flyball::series
