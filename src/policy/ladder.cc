#include "policy/ladder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace flyball::policy {
namespace {

/// Limits: finer than the guard's ramp and than any difference that matters, and few enough to be cheap.
constexpr double kFinestWatts = 5;
constexpr double kMostRungs = 33;
constexpr double kWalkedWatts = 100;
/// Boards know clocks in steps of 15 MHz.
constexpr double kClockStep = 15e6;
/// Below this share of the clock found the voltage has long been at its floor, and energy per token rises again (A100
/// by 0.78, doc/twin.md).
constexpr double kLowestClock = 0.6;
/// A lock is an upper end; below it the board may rest as it likes.
constexpr Hertz kIdleClock{210e6};

}  // namespace

std::optional<Ladder> Ladder::of(const Observation& observation, Lever lever) {
  Ladder ladder;
  ladder.lever_ = lever;
  Milliwatts highest{}, lowest{};
  double clock = 0;
  for (const GpuObservation& gpu : observation.gpus) {
    if (!gpu.limit_enforced || !gpu.minimum || (lever == Lever::locked_clocks && !gpu.sm_clock)) return std::nullopt;
    highest = std::max(highest, *gpu.limit_enforced);
    lowest = std::max(lowest, *gpu.minimum);
    if (gpu.sm_clock) clock = std::max(clock, (*gpu.sm_clock).value());
    ladder.found_.push_back({gpu.device, *gpu.limit_enforced, {}});
  }
  if (ladder.found_.empty()) return std::nullopt;
  double top = highest.watts().value(), bottom = std::min(lowest, highest).watts().value();
  double step = std::ceil((top - bottom) / kFinestWatts / (kMostRungs - 1));
  step = kFinestWatts * std::max(1.0, step);
  if (lever == Lever::locked_clocks) {
    top = std::ceil(clock / kClockStep) * kClockStep;
    bottom = std::ceil(top * kLowestClock / kClockStep) * kClockStep;
    step = kClockStep;
  }
  for (double rung = top; rung > bottom; rung -= step) ladder.rungs_.push_back(rung);
  ladder.rungs_.push_back(bottom);
  std::reverse(ladder.rungs_.begin(), ladder.rungs_.end());
  return ladder;
}

std::vector<double> Ladder::coordinates(Watts unlimited) const {
  const double one = lever_ == Lever::locked_clocks ? rungs_.back() : unlimited.value();
  std::vector<double> x;
  x.reserve(rungs_.size());
  for (const double rung : rungs_) x.push_back(std::log(rung / one));
  return x;
}

std::optional<double> Ladder::in_force(const Observation& observation) const {
  std::optional<double> highest;
  for (const GpuObservation& gpu : observation.gpus) {
    double own = rungs_.back();
    if (lever_ == Lever::power_limit) {
      if (!gpu.limit_enforced) return std::nullopt;
      own = (*gpu.limit_enforced).watts().value();
    } else if (gpu.clock_ceiling) {
      own = gpu.clock_ceiling->value();
    }
    highest = std::max(highest.value_or(0), own);
  }
  return highest;
}

std::vector<double> Ladder::weights_of(double setting) const {
  std::vector<double> weights(rungs_.size());
  const auto above = std::lower_bound(rungs_.begin(), rungs_.end(), setting);
  const auto i = static_cast<std::size_t>(above - rungs_.begin());
  if (above == rungs_.end()) {
    weights.back() = 1;
  } else if (i == 0 || *above == setting) {
    weights[i] = 1;
  } else {
    const double share = (setting - rungs_[i - 1]) / (rungs_[i] - rungs_[i - 1]);
    weights[i - 1] = 1 - share;
    weights[i] = share;
  }
  return weights;
}

bool Ladder::is_walked(double from, double to) const {
  return lever_ == Lever::power_limit && std::fabs(from - to) > kWalkedWatts;
}

std::string Ladder::text(std::size_t rung) const {
  if (lever_ == Lever::power_limit) return format(Milliwatts::from(Watts(rungs_[rung])));
  return format(Hertz(rungs_[rung]));
}

Proposal Ladder::propose(std::size_t rung, std::span<const double> below, std::string reason) const {
  Proposal proposal{found_, std::move(reason)};
  for (std::size_t i = 0; i < proposal.gpus.size(); ++i) {
    GpuProposal& gpu = proposal.gpus[i];
    const bool as_found = rung == top();
    const double own = rungs_[rung] * (i < below.size() ? std::exp(-below[i]) : 1);
    if (lever_ == Lever::power_limit) {
      if (!as_found) gpu.power_limit = std::min(*gpu.power_limit, Milliwatts::from(Watts(own)));
      continue;
    }
    gpu.power_limit.reset();
    gpu.unlock_clocks = as_found;
    if (!as_found) gpu.locked_clocks = ClockRange{kIdleClock, Hertz(std::round(own / kClockStep) * kClockStep)};
  }
  return proposal;
}

}  // namespace flyball::policy
