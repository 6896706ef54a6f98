#pragma once
// What the simple policies share: the limits that the boards were found at, the range in which they may move, and what
// of an observation is a measurement.

#include <optional>
#include <string>
#include <vector>

#include "core/control.h"

namespace flyball::policy {

/// The step of published power limit sweeps (Zeus, NSDI 2023).
constexpr Milliwatts kGridStep{25'000};

/// Evaluations, checkpoints and idle time say nothing about a limit. A job that tells no phase is taken to train.
bool is_training(Phase phase);

/// Mean power of all GPUs over the interval, by the energy counter where there is one; nothing if one is missing.
std::optional<Watts> total_power(const Observation& observation);

class FoundLimits {
 public:
  struct Board {
    DeviceId device;
    Milliwatts found;
    Milliwatts minimum;
  };

  /// Nothing while some board's limit or range is not known.
  static std::optional<FoundLimits> of(const Observation& observation);

  const std::vector<Board>& boards() const { return boards_; }
  Milliwatts highest() const { return highest_; }
  /// The highest of the boards' minima: where all can go together.
  Milliwatts lowest() const { return lowest_; }
  /// The highest limit found, then whole multiples of the grid step below it, down to `lowest`, which is the last.
  std::vector<Milliwatts> grid() const;
  /// One limit for all, for the slowest rank of a synchronous job sets the pace; no board above what it was found at.
  Proposal propose(Milliwatts limit, std::string reason) const;

 private:
  std::vector<Board> boards_;
  Milliwatts highest_, lowest_;
};

/// Exactly one field is set and in its range; otherwise an error that says so for `policy`.
Result<> check_objective(const Objective& objective, const std::string& policy);

}  // namespace flyball::policy
