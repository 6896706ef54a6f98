#pragma once
// Which arm holds when. Time is cut into blocks of one length, blocks into groups, and in each group one block, drawn
// at random, holds the original limits: a randomised block design (Fisher, 1935) in time. Neighbours in a group see
// nearly the same drift, and nothing periodic can keep step with a draw.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace flyball::experiment {

enum class Arm : std::uint8_t {
  control,   ///< the limits or levers that are to be judged
  original,  ///< as everything was found
};
std::string_view to_string(Arm arm);

class Schedule {
 public:
  /// Shorter blocks lose more to the switch, longer ones more to drift. With a loss of 2 s a switch, white noise of 1 %
  /// in 10 s and drift of 0.5 % in an hour the variance is flat between 30 and 60 s and least at 40 s
  /// (doc/switchback.md).
  static constexpr Seconds kBlock{40};

  struct Options {
    double share = 0.1;            ///< of time that the rare arm gets; 1 / share is rounded to a group's whole blocks
    Arm rare = Arm::original;      ///< `control` for a canary: limits are lowered in few blocks only
    Seconds grain{10};             ///< blocks are whole grains: decisions
    Seconds step{0};               ///< of the job; 0 = not known
    Seconds settle{1};             ///< a change is felt so late at most
    Seconds block = kBlock;        ///< the shortest; longer where step and settling ask for it
    Seconds horizon{0};            ///< of the run; 0 = open
    std::vector<Seconds> periods;  ///< known ones (evaluations, checkpoints, another controller's cycle)
    std::uint64_t seed = 1;
  };
  static constexpr double kLeastShare = 0.02;
  static constexpr double kMostShare = 0.5;

  /// Blocks are long against what is discarded at a switch (settling and the step in hand), short against drift, and in
  /// no simple ratio to a known period. Refused where the horizon has no room for kLeastGroups groups.
  static Result<Schedule> make(const Options& options);
  static constexpr int kLeastGroups = 4;

  Seconds block() const { return block_; }
  Seconds settle() const { return settle_; }
  /// Blocks of a group, of which one is of the rare arm.
  std::uint64_t group() const { return group_; }
  std::uint64_t index(Seconds since_start) const;
  Seconds start(std::uint64_t index) const { return block_ * static_cast<double>(index); }
  Arm arm(std::uint64_t index) const {
    return is_rare(index) == (rare_ == Arm::original) ? Arm::original : Arm::control;
  }
  bool is_rare(std::uint64_t index) const;
  Arm rare() const { return rare_; }

 private:
  Schedule(Seconds block, std::uint64_t group, const Options& options)
      : block_(block), group_(group), rare_(options.rare), settle_(options.settle), seed_(options.seed) {}
  Seconds block_;
  std::uint64_t group_;
  Arm rare_;
  Seconds settle_;
  std::uint64_t seed_;
};

}  // namespace flyball::experiment
