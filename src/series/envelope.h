#pragma once
// Views of a power signal that remove the swing of a training step, and how clearly two levels stand apart in them.

#include <cstddef>
#include <span>
#include <vector>

namespace flyball::series {

/// Largest then smallest over `width` neighbours: dips shorter than `width` samples are filled, edges stay in place.
std::vector<double> closing(std::span<const double> values, std::size_t width);
/// The opposite: peaks shorter than `width` samples are cut.
std::vector<double> opening(std::span<const double> values, std::size_t width);
/// Centred mean over `width` samples, which need not be whole; shorter at the ends.
std::vector<double> moving_mean(std::span<const double> values, double width);

/// How far a minority of the values stands below the rest (values negated by the caller for "above").
struct Separation {
  double ratio = 0;       ///< empty band / spread of the majority on that side; 0 = no minority
  double threshold = 0;   ///< middle of the empty band
  double difference = 0;  ///< of the medians of the two classes
  double minority_fraction = 0;
};
/// Two classes by Otsu's threshold (1979); quantiles of 1 % on both sides of the band bear single outliers.
Separation separation_below(std::span<const double> values, double max_minority_fraction);

}  // namespace flyball::series
