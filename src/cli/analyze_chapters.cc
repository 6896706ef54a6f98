#include <algorithm>
#include <cmath>

#include "base/stats.h"
#include "base/text.h"
#include "cli/analyze.h"
#include "series/clean.h"
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

Result<std::vector<series::Point>> load_parts(const AnalyzeInput& input, const std::vector<std::size_t>& parts,
                                              series::Interval time) {
  std::vector<series::Point> points;
  for (const std::size_t part : parts) {
    FLYBALL_ASSIGN(auto some, input.spool.load(part, time, kMargin));
    points.insert(points.end(), some.begin(), some.end());
  }
  if (parts.size() > 1) {
    std::stable_sort(points.begin(), points.end(),
                     [](const series::Point& a, const series::Point& b) { return a.at < b.at; });
  }
  return points;
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

series::CounterOptions counter_options(Scope scope) { return {Joules(0), series::plausible_power(scope)}; }

Result<std::vector<series::Point>> load_counter(const AnalyzeInput& input, const Meter& meter, series::Interval time) {
  return load_parts(input, meter.counter_parts, time);
}

Result<std::vector<series::Point>> load_meter(const AnalyzeInput& input, const Meter& meter, series::Interval time) {
  FLYBALL_ASSIGN(auto points, load_parts(input, meter.parts, time));
  if (meter.counter) return std::move(series::integrate_counter(points, counter_options(meter.scope)).power);
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

namespace {

/// A figure is some 800 pixels wide. Two points a pixel still look like a line; of more, means that are four pixels
/// apart do, and the swing of steps goes into the range around them.
constexpr std::uint64_t kMostPoints = 1600;
constexpr std::size_t kColumns = 200;

}  // namespace

PowerLine::PowerLine(const AnalyzedRun& run) : run_(run) {
  std::uint64_t points = 0;
  for (const Meter& meter : run.meters) points = std::max(points, meter.points);
  dense_ = points > kMostPoints && run.recorded.length() > Seconds(0);
  if (dense_) columns_.resize(kColumns);
}

void PowerLine::add(const series::Series& chapter) {
  const report::PlotLine all = report::line_of(chapter, "total");
  line_.name = all.name;
  if (!dense_) {
    line_.points.insert(line_.points.end(), all.points.begin(), all.points.end());
    return;
  }
  const double start = run_.recorded.start.seconds();
  const double width = run_.recorded.length().value() / static_cast<double>(kColumns);
  for (const report::PlotPoint& p : all.points) {
    if (!std::isfinite(p.y)) {
      gap_ = true;
      continue;
    }
    const double place = std::clamp((p.x - start) / width, 0.0, static_cast<double>(kColumns - 1));
    Column& column = columns_[static_cast<std::size_t>(place)];
    if (column.count++ == 0) {
      column.low = column.high = p.y;
      column.behind_gap = gap_;
    }
    gap_ = false;
    column.sum_x += p.x - start;
    column.sum += p.y;
    column.low = std::min(column.low, p.y);
    column.high = std::max(column.high, p.y);
  }
}

void PowerLine::draw(report::Plot& plot) const {
  if (!dense_) {
    plot.lines.push_back(line_);
    return;
  }
  const double start = run_.recorded.start.seconds();
  report::PlotLine mean{
      .name = "mean of " + format(run_.recorded.length() / static_cast<double>(kColumns)), .points = {}, .color = 0};
  report::PlotBand range{.name = "lowest to highest", .columns = {}, .color = 0};
  for (const Column& c : columns_) {
    if (c.count == 0) continue;
    const double n = static_cast<double>(c.count), x = start + c.sum_x / n;
    if (c.behind_gap && !mean.points.empty()) mean.points.push_back({mean.points.back().x, report::kGap});
    mean.points.push_back({x, c.sum / n});
    range.columns.push_back({x, c.low, c.high});
  }
  plot.bands.push_back(std::move(range));
  plot.lines.push_back(std::move(mean));
}

}  // namespace flyball::cli
