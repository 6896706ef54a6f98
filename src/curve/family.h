#pragma once
// What curves of jobs and boards not seen yet look like: the prior of `fit` and of the policy `model`. Its parameters
// were fitted to measured curves of other boards; see family.cc.

#include <array>
#include <span>

namespace flyball::curve {

/// A Gaussian process over the logarithm of time or power against x = ln(limit / power when nothing limits). Below
/// x = 0 the limit binds. Three shared features s, s² and s³ of the softplus s(x) = w · ln(1 + exp(−(x − x₀)/w)) carry
/// the common shape, their weights vary from curve to curve, and a stationary residual that fades out where the limit
/// does not bind carries the rest. Each curve has a level of its own and noise of its own.
struct Family {
  double width = 0;                ///< w
  double start = 0;                ///< x₀
  std::array<double, 3> mean{};    ///< of the features' weights
  std::array<double, 3> spread{};  ///< their standard deviations, between curves and between boards
  double residual_sd = 0;          ///< deep below x₀
  double residual_length = 0;      ///< in x
  double wander = 0;               ///< slow error of a measured sweep, in units of its noise
  double noise_median = 0;         ///< of a measured point, in logs
  double noise_log_sd = 0;         ///< from curve to curve

  double mean_at(double x) const;
  /// Without the curve's own level. `noise` scales the wander; 0 = the curve itself.
  double covariance(double x, double y, double noise = 0) const;
};

/// How the jobs of one board bend beside the shape that all boards share: factors of the families' residual. Which
/// board it is the curves of its jobs say together (posterior.h).
struct BoardShape {
  double residual_sd = 1;
  double residual_length = 1;
  double log_prior = 0;  ///< not normalised
};
/// Half, the same and twice of each.
std::span<const BoardShape> board_shapes();
Family shaped(const Family& family, const BoardShape& shape);

/// Of log time. More than one shape: boards differ in how suddenly a limit begins to cost time, and the data of a curve
/// say which it is.
std::span<const Family> time_families();
/// Of log power.
const Family& power_family();

}  // namespace flyball::curve
