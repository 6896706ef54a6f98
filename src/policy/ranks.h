#pragma once
// Which ranks of a synchronous job wait for others, and by how much each may be slower before others wait for it.

#include <span>
#include <vector>

#include "core/control.h"

namespace flyball::policy {

/// Each rank waits until the slowest has done its work; what it waits more than the one that waits least is lead. The
/// lead is turned into a lower setting a little at a time, and a part of it is left, so that what varies from step to
/// step makes nobody a straggler. One rank at least is at the common setting: it sets the pace.
class Ranks {
 public:
  /// After an interval of training in which one setting held. Nothing happens unless every rank tells what it waited.
  void learn(const Observation& observation);
  /// How far each board is below the common setting, as a logarithm; empty = none is.
  std::span<const double> below() const { return below_; }
  void reset() { *this = Ranks(); }

 private:
  std::vector<double> lead_;  ///< smoothed, in logs of time
  std::vector<double> below_;
  int seen_ = 0;
};

}  // namespace flyball::policy
