#pragma once
// Monotone piecewise cubic interpolation (PCHIP): between two knots the curve stays between their values, so that a
// fitted curve has no bumps which a controller could take for savings.

#include <span>
#include <vector>

#include "base/result.h"

namespace flyball::curve {

/// Cubic Hermite pieces with slopes limited after Fritsch and Carlson (1980), in the weighted harmonic form of Fritsch
/// and Butland (1984); three-point slopes at the ends. Outside the knots the end values hold.
class MonotoneCubic {
 public:
  /// At least one knot; x strictly increasing; all finite.
  static Result<MonotoneCubic> through(std::span<const double> x, std::span<const double> y);
  double operator()(double x) const;

 private:
  std::vector<double> x_, y_, slope_;
};

}  // namespace flyball::curve
