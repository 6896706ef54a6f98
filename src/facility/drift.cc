#include "facility/drift.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "facility/expected.h"

namespace flyball::facility {
namespace {

constexpr double kNormalMedian = 0.6745;
// A day of blocks that are wider in a row's mean: chance does not keep that up.
constexpr std::size_t kWideBlocks = 12;

double robust_sd(const std::vector<double>& values, double centre) {
  std::vector<double> away;
  away.reserve(values.size());
  for (const double v : values) away.push_back(std::abs(v - centre));
  return median(away) / kNormalMedian;
}

enum class Kind { idle, checkpoint, busy };

Kind kind_of(Phase phase) {
  switch (phase) {
    case Phase::idle:
    case Phase::startup:
    case Phase::unknown:
      return Kind::idle;
    case Phase::checkpoint:
    case Phase::data_loading:
      return Kind::checkpoint;
    default:
      return Kind::busy;
  }
}

}  // namespace

void DriftWatch::take(WallTime at, const PhaseKey& key, Watts difference) {
  if (!difference.finite()) return;
  const auto [entry, fresh] = watched_.try_emplace(key);
  Watched& watched = entry->second;
  if (fresh) watched.first = at;
  if (watched.block.count() == 0) watched.block_start = at;
  watched.block.add(difference.value());
  // Time of this phase alone: a block of a short phase is put together of several visits.
  const Seconds since_last = watched.block.count() > 1 ? at - watched.last : Seconds(0);
  watched.last = at;
  constexpr Seconds kVisitEnds = Seconds(120);
  if (since_last > kVisitEnds) watched.block_start = watched.block_start + since_last;
  if (at - watched.block_start >= options_.block) finish_block(watched);
}

void DriftWatch::finish_block(Watched& watched) const {
  const double mean = watched.block.mean(), scatter = watched.block.sd();
  watched.block = {};
  if (watched.referenced) return compare(watched, mean, scatter);
  watched.means.push_back(mean);
  watched.scatters.push_back(scatter);
  if (watched.means.size() < options_.reference_blocks || watched.last - watched.first < options_.reference_time)
    return;
  watched.referenced = true;
  watched.centre = median(watched.means);
  watched.sd = std::max(robust_sd(watched.means, watched.centre), 1e-9 + 1e-6 * std::abs(watched.centre));
  watched.run_length = variance_inflation(watched.means, watched.centre);
  watched.scatter = median(watched.scatters);
  watched.up_since = watched.down_since = watched.wide_since = watched.last;
}

void DriftWatch::compare(Watched& watched, double mean, double scatter) const {
  const auto follow = [&](double& sum, RunningStats& blocks, WallTime& since, bool& alarm, double z) {
    sum = std::max(0.0, sum + z - options_.allowance);
    if (sum == 0) {
      blocks = {};
      since = watched.last;
      alarm = false;
      return;
    }
    blocks.add(mean - watched.centre);
    // What has gone on for long need not be won back block by block before it counts as over.
    sum = std::min(sum, 2 * options_.threshold);
    alarm = alarm || sum > options_.threshold;
  };
  // Blocks in a row err alike: as independent ones they would scatter more.
  const double inflated = watched.sd * std::sqrt(watched.run_length);
  const double z = (mean - watched.centre) / inflated;
  follow(watched.up, watched.up_blocks, watched.up_since, watched.alarm_up, z);
  follow(watched.down, watched.down_blocks, watched.down_since, watched.alarm_down, -z);
  if (scatter > options_.ripple_factor * watched.scatter) {
    watched.wide_blocks.add(scatter - watched.scatter);
  } else {
    watched.wide_blocks = {};
    watched.wide_since = watched.last;
  }
}

Estimate DriftWatch::size_of(const Watched& watched, const RunningStats& blocks) const {
  const double n = std::max(static_cast<double>(blocks.count()) / watched.run_length, 1.0);
  const double reference = std::max(static_cast<double>(watched.means.size()) / watched.run_length, 2.0);
  const double half = student_t(options_.level, reference - 1) * watched.sd * std::sqrt(1 / n + 1 / reference);
  return {blocks.mean(), blocks.mean() - half, blocks.mean() + half, options_.level};
}

std::vector<DriftFinding> DriftWatch::findings() const {
  std::vector<DriftFinding> made;
  for (const bool up : {true, false}) {
    std::optional<DriftFinding> all;
    bool kinds[3] = {false, false, false}, quiet[3] = {false, false, false};
    double weight = 0;
    for (const auto& [key, watched] : watched_) {
      const auto kind = static_cast<std::size_t>(kind_of(key.phase));
      if (!watched.referenced) continue;
      if (!(up ? watched.alarm_up : watched.alarm_down)) {
        quiet[kind] = true;
        continue;
      }
      kinds[kind] = true;
      const RunningStats& blocks = up ? watched.up_blocks : watched.down_blocks;
      const WallTime since = up ? watched.up_since : watched.down_since;
      if (!all) all = DriftFinding{"", {}, since, {0, 0, 0, options_.level}};
      all->phases.push_back(key);
      all->since = std::min(all->since, since);
      // Weighed by how well each phase knows it.
      const Estimate one = size_of(watched, blocks);
      const double w = 1 / (one.half_width() * one.half_width());
      all->size_w.value += w * one.value;
      weight += w;
    }
    if (!all) continue;
    all->size_w.value /= weight;
    all->size_w.low = all->size_w.value - 1 / std::sqrt(weight);
    all->size_w.high = all->size_w.value + 1 / std::sqrt(weight);
    const bool idle = kinds[0], checkpoint = kinds[1], busy = kinds[2];
    const bool whole = (idle || !quiet[0]) && (checkpoint || !quiet[1]) && (busy || !quiet[2]);
    const int seen = (idle ? 1 : 0) + (checkpoint ? 1 : 0) + (busy ? 1 : 0);
    all->kind = seen > 1 && whole ? "everywhere" : busy ? "busy" : checkpoint && !idle ? "checkpoint" : "idle";
    made.push_back(std::move(*all));
  }
  for (const auto& [key, watched] : watched_) {
    if (watched.wide_blocks.count() < kWideBlocks || watched.alarm_up || watched.alarm_down) continue;
    const double half = student_t(options_.level, kWideBlocks - 1) * watched.wide_blocks.sd() /
                        std::sqrt(static_cast<double>(watched.wide_blocks.count()));
    const double size = watched.wide_blocks.mean();
    made.push_back({"ripple", {key}, watched.wide_since, {size, size - half, size + half, options_.level}});
  }
  return made;
}

}  // namespace flyball::facility
