#pragma once
// One job's curve from a few measured limits: what the family of curves says, corrected by the points, with an interval
// at every limit.

#include <span>
#include <vector>

#include "base/result.h"
#include "base/stats.h"
#include "curve/curve.h"

namespace flyball::curve {

/// Time per unit of work. Gaussian-process regression in log time with the priors of time_families(); the noise of the
/// points and the family are averaged over by their likelihood (a grid of noise levels, exact within each).
class TimePosterior {
 public:
  /// At least one point; limits once each, all values positive and finite. `level` is that of the intervals.
  static Result<TimePosterior> fit(std::span<const Point> points, double level = 0.9);
  /// Seconds, of a new measurement at that limit: the interval counts its noise.
  Estimate at(Watts limit) const;

 private:
  struct Component;
  double unlimited_ = 1;  ///< W, the highest power seen: where limits begin to bind
  double level_ = 0.9;
  std::vector<double> x_;
  std::vector<Component> components_;
};

/// One way to explain the points: a family and a noise level.
struct TimePosterior::Component {
  std::size_t family = 0;
  double noise = 0;              ///< sd of a point, in logs
  double weight = 0;             ///< posterior probability
  double level = 0;              ///< mean log time, taken out of the points
  std::vector<double> cholesky;  ///< lower, row by row
  std::vector<double> solved;    ///< covariance⁻¹ · (points − mean)
};

}  // namespace flyball::curve
