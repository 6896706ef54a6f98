#pragma once
// From sums of blocks to what the original limits cost against control, with intervals by randomisation.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/stats.h"
#include "base/units.h"
#include "experiment/schedule.h"

namespace flyball::experiment {

/// What was measured within a block, over whole steps, carry-over left out. A block without a measurement has time 0.
struct Block {
  std::uint64_t index = 0;
  Arm arm = Arm::control;
  Joules energy;
  double tokens = 0;
  Seconds time;                  ///< measured
  double coverage_fraction = 1;  ///< share of `time` with measured energy
};

enum class Outcome : std::uint8_t {
  saves,          ///< the interval of the saving is above 0
  costs,          ///< below 0
  no_difference,  ///< it holds 0, and is narrow enough to say so
  too_noisy,      ///< it is wider than is wanted: no number is claimed
};
/// "saves", "costs", "no_difference", "too_noisy".
std::string_view to_string(Outcome outcome);

struct Options {
  double level = 0.95;
  /// The widest half-width with which a saving or a loss is claimed.
  double resolution_fraction = 0.01;
  int permutations = 1999;
  std::uint64_t seed = 1;
  /// Refresh of a meter that shows instants and no sum; 0 = energy is a sum (a counter, or power averaged in the
  /// meter).
  Seconds instant_period{0};
  Seconds step{0};  ///< of the job, to tell whether such a meter aliases; 0 = not known
};

/// One quantity: control against original, as a fraction of original. Positive is less under control.
struct Effect {
  Estimate less;       ///< 1 − control / original
  double p_value = 1;  ///< two-sided, of no effect at all, by randomisation
};

struct Analysis {
  std::optional<Effect> energy_per_token;  ///< "saved"
  std::optional<Effect> throughput;        ///< "lost"
  std::optional<Effect> power;
  Outcome outcome = Outcome::too_noisy;
  std::string reason;                                   ///< one sentence for a person
  std::size_t blocks_control = 0, blocks_original = 0;  ///< with a measurement
  Seconds measured_control, measured_original;
  double discarded_fraction = 0;  ///< of the time of the blocks given: carry-over, other phases, holes
  /// About how long the experiment must be in all, at the noise seen, for the resolution wanted; 0 = not known or done.
  Seconds needed;
};

/// Blocks in order of their index; those of a group that has not ended count as well.
/// Per block x = log of energy per token (of tokens per second, of power), a ratio of the block's sums, so that an
/// effect is a ratio whatever the level. Drift is a random walk from block to block, whose size against the noise is
/// found by restricted maximum likelihood; the effect is the generalised least squares estimate. Its interval is the
/// set of effects that a randomisation test does not reject (all blocks as if the draw had been another one), which
/// holds whatever the noise is like: it may be periodic, heavy-tailed or correlated.
Analysis analyze(const Schedule& schedule, const std::vector<Block>& blocks, const Options& options = {});

/// The level for look 1 … `looks` of an experiment that stops as soon as it knows, such that all looks together err no
/// more often than one at `level` would: O'Brien and Fleming's spending function (Lan and DeMets, 1983), what each look
/// adds to it spent there (Boole's bound). An experiment that stops on the interval's width alone may look at `level`
/// each time, for the width does not depend on the effect.
double level_at_look(int look, int looks, double level);

/// A meter that shows an instant every `period` sees a step of nearly a simple ratio to it always in the same places:
/// fewer than kLeastBeats beats of that within `time` are no noise that averages out, but a hidden bias.
bool aliases(Seconds period, Seconds step, Seconds time);
constexpr double kLeastBeats = 8;

}  // namespace flyball::experiment
