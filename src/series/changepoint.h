#pragma once
// Where the level (or the level and the spread) of a series changes.

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "series/samples.h"

namespace flyball::series {

struct Segment {
  WallTime start;  ///< of its first sample
  WallTime stop;   ///< of the first sample of the next, or of the last sample
  double mean = 0;
  double sd = 0;
  std::size_t samples = 0;
};

struct ChangePointOptions {
  bool variance_too = false;  ///< else the noise is taken as the same everywhere
  double penalty_scale = 1;   ///< on top of the penalty below
  std::size_t min_samples = 5;
};

struct ChangePoints {
  std::vector<Segment> segments;  ///< one if nothing changes
  double noise_sd = 0;
  double penalty = 0;            ///< in twice the log-likelihood
  std::size_t cell_samples = 1;  ///< more than 8,000 samples are averaged in cells of so many first
};

/// PELT (Killick, Fearnhead and Eckley, 2012) for normal values. Noise and the correlation r of neighbours are
/// estimated from differences over one and two samples (they do not see the changes); the penalty is 3 · log n for a
/// new mean and its place, one more log n for a variance, times (1 + r) / (1 − r), by which correlation inflates the
/// variance of means.
ChangePoints change_points(const Samples& samples, const ChangePointOptions& options = {});

}  // namespace flyball::series
