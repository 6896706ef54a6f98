#pragma once
// One job's curve from a few measured limits: what the family of curves says, corrected by the points, with an interval
// at every limit.

#include <span>
#include <vector>

#include "base/result.h"
#include "base/stats.h"
#include "curve/curve.h"
#include "curve/family.h"

namespace flyball::curve {

/// Time per unit of work. Gaussian-process regression in log time with the priors of time_families(); the noise of the
/// points, the family and, once other jobs of the board are known, its shape are averaged over by their likelihood
/// (grids, exact within each).
class TimePosterior {
 public:
  /// At least one point; limits once each, all values positive and finite. `level` is that of the intervals.
  static Result<TimePosterior> fit(std::span<const Point> points, double level = 0.9);
  /// ln p(these points | shape of the board), one for each of board_shapes().
  const std::vector<double>& log_evidence() const { return evidence_; }
  /// What other jobs of the same board say of its shape: the sum of their log evidence, one for each of board_shapes().
  /// Before, the board is taken to be like all: the few points of one job cannot tell it.
  void learn_board(std::span<const double> others);
  /// Seconds, of a new measurement at that limit: the interval counts its noise. Mean in logs; quantiles of the mixture
  /// once the board is known, before that those of a normal with its moments.
  Estimate at(Watts limit) const;

 private:
  struct Component;
  struct Normal {
    double weight, mean, sd;
  };
  void weigh(std::span<const double> others);
  double unlimited_ = 1;  ///< W, the highest power seen: where limits begin to bind
  double level_ = 0.9;
  bool board_known_ = false;
  std::vector<double> x_;
  std::vector<Component> components_;
  std::vector<double> evidence_;
};

/// One way to explain the points: a family on a board, and a noise level.
struct TimePosterior::Component {
  std::size_t shape = 0;  ///< of board_shapes()
  Family family;
  double noise = 0;              ///< sd of a point, in logs
  double likelihood = 0;         ///< log, with the prior of the noise
  double weight = 0;             ///< posterior probability
  double level = 0;              ///< mean log time, taken out of the points
  std::vector<double> cholesky;  ///< lower, row by row
  std::vector<double> solved;    ///< covariance⁻¹ · (points − mean)
};

}  // namespace flyball::curve
