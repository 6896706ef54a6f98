#include "experiment/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/text.h"
#include "experiment/effect.h"

namespace flyball::experiment {
namespace {

/// Blocks with holes are left out, not filled.
constexpr double kLeastCoverage = 0.98;
/// Blocks of each arm with a measurement, below which there is no interval worth the name.
constexpr std::size_t kLeastBlocks = 4;
/// The harmonics of a step's power that carry most of its swing.
constexpr int kHarmonics = 3;

bool measured(const Block& block) {
  return block.time > Seconds(0) && block.coverage_fraction >= kLeastCoverage && block.energy > Joules(0) &&
         block.tokens > 0;
}

Values values_of(const Schedule& schedule, const std::vector<Block>& blocks,
                 const std::function<double(const Block&)>& quantity) {
  Values values;
  values.group = schedule.group();
  values.first_index = blocks.front().index;
  const std::size_t count = blocks.back().index - values.first_index + 1;
  values.x.resize(count);
  values.weight.resize(count);
  values.rare.resize(count);
  for (std::size_t i = 0; i < count; ++i) values.rare[i] = schedule.is_rare(values.first_index + i);
  for (const Block& block : blocks) {
    if (!measured(block)) continue;
    const std::size_t i = block.index - values.first_index;
    values.x[i] = std::log(quantity(block));
    values.weight[i] = block.time.value();
  }
  return values;
}

std::optional<Effect> effect_of(const Values& values, Arm rare, const Options& options) {
  const auto log = log_effect(values, options.level, options.permutations, options.seed);
  if (!log) return std::nullopt;
  // Of control against original, which is the effect of the rare arm or its opposite.
  const auto less = [&](double x) { return -std::expm1(rare == Arm::control ? x : -x); };
  const double a = less(log->low), b = less(log->high);
  return Effect{{less(log->value), std::min(a, b), std::max(a, b), options.level}, log->p_value};
}

void judge(Analysis& made, const Options& options, Seconds elapsed) {
  made.outcome = Outcome::too_noisy;
  if (!made.energy_per_token || !made.throughput || made.blocks_original < kLeastBlocks ||
      made.blocks_control < kLeastBlocks) {
    made.reason = fmt::format(
        "only {} blocks at the original limits and {} under control were measured; {} of each are "
        "the least",
        made.blocks_original, made.blocks_control, kLeastBlocks);
    return;
  }
  if (options.instant_period > Seconds(0) && options.step > Seconds(0) &&
      aliases(options.instant_period, options.step, elapsed)) {
    made.reason = fmt::format(
        "the meter shows an instant every {} and a step takes {}: it sees the step always in the "
        "same places; use an energy counter or a meter that averages",
        format(options.instant_period), format(options.step));
    return;
  }
  const Estimate& saved = made.energy_per_token->less;
  const double width = std::max(saved.half_width(), made.throughput->less.half_width());
  if (!std::isfinite(width)) {
    made.reason = "too few blocks for an interval at this level";
    return;
  }
  if (width > options.resolution_fraction) {
    const double longer = width / options.resolution_fraction;
    made.needed = elapsed * (longer * longer);
    made.reason = fmt::format("the interval is ± {}, wider than ± {}; at this noise about {} are needed",
                              format_percent(width), format_percent(options.resolution_fraction), format(made.needed));
    return;
  }
  if (saved.low > 0) {
    made.outcome = Outcome::saves;
    made.reason = "less energy per token under control than at the original limits";
  } else if (saved.high < 0) {
    made.outcome = Outcome::costs;
    made.reason = "more energy per token under control than at the original limits";
  } else {
    made.outcome = Outcome::no_difference;
    made.reason = "energy per token under control is not told apart from that at the original limits";
  }
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::saves:
      return "saves";
    case Outcome::costs:
      return "costs";
    case Outcome::no_difference:
      return "no_difference";
    case Outcome::too_noisy:
      return "too_noisy";
  }
  return "?";
}

bool aliases(Seconds period, Seconds step, Seconds time) {
  for (int harmonic = 1; harmonic <= kHarmonics; ++harmonic) {
    const double looks = period / step * harmonic;  // periods of the harmonic between two looks
    const double beat = std::fabs(looks - std::round(looks)) / period.value();
    if (looks > 0.5 - 1e-9 && beat * time.value() < kLeastBeats) return true;
  }
  return false;
}

double level_at_look(int look, int looks, double level) {
  // α(t) = 2 − 2 Φ(z / √t) of the error is spent by the share t of the looks.
  const double z = normal_quantile((1 + level) / 2);
  const auto spent = [&](int k) { return k <= 0 ? 0 : std::erfc(z / std::sqrt(2.0 * k / looks)); };
  return 1 - (spent(look) - spent(look - 1));
}

Analysis analyze(const Schedule& schedule, const std::vector<Block>& blocks, const Options& options) {
  Analysis made;
  Seconds used;
  for (const Block& block : blocks) {
    if (!measured(block)) continue;
    used += block.time;
    (block.arm == Arm::control ? made.blocks_control : made.blocks_original) += 1;
    (block.arm == Arm::control ? made.measured_control : made.measured_original) += block.time;
  }
  const Seconds given = schedule.block() * static_cast<double>(blocks.size());
  made.discarded_fraction = given > Seconds(0) ? std::max(0.0, 1 - used / given) : 0;
  if (!blocks.empty()) {
    const auto effect = [&](const std::function<double(const Block&)>& quantity) {
      return effect_of(values_of(schedule, blocks, quantity), schedule.rare(), options);
    };
    made.energy_per_token = effect([](const Block& b) { return b.energy.value() / b.tokens; });
    made.throughput = effect([](const Block& b) { return b.tokens / b.time.value(); });
    made.power = effect([](const Block& b) { return b.energy.value() / b.time.value(); });
  }
  judge(made, options, schedule.block() * static_cast<double>(blocks.empty() ? 0 : blocks.back().index + 1));
  return made;
}

}  // namespace flyball::experiment
