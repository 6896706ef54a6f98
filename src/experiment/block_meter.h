#pragma once
// From polls to blocks: sums over whole steps within a block, carry-over and everything that is no training left out.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/units.h"
#include "experiment/analysis.h"
#include "experiment/schedule.h"

namespace flyball::experiment {

/// What is known at a poll. Times are since the start of the schedule; sums since any fixed time before.
struct Poll {
  Seconds at;
  Joules energy;             ///< of all boards, by `at`
  Seconds covered;           ///< of the time by `at`, with a measured energy
  Seconds step_ended;        ///< the last whole step known
  std::uint64_t tokens = 0;  ///< by the end of that step
  bool counts = true;        ///< the job trains, and nobody outside interferes
};

/// Steps are never cut: a block's sums begin with the first step that began after the change had settled and end with
/// the last one that ended within the block. Energy at the end of a step is interpolated between polls. What does not
/// count (an evaluation, a hole) splits a block; the step that straddles it is left out as well.
class BlockMeter {
 public:
  explicit BlockMeter(const Schedule& schedule) : schedule_(schedule) {}

  /// Block `index` begins: its arm takes hold after `at`, a poll's time. Until the first one nothing is measured.
  void open(std::uint64_t index, Seconds at);
  void add(const Poll& poll);
  /// All blocks that have ended and the one in hand; the latest kMostBlocks.
  std::vector<Block> blocks() const;
  static constexpr std::size_t kMostBlocks = 20'000;

 private:
  struct Mark {
    Seconds at;
    Joules energy;
    Seconds covered;
    std::uint64_t tokens = 0;
  };
  std::optional<Mark> mark(const Poll& poll) const;
  void close_segment();
  Block block_in_hand() const;

  Schedule schedule_;
  std::deque<Poll> history_;  ///< for interpolation
  std::deque<Block> ended_;
  std::optional<Block> now_;
  Seconds covered_;                ///< within the segments of the block in hand
  Seconds not_before_;             ///< a step that ends earlier began before the change had settled
  std::optional<Mark> from_, to_;  ///< the segment in hand
  Seconds last_step_{-1};
  std::uint64_t last_tokens_ = 0;
};

}  // namespace flyball::experiment
