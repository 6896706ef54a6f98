#pragma once
// The one setting that all boards of a job share, in rungs from the lowest up to what was found: a power limit, or a
// lock of the clocks.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/control.h"

namespace flyball::policy {

class Ladder {
 public:
  /// The limit that is found, or the clock that is run at, is the last rung. `locked_clocks` or `power_limit`.
  /// Nothing while the boards do not tell what they are at.
  static std::optional<Ladder> of(const Observation& observation, Lever lever);

  Lever lever() const { return lever_; }
  std::size_t size() const { return rungs_.size(); }
  std::size_t top() const { return rungs_.size() - 1; }
  /// What the families of curves are a function of: ln(limit / power when nothing limits), ln(clock / clock found).
  std::vector<double> coordinates(Watts unlimited) const;
  /// The highest setting of any board in the interval, in W or Hz; nothing where it is not known.
  std::optional<double> in_force(const Observation& observation) const;
  /// Linear between the two rungs around it.
  std::vector<double> weights_of(double setting) const;
  /// A change so large that the guard walks it in steps (doc/safety.md).
  bool is_walked(double from, double to) const;
  double setting(std::size_t rung) const { return rungs_[rung]; }
  std::string text(std::size_t rung) const;

  /// One rung for all; board i gets exp(−below[i]) of it. The last rung is what was found, whatever `below` says.
  Proposal propose(std::size_t rung, std::span<const double> below, std::string reason) const;

 private:
  Lever lever_ = Lever::power_limit;
  std::vector<double> rungs_;       ///< ascending, W or Hz
  std::vector<GpuProposal> found_;  ///< limits as they were
};

}  // namespace flyball::policy
