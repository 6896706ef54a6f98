#include "series/fleet_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/stats.h"
#include "series/integrate.h"

namespace flyball::series {
namespace {

constexpr std::size_t kMostCells = 50'000'000;  // 1.6 years at 1 s; above this the step is wrong, not the recording

struct Member {
  std::vector<double> means;
  double mean = 0;  // over the measured cells
};

double mean_of_finite(const std::vector<double>& values) {
  RunningStats stats;
  for (double v : values)
    if (std::isfinite(v)) stats.add(v);
  return stats.mean();
}

Point cell_sum(const std::vector<Member>& members, std::size_t cell, double overall, double min_fraction,
               double& present) {
  double sum = 0;
  double expected = 0;
  std::size_t count = 0;
  for (const Member& m : members) {
    if (!std::isfinite(m.means[cell])) continue;
    sum += m.means[cell];
    expected += m.mean;
    ++count;
  }
  present = static_cast<double>(count) / static_cast<double>(members.size());
  if (count == 0 || present < min_fraction) return {{}, 0, Status::missing};
  if (count < members.size() && expected != 0) sum *= overall / expected;
  return {{}, sum, Status::ok};
}

}  // namespace

std::vector<double> cell_means(const Samples& samples, WallTime start, Seconds step, std::size_t cells,
                               double min_coverage, const GapRule& gap) {
  std::vector<double> means(cells, std::numeric_limits<double>::quiet_NaN());
  if (samples.size() < 2) return means;
  const Cumulative cumulative(samples, gap);
  const double origin = samples.seconds_of(start);
  std::size_t hint = 0;
  for (std::size_t i = 0; i < cells; ++i) {
    const double from = origin + static_cast<double>(i) * step.value();
    const auto area = cumulative.between(from, from + step.value(), hint);
    if (area.covered_s >= min_coverage * step.value() * (1 - 1e-9) && area.covered_s > 0)
      means[i] = area.energy_j / area.covered_s;
  }
  return means;
}

FleetSum fleet_sum(std::span<const std::span<const Point>> nodes, const SumOptions& options) {
  FleetSum out;
  out.series = nodes.size();
  std::vector<Samples> samples;
  std::vector<double> periods;
  std::optional<Interval> range = options.clip;
  for (const auto& points : nodes) {
    samples.push_back(usable_samples(points));
    const Samples& s = samples.back();
    out.skipped.not_ok += s.skipped.not_ok;
    out.skipped.duplicate += s.skipped.duplicate;
    out.skipped.disordered += s.skipped.disordered;
    if (s.size() < 2) continue;
    periods.push_back(s.period.value());
    const Interval own{s.origin, s.instant_of(s.t_s.back())};
    if (!range) range = own;
    if (!options.clip) range = Interval{std::min(range->start, own.start), std::max(range->stop, own.stop)};
  }
  if (periods.empty() || !range) return out;
  out.step = options.step > Seconds(0) ? options.step : Seconds(median(periods));
  const double cells_exact = std::floor(range->length() / out.step + 1e-9);
  if (!(cells_exact >= 1) || cells_exact > static_cast<double>(kMostCells)) return out;
  const auto cells = static_cast<std::size_t>(cells_exact);

  std::vector<Member> members(nodes.size());
  double overall = 0;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    members[k].means = cell_means(samples[k], range->start, out.step, cells, options.min_cell_coverage, options.gap);
    members[k].mean = mean_of_finite(members[k].means);
    overall += members[k].mean;
  }
  out.present_fraction.resize(cells);
  out.sum.points.reserve(cells);
  for (std::size_t i = 0; i < cells; ++i) {
    Point point = cell_sum(members, i, overall, options.min_series_fraction, out.present_fraction[i]);
    point.at = range->start + out.step * static_cast<double>(i + 1);
    if (out.present_fraction[i] == 1) out.complete += out.step;
    out.sum.points.push_back(point);
  }
  return out;
}

FleetSum fleet_sum(std::span<const Series> nodes, const SumOptions& options) {
  std::vector<std::span<const Point>> points;
  for (const Series& s : nodes) points.emplace_back(s.points);
  FleetSum out = fleet_sum(points, options);
  if (!nodes.empty()) {
    out.sum.key = nodes.front().key;
    out.sum.key.device = DeviceId::of("sum");
    out.sum.key.source = "sum of " + std::to_string(nodes.size()) + " series";
  }
  return out;
}

}  // namespace flyball::series
