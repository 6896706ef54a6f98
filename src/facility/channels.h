#pragma once
// The relations that are watched: for each, one number of a block and what it depends on while nothing is wrong. A
// building that lacks a meter lacks the channels that need it, and nothing else.

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "facility/neighbours.h"
#include "facility/sample_block.h"

namespace flyball::facility {

enum class Channel : std::uint8_t {
  // Meters against each other.
  balance,   ///< what comes in less what is used
  ups_loss,  ///< at its output
  delivery_loss,
  rack_sum,  ///< racks less the meter of the whole
  gpu_sum,   ///< the meter of the whole at the boards' own power
  balance_scatter,
  ups_scatter,
  delivery_scatter,
  rack_scatter,
  gpu_scatter,
  chillers_jitter,
  pumps_jitter,
  fans_jitter,
  repeats,
  // Cooling, at the heat and air.
  set_point,
  supply_error,
  chillers,
  chillers_on,
  chiller_switches,
  fans,  ///< also at their speed
  fan_speed,
  pumps,  ///< also at their speed and the chillers that run
  pump_speed,
  temperature_rise,
  inlet_level,
  inlet_pattern,  ///< of the rack that is warmer than it was among the others, the most
  // Boards, at equal job and phase.
  gpu_power,
  gpu_clock,
  gpu_temperature,
  gpu_throttled,
  ecc_rate,
  link_rate,
  tokens,
  // Jobs.
  utilisation,
  utilisation_scatter,
  loss_progress,
  restarts,
  shared,    ///< of the GPUs, by more than one job
  newcomer,  ///< GPUs of types of jobs that hardly ran before
  voltage,
  count,
};
constexpr auto kChannels = static_cast<std::size_t>(Channel::count);

struct ChannelInfo {
  Channel channel;
  std::string_view name;  ///< stable
  std::string_view unit;  ///< of its values: "W", "C", "1" …
  std::string_view about;
};
const ChannelInfo& info_of(Channel channel);

/// One block as a channel sees it.
struct ChannelReading {
  double y = 0;
  std::vector<double> x;
};

/// What the blocks before say about the one at hand: scales of the reference time, and what was an hour ago.
class ChannelFrame {
 public:
  /// Scales from the reference time.
  static ChannelFrame learn(std::span<const SampleBlock> reference);

  void push(const SampleBlock& block);
  /// The same time is gone through once more: what jobs do is known from now on.
  void begin_again();
  /// From now on what runs of a job do is compared and no longer learned.
  void settle() { learning_ = false; }
  /// Of the block pushed last. Nothing: not metered, or what it depends on is not known, or the building is still
  /// answering a change of its load.
  std::optional<ChannelReading> read(Channel channel) const;
  std::vector<double> prior_sd(Channel channel) const;
  /// Smaller scatter is not believed.
  double least_sd(Channel channel) const;
  /// Smaller differences, however long they last, are nobody's fault: what models leave and meters' classes allow.
  double least_shift(Channel channel) const;
  /// The reference has the meters, whether or not what it takes to compare them came about.
  bool metered(Channel channel) const;
  /// Mostly the same value: its scatter is that of all blocks, not of the middle ones.
  static bool rare(Channel channel);
  /// Events that hardly ever happen: a few of them within a day or two say something, however long nothing is between.
  static bool counted(Channel channel);
  /// Speaks for or against causes, and is nobody's fault by itself.
  static bool only_context(Channel channel);
  /// Of channels that are compared with times alike instead of a formula; their `x` are the conditions.
  std::optional<NeighbourRule> neighbours(Channel channel) const;
  /// Which rack `inlet_pattern` spoke of last, from 0.
  std::size_t warmest_rack() const { return warmest_; }

 private:
  struct Rack {
    double level = 0, power_slope = 0, power_middle = 0;
    bool known = false;
  };
  /// A training's losses, block by block, as long as it goes on without a gap.
  struct Course {
    std::deque<double> losses;
    WallTime last;
  };
  /// How fast losses fell in the reference, by how high they were.
  struct Fall {
    double sum = 0;
    std::uint32_t blocks = 0;
  };
  /// A job's own rates, learned when it is first seen.
  struct Work {
    double tokens = 0, utilisation = 0, scatter = 0;
    std::uint32_t token_blocks = 0, utilisation_blocks = 0;
  };
  static constexpr std::size_t kSlots = 40, kGroups = 32;

  const SampleBlock& now() const { return history_.back(); }
  double heat(const SampleBlock& block) const;
  bool settled() const;
  std::optional<ChannelReading> meters(Channel channel) const;
  std::optional<ChannelReading> scatter(Channel channel) const;
  std::optional<ChannelReading> cooling(Channel channel) const;
  std::optional<ChannelReading> boards(Channel channel) const;
  std::optional<ChannelReading> work(Channel channel) const;
  std::optional<double> inlet_mean(const SampleBlock& block) const;
  void learn_racks(std::span<const SampleBlock> reference);
  void learn_work(const SampleBlock& block);
  void compare_racks();
  void compare_work();
  void compare_losses();
  double lacking(const std::string& type, const std::deque<double>& losses) const;
  std::vector<double> groups(const SampleBlock& block) const;
  double place(const SampleBlock& block) const;
  std::vector<double> shares() const;

  /// The size of a quantity; 1 where it is not known.
  double middle_of(Quantity quantity) const;

  std::array<double, kQuantities> middle_{};
  double heat_middle_ = 1;
  double racks_scale_ = 1, out_scale_ = 1;
  std::vector<Rack> racks_;
  std::map<PhaseKey, std::size_t> slots_;
  std::map<PhaseKey, Work> work_;
  std::map<std::string, Course> courses_;
  std::map<std::pair<std::string, int>, Fall> falls_;
  std::set<std::string> usual_;
  bool told_tokens_ = false, told_utilisation_ = false, told_loss_ = false;  ///< by any job of the reference
  std::deque<SampleBlock> history_;
  bool learning_ = true;
  WallTime battery_until_;
  std::size_t warmest_ = 0;
  double pattern_ = 0, tokens_ = 0, utilisation_ = 0, utilisation_scatter_ = 0, progress_ = 0;
};

}  // namespace flyball::facility
