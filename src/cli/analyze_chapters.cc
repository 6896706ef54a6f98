#include <algorithm>
#include <cmath>

#include "base/stats.h"
#include "cli/analyze.h"
#include "series/counter.h"
#include "series/fleet_sum.h"

namespace flyball::cli {
namespace {

/// Of all meters together: with what the analyses make of them some 20 MiB.
constexpr std::uint64_t kChapterPoints = 200'000;
/// Points beside a chapter: a counter needs some to know where it stands.
constexpr std::size_t kMargin = 8;

Seconds usual_period(const AnalyzedRun& run) {
  std::vector<double> periods;
  for (const Meter& meter : run.meters)
    if (meter.period > Seconds(0)) periods.push_back(meter.period.value());
  return periods.empty() ? Seconds(0) : Seconds(median(periods));
}

}  // namespace

std::vector<series::Interval> chapters_of(const AnalyzedRun& run, series::Interval whole) {
  std::uint64_t points = 0;
  for (const Meter& meter : run.meters) points += meter.points;
  const double share = whole.length() / run.recorded.length();
  const double wanted = std::ceil(static_cast<double>(points) * std::min(1.0, share) / kChapterPoints);
  const Seconds step = usual_period(run);
  if (!(wanted > 1) || !(step > Seconds(0))) return {whole};
  // Whole steps of the grid that meters are added on.
  const Seconds length = step * std::ceil(whole.length() / step / wanted);
  std::vector<series::Interval> all;
  for (WallTime from = whole.start; from < whole.stop;) {
    const WallTime to = std::min(whole.stop, whole.start + length * static_cast<double>(all.size() + 1));
    all.push_back({from, to});
    from = to;
  }
  return all;
}

Result<std::vector<series::Point>> load_meter(const AnalyzeInput& input, const Meter& meter, series::Interval time) {
  std::vector<series::Point> points;
  for (const std::size_t part : meter.parts) {
    FLYBALL_ASSIGN(auto some, input.spool.load(part, time, kMargin));
    points.insert(points.end(), some.begin(), some.end());
  }
  if (meter.parts.size() > 1) {
    std::stable_sort(points.begin(), points.end(),
                     [](const series::Point& a, const series::Point& b) { return a.at < b.at; });
  }
  if (meter.counter) return std::move(series::integrate_counter(points, {Joules(0), Watts(1e9)}).power);
  return points;
}

Result<> each_chapter(const AnalyzeInput& input, const AnalyzedRun& run,
                      const std::function<void(const series::Series& chapter)>& look) {
  const auto chapters = chapters_of(run, run.recorded);
  for (const series::Interval& chapter : chapters) {
    series::Series total;
    if (run.meters.size() == 1) {
      const Meter& meter = run.meters.front();
      total.key = {meter.device, meter.signal, meter.scope, {}};
      FLYBALL_ASSIGN(total.points, load_meter(input, meter, chapter));
      std::erase_if(total.points, [&](const series::Point& p) {
        return p.at > chapter.stop || p.at < chapter.start || (p.at == chapter.start && &chapter != &chapters.front());
      });
    } else {
      std::vector<series::Series> meters;
      for (const Meter& meter : run.meters) {
        meters.push_back({{meter.device, meter.signal, meter.scope, {}}, {}});
        FLYBALL_ASSIGN(meters.back().points, load_meter(input, meter, chapter));
      }
      series::SumOptions options;
      options.gap = input.gap;
      if (chapters.size() > 1) {
        options.step = usual_period(run);
        options.clip = chapter;
      }
      total = series::fleet_sum(meters, options).sum;
    }
    for (series::Point& p : total.points) p.value += input.extra.value();
    look(total);
  }
  return {};
}

void PowerLine::add(const series::Series& chapter) {
  constexpr std::size_t kAllPoints = 50'000;
  report::PlotLine all = report::line_of(chapter, "total");
  line_.name = all.name;
  std::uint64_t points = 0;
  for (const Meter& meter : run_.meters) points = std::max(points, meter.points);
  if (points <= kAllPoints) {
    line_.points.insert(line_.points.end(), all.points.begin(), all.points.end());
    return;
  }
  // First, lowest, highest and last of each column: what a screen can show (M4; Jugel et al., 2014).
  constexpr double kColumns = 4000;
  const double width = run_.recorded.length().value() / kColumns;
  for (std::size_t from = 0; from < all.points.size();) {
    const double column = std::floor(all.points[from].x / width);
    std::size_t to = from, low = from, high = from;
    for (; to < all.points.size() && std::floor(all.points[to].x / width) == column; ++to) {
      if (all.points[to].y < all.points[low].y) low = to;
      if (all.points[to].y > all.points[high].y) high = to;
    }
    std::vector<std::size_t> kept{from, low, high, to - 1};
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    for (const std::size_t i : kept) line_.points.push_back(all.points[i]);
    from = to;
  }
}

}  // namespace flyball::cli
