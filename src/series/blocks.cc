#include "series/blocks.h"

#include <algorithm>
#include <cmath>

#include "base/stats.h"
#include "series/fleet_sum.h"
#include "series/integrate.h"

namespace flyball::series {
namespace {

// The sum of all nodes at instants from + k · step; NaN where too few were measured.
struct Grid {
  WallTime from;
  Seconds step;
  std::vector<double> value;
};

// The value on the line between neighbours, NaN outside and in holes. `i` is moved along.
double value_at(const Samples& s, double t, double longest, std::size_t& i) {
  if (t < s.t_s.front() || t > s.t_s.back()) return std::nan("");
  while (i + 2 < s.size() && s.t_s[i + 1] <= t) ++i;
  if (t == s.t_s[i]) return s.value[i];
  const double dt = s.t_s[i + 1] - s.t_s[i];
  if (dt > longest) return std::nan("");
  return s.value[i] + (t - s.t_s[i]) / dt * (s.value[i + 1] - s.value[i]);
}

Grid sum_on_grid(const std::vector<Samples>& nodes, const GapRule& gap) {
  constexpr double kPresent = 0.9;
  Grid grid{nodes[0].origin, Seconds(0), {}};
  WallTime end = grid.from;
  std::vector<double> periods;
  for (const Samples& s : nodes) {
    grid.from = std::min(grid.from, s.origin);
    end = std::max(end, s.instant_of(s.t_s.back()));
    periods.push_back(s.period.value());
  }
  grid.step = Seconds(median(periods));
  const auto n = static_cast<std::size_t>((end - grid.from) / grid.step) + 1;
  std::vector<double> expected(n, 0), present(n, 0);
  grid.value.assign(n, 0);
  double overall = 0;
  for (const Samples& s : nodes) {
    RunningStats stats;
    for (double v : s.value) stats.add(v);
    overall += stats.mean();
    const double origin = s.seconds_of(grid.from), longest = gap.longest(s.period).value();
    std::size_t hint = 0;
    for (std::size_t k = 0; k < n; ++k) {
      const double v = value_at(s, origin + static_cast<double>(k) * grid.step.value(), longest, hint);
      if (!std::isfinite(v)) continue;
      grid.value[k] += v;
      expected[k] += stats.mean();
      present[k] += 1;
    }
  }
  for (std::size_t k = 0; k < n; ++k) {
    if (present[k] < kPresent * static_cast<double>(nodes.size()))
      grid.value[k] = std::nan("");
    else if (expected[k] != 0)
      grid.value[k] *= overall / expected[k];
  }
  return grid;
}

// The time between the excluded intervals.
std::vector<Interval> stretches(Interval all, std::span<const Interval> excluded) {
  std::vector<Interval> sorted(excluded.begin(), excluded.end());
  std::sort(sorted.begin(), sorted.end(), [](const Interval& a, const Interval& b) { return a.start < b.start; });
  std::vector<Interval> out;
  WallTime from = all.start;
  for (const Interval& e : sorted) {
    if (e.start > from) out.push_back({from, std::min(e.start, all.stop)});
    from = std::max(from, e.stop);
  }
  if (from < all.stop) out.push_back({from, all.stop});
  return out;
}

// Mean of the grid's values at instants in [from, from + width); NaN if any is missing or there is none.
double block_mean(const Grid& grid, WallTime from, Seconds width) {
  const auto first = static_cast<std::size_t>(std::max(0.0, std::ceil((from - grid.from) / grid.step - 1e-9)));
  double sum = 0;
  std::size_t n = 0;
  for (std::size_t k = first; k < grid.value.size(); ++k, ++n) {
    if (static_cast<double>(k) >= (from + width - grid.from) / grid.step - 1e-9) break;
    sum += grid.value[k];
  }
  return n > 0 ? sum / static_cast<double>(n) : std::nan("");
}

}  // namespace

std::vector<BlockStatistic> block_statistics(std::span<const std::span<const Point>> points,
                                             std::span<const Seconds> widths, std::span<const Interval> excluded,
                                             const GapRule& gap) {
  std::vector<BlockStatistic> out;
  std::vector<Samples> nodes;
  for (const auto& p : points)
    if (Samples s = usable_samples(p); s.size() >= 2) nodes.push_back(std::move(s));
  if (nodes.empty()) return out;
  const Grid grid = sum_on_grid(nodes, gap);
  const Interval all{grid.from, grid.from + grid.step * static_cast<double>(grid.value.size())};
  const auto ranges = stretches(all, excluded);
  for (Seconds width : widths) {
    if (!(width > Seconds(0))) continue;
    RunningStats stats;
    for (const Interval& range : ranges)
      for (WallTime t = range.start; t + width <= range.stop; t = t + width)
        if (const double mean = block_mean(grid, t, width); std::isfinite(mean)) stats.add(mean);
    out.push_back({width, stats.count(), stats.mean(), stats.sd()});
  }
  return out;
}

std::optional<double> pairwise_correlation(std::span<const std::span<const Point>> nodes, Seconds width,
                                           std::span<const Interval> excluded, const GapRule& gap) {
  std::vector<Samples> samples;
  for (const auto& points : nodes)
    if (Samples s = usable_samples(points); s.size() >= 2) samples.push_back(std::move(s));
  if (samples.size() < 2 || !(width > Seconds(0))) return {};
  WallTime from = samples[0].origin, to = samples[0].instant_of(samples[0].t_s.back());
  for (const Samples& s : samples) {
    from = std::max(from, s.origin);
    to = std::min(to, s.instant_of(s.t_s.back()));
  }
  if (!(from < to)) return {};
  const auto cells = static_cast<std::size_t>((to - from) / width);
  std::vector<std::vector<double>> means;
  means.reserve(samples.size());
  for (const Samples& s : samples) means.push_back(cell_means(s, from, width, cells, 0.9, gap));
  std::vector<std::vector<double>> kept(means.size());
  for (std::size_t i = 0; i < cells; ++i) {
    const WallTime a = from + width * static_cast<double>(i), b = a + width;
    const bool out =
        std::any_of(excluded.begin(), excluded.end(), [&](const Interval& e) { return e.start < b && e.stop > a; });
    const bool whole = std::all_of(means.begin(), means.end(), [&](const auto& m) { return std::isfinite(m[i]); });
    if (out || !whole) continue;
    for (std::size_t k = 0; k < means.size(); ++k) kept[k].push_back(means[k][i]);
  }
  RunningStats pairs;
  for (std::size_t a = 0; a < kept.size(); ++a)
    for (std::size_t b = a + 1; b < kept.size(); ++b)
      if (const double r = correlation(kept[a], kept[b]); std::isfinite(r)) pairs.add(r);
  if (pairs.count() == 0) return {};
  return pairs.mean();
}

}  // namespace flyball::series
