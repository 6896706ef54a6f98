#pragma once
// A load as a facility has felt it so far: through its dead time and pairs of lags, at any distance of points.

#include <cstddef>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/units.h"

namespace flyball::facility {

class FeltLoad {
 public:
  struct Lag {
    Seconds first, second;  ///< 0: none
  };
  FeltLoad(Seconds dead_time, const std::vector<Lag>& lags);

  /// The load from `at` on, until the next one; the exact answer to steps. The first one is taken for the past too.
  void take(WallTime at, double load);
  /// Through lag i, at the time of the last `take`.
  double felt(std::size_t i = 0) const { return states_[i].second; }

 private:
  struct State {
    Lag lag;
    double first = 0, second = 0;
  };
  void move(WallTime to);

  Seconds dead_time_;
  std::vector<State> states_;
  bool started_ = false;
  WallTime at_;
  double input_ = 0;
  std::vector<std::pair<WallTime, double>> waiting_;  ///< still in the dead time
};

}  // namespace flyball::facility
