#pragma once
// A policy turns what was observed into a wish. It knows no device, no clock and no file, it sets nothing, and it need
// not know what is allowed: the guard clamps and refuses. Same seed and same observations, same proposals.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/control.h"

namespace flyball::policy {

class Policy {
 public:
  virtual ~Policy() = default;
  /// As it was asked for: "static:250W".
  virtual std::string name() const = 0;
  /// Forgets all that was learnt; the next observation is the first of a run.
  virtual void reset(std::uint64_t seed) = 0;
  /// What must hold before anything is seen, from the boards' limits as found; none for most. An error: the run must
  /// not begin.
  virtual Result<Proposal> at_start(const std::vector<GpuObservation>&) { return Proposal{}; }
  virtual Proposal decide(const Observation& observation) = 0;
  /// An interval in which the limits found held throughout (a block of a switchback): a baseline window that the run
  /// has paid for already. Nothing is asked; a policy that compares with a baseline may take it in.
  virtual void observe_baseline(const Observation&) {}
  /// From now on; what was learnt stays. Policies that weigh nothing take any; the others refuse as `make` would.
  virtual Result<> set_objective(const Objective&) { return {}; }
};

struct Description {
  std::string form;     ///< as it is written, "static:WATTS"
  std::string summary;  ///< one line
};
/// Every policy that `make` knows.
std::vector<Description> descriptions();

/// `spec` is a name with its argument, as in descriptions(). Policies that weigh tokens against watts need an
/// objective with exactly one field set and say so.
Result<std::unique_ptr<Policy>> make(std::string_view spec, const Objective& objective);

}  // namespace flyball::policy
