#pragma once
// What a signal should be, from the times when heat, air and machines were much as now: for what plants do by steps
// (stages, change-over to free cooling) no formula for all of it holds. A plane through them by weighted least squares
// (Cleveland, 1979, with Gaussian weights), and their scatter.

#include <span>
#include <vector>

#include "facility/expected.h"

namespace flyball::facility {

struct NeighbourRule {
  std::vector<double> widths;  ///< of each condition: how much counts as much as now
  double least_sd = 0;
  double relative_sd = 0;  ///< of the expected value: what may differ without being anybody's fault
};

class Neighbours {
 public:
  explicit Neighbours(NeighbourRule rule) : rule_(std::move(rule)) {}

  /// Of the reference, in order of time.
  void learn(std::span<const Lesson> lessons);
  bool learned() const { return learned_; }
  /// Teaches where too few times were like this one, unless it is absurd or under `suspicion`.
  Surprise take(WallTime at, std::span<const double> x, double y, bool suspicion = false);

 private:
  struct Known {
    WallTime at;
    std::vector<double> x;
    double y = 0;
  };
  struct Local {
    double weight = 0;  ///< how many times that are alike it amounts to
    double beyond = 0;  ///< how far it lies outside of them, in their variance
    double mean = 0, sd = 0;
  };
  Local local(std::span<const double> x, double wider, WallTime leave_from, WallTime leave_to) const;
  Local nearest(std::span<const double> x, WallTime leave_from, WallTime leave_to) const;
  double sd_of(const Local& local) const;
  void keep(WallTime at, std::span<const double> x, double y);

  NeighbourRule rule_;
  std::vector<Known> known_;
  std::size_t oldest_ = 0;  ///< of those learned after the reference, which are bounded
  double run_length_ = 1;
  bool learned_ = false;
};

}  // namespace flyball::facility
