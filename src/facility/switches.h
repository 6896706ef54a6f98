#pragma once
// What a plant switches by, where nobody meters its switches: a second chiller at a heat, an economiser at an air, with
// hysteresis. Candidates are tried against what a smooth response leaves unexplained.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace flyball::facility {

/// On when what it looks at was last at or above `up`, off when it was last below `down`.
struct Switch {
  enum class By : std::uint8_t { felt, air } by = By::felt;
  double up = 0, down = 0;  ///< in the response's scales; down ≤ up

  bool next(bool on, double value) const { return value >= up || (on && value >= down); }
};

struct SwitchMoment {
  double felt = 0, air = 0;  ///< in the response's scales
  double target = 0;         ///< what is to be explained
  std::vector<double> x;     ///< what explains it without switches
};

/// In order of importance, at most four; each must leave at least 3 % less unexplained (squares) than before it, and
/// switch at least six times each way. `moments` in order of time.
std::vector<Switch> find_switches(std::span<const SwitchMoment> moments);

}  // namespace flyball::facility
