#include "experiment/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/text.h"

namespace flyball::experiment {
namespace {

/// A switch costs one step and the settling: an eighth of the block or less, a third where the run is short.
constexpr double kWantedLosses = 8;
constexpr double kLeastLosses = 3;
/// Groups that a run should have room for before blocks are made longer than they must be.
constexpr double kWantedGroups = 12;
/// How far the ratio of block and period (or the reverse) keeps off whole numbers, in periods; periods under a tenth of
/// a block are averaged out.
constexpr double kOffMultiple = 0.1;
constexpr double kLeastPeriodShare = 0.1;
/// Grains tried beyond the block that is wanted.
constexpr int kTries = 12;

bool near_whole(double ratio) {
  const double whole = std::round(ratio);
  return whole >= 1 && std::fabs(ratio - whole) < kOffMultiple;
}

bool in_step_with(Seconds block, Seconds period) {
  if (period <= block * kLeastPeriodShare) return false;
  return near_whole(block / period) || near_whole(period / block);
}

}  // namespace

std::string_view to_string(Arm arm) { return arm == Arm::control ? "control" : "original"; }

Result<Schedule> Schedule::make(const Options& o) {
  if (!(o.share >= kLeastShare && o.share <= kMostShare)) {
    return fail(ErrorCode::input, fmt::format("{} of the time is no share of the rarer arm", o.share),
                "--switchback-share", fmt::format("give {} to {}", kLeastShare, kMostShare));
  }
  const auto group = static_cast<std::uint64_t>(std::lround(1 / o.share));
  const Seconds lost = o.step + o.settle;
  Seconds least = std::max(o.block, lost * kWantedLosses);
  if (o.horizon > Seconds(0)) {
    const Seconds room = o.horizon / (static_cast<double>(group) * kWantedGroups);
    least = std::max({o.block, std::min(least, room), lost * kLeastLosses});
  }
  const double first = std::max(1.0, std::ceil(least / o.grain - 1e-9));
  Seconds block = o.grain * first;
  for (int i = 0; i < kTries; ++i) {
    const Seconds candidate = o.grain * (first + i);
    const bool clear = std::none_of(o.periods.begin(), o.periods.end(),
                                    [&](Seconds period) { return in_step_with(candidate, period); });
    if (!clear) continue;
    block = candidate;
    break;
  }
  const Seconds shortest = block * static_cast<double>(group) * kLeastGroups;
  if (o.horizon > Seconds(0) && o.horizon < shortest) {
    return fail(ErrorCode::input,
                fmt::format("a run of {} has no room for {} groups of {} blocks of {}", format(o.horizon), kLeastGroups,
                            group, format(block)),
                "switchback", "run for " + format(shortest) + " or more, or give a larger share");
  }
  return Schedule(block, group, o);
}

std::uint64_t Schedule::index(Seconds since_start) const {
  // A poll may come a little before the end of its grain.
  return since_start <= Seconds(0) ? 0 : static_cast<std::uint64_t>(since_start / block_ + 1e-6);
}

bool Schedule::is_rare(std::uint64_t index) const {
  return index % group_ == Random(seed_).fork(index / group_).below(group_);
}

}  // namespace flyball::experiment
