#pragma once
// What a policy is tried on: boards behind a driver, a job on them, and the truth for whoever keeps the score.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/driver.h"
#include "curve/curve.h"
#include "loop/progress.h"
#include "policy/plan.h"

namespace flyball::evaluate {

class Plant {
 public:
  virtual ~Plant() = default;
  virtual Driver& driver() = 0;
  virtual loop::ProgressSource& job() = 0;
  /// Its boards have clocks that can be locked.
  virtual bool clocks_unlocked() const { return false; }
  /// The highest of the boards' limits as set.
  virtual Milliwatts limit() = 0;
  /// The highest clock that a board may run at, if every board has its clocks locked.
  virtual std::optional<Hertz> lock() { return std::nullopt; }
  /// True, since the start, up to the clock's now.
  virtual Joules energy() = 0;
  virtual double tokens() = 0;
};

/// One thing to try policies on, and what is known of it in hindsight.
struct Subject {
  std::string name;
  std::string network;  ///< what intervals are clustered by
  curve::Curve truth;   ///< of the whole job against one limit for all boards
  std::string hash;     ///< SHA-256 of a scenario with its parameters; empty for a curve
  Seconds poll{10};     ///< at which the loop looks
  /// At time 0 of the clock, which outlives it. One seed has one course of disturbances.
  std::function<Result<std::unique_ptr<Plant>>(std::uint64_t seed, Clock& clock)> build;
  std::vector<policy::Level> by_clock = {};  ///< one lock for all boards, relative to the limits found
  std::vector<Hertz> clocks = {};            ///< of by_clock, descending, evenly apart
};

}  // namespace flyball::evaluate
