#pragma once
// Watches a building, block by block: learns how its parts go together while nothing is wrong, then says what no
// longer does, since when, by how much, and which cause explains it.

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/stats.h"
#include "core/facility.h"
#include "facility/attribution.h"
#include "facility/channels.h"
#include "facility/expected.h"
#include "facility/neighbours.h"
#include "facility/sample_block.h"

namespace flyball::facility {

struct CauseOptions {
  /// From the first block on, nothing is wrong for so long: there it is learned what goes with what.
  Seconds reference_time = Seconds(10 * 86400.0);
  /// Cumulative sums (Page, 1954) over blocks in their long-run sd: small shifts that last, and large ones at once.
  /// Thresholds for one false alarm in more than a month over all channels together, found on simulated time without
  /// faults (doc/facility.md).
  double slow_allowance = 0.3, slow_threshold = 25;
  double fast_allowance = 1.5, fast_threshold = 10;
  double level = 0.95;
};

struct CauseEvidence {
  Channel channel = Channel::count;
  Estimate shift;         ///< measured less expected, mean since the onset, in the channel's unit
  bool known_by = false;  ///< the cause is known by it; else it follows
};

struct CauseFinding {
  std::uint64_t number = 0;  ///< from 1, without a hole, in the order in which findings are told
  Cause cause = Cause::not_identifiable;
  std::string form;  ///< which of its ways; of a meter its column
  WallTime since;
  std::optional<WallTime> until;  ///< nothing: it lasts
  double confidence_fraction = 0;
  std::vector<CauseEvidence> evidence;  ///< the strongest first
  std::vector<std::pair<Cause, double>> alternatives;
  std::string note;  ///< why it is not identifiable; which rack; what cannot be told here
};

/// The same blocks in the same order make the same findings. Not for threads.
class CauseWatch {
 public:
  explicit CauseWatch(const CauseOptions& options = {});

  void take(const SampleBlock& block);
  /// All so far, those that are over included, by number.
  std::vector<CauseFinding> findings() const;

  bool learning() const { return !learned_; }
  /// Channels that this building has no meters for.
  std::vector<Channel> unmetered() const;
  /// Channels that have their meters and too little to learn from: what they need has hardly happened.
  std::vector<Channel> unlearned() const;
  /// The last block's: what was expected of a channel, and what it was. Nothing: not judged.
  struct Look {
    double measured = 0, expected = 0, sd = 0;
  };
  std::optional<Look> look(Channel channel) const;
  /// Of all blocks since the reference; gaps are left out.
  struct Point {
    WallTime at;
    Look look;
  };
  std::vector<Point> history(Channel channel) const;

 private:
  std::optional<Look> look_at(Channel channel, std::size_t block) const;
  struct Sum {
    double value = 0;
    std::size_t since = 0;
    double worth = 0;  ///< of the time since, for its evidence
    void add(double z, double allowance, std::size_t at);
  };
  struct Watched {
    Expected expected{Expected::none()};
    std::optional<Neighbours> neighbours;
    std::vector<double> differences, surprises, sds, doubts;  ///< running sums over blocks since the reference: in the
                                                              ///< channel's unit, in sd, of these sd, of the squares of
                                                              ///< what the expectation is in doubt
    std::vector<std::uint32_t> blocks;
    std::vector<double> expectations;  ///< of each block; NaN: not judged
    Sum up, down, fast_up, fast_down;
    bool read = false;  ///< ever
    bool learned() const { return neighbours ? neighbours->learned() : expected.learned(); }
    Surprise take(WallTime at, std::span<const double> x, double y, bool suspicion) {
      return neighbours ? neighbours->take(at, x, y, suspicion) : expected.take(at, x, y, suspicion);
    }
  };
  struct Episode {
    std::uint64_t number = 0;  ///< 0: not told
    Channel trigger = Channel::count;
    std::size_t from = 0;
    std::optional<std::size_t> to;
    bool part = false;  ///< of another one, before it was told
    std::vector<Candidate> candidates;
    std::vector<Channel> also;  ///< that showed it later
    Shifts shifts{};
    std::size_t rack = 0;
  };

  void learn();
  void judge(const SampleBlock& block);
  void follow_episodes();
  void begin_episodes();
  void attribute_episode(Episode& episode);
  bool is_over(const Episode& episode) const;
  void forget(const Episode& episode);
  std::size_t recent_from(Channel channel) const;
  bool goes_on(const Episode& before, const Episode& fresh) const;
  bool resumed(const Episode& fresh);
  void tell(Episode& episode);
  bool explained(Channel channel, const Episode* but) const;
  bool suspected(Channel channel) const;
  ChannelShift shift(Channel channel, std::size_t from, std::size_t to) const;
  double follow(Channel channel, std::size_t from, std::size_t to) const;
  double fans_apart(std::size_t from, std::size_t to) const;
  double software_step(const Episode& episode, std::size_t to) const;
  CauseFinding finding_of(const Episode& episode) const;
  Watched& watched(Channel channel) { return watched_[static_cast<std::size_t>(channel)]; }
  const Watched& watched(Channel channel) const { return watched_[static_cast<std::size_t>(channel)]; }

  CauseOptions options_;
  std::vector<SampleBlock> reference_;
  bool learned_ = false;
  ChannelFrame frame_;
  std::array<Watched, kChannels> watched_;
  std::vector<WallTime> times_;  ///< of blocks since the reference
  Seconds length_;
  std::vector<std::size_t> software_changes_;
  std::string software_;
  std::vector<double> fan_cubes_;
  std::vector<std::size_t> warmest_;
  std::vector<Episode> episodes_;
  std::uint64_t told_ = 0;  ///< the last number
};

}  // namespace flyball::facility
