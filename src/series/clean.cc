#include "series/clean.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/stats.h"
#include "base/text.h"
#include "series/reader_intake.h"

namespace flyball::series {

// The bounds themselves are the readers': one table for what is read and for what comes from elsewhere.
Watts plausible_power(Scope scope) { return Watts(plausible_range(Signal::power_average, scope).high); }

bool believable(double value, const Range& range) {
  return std::isfinite(value) && value >= range.low && value <= range.high;
}

namespace {

bool is_power(Signal signal) { return signal == Signal::power_average || signal == Signal::power_instant; }

// A register with all bits set or its largest signed value, read as a number; scaled by up to 10^-6 (mW, µW, deci).
bool is_sentinel(double value) {
  constexpr std::array<double, 9> kCodes{65535,
                                         65534,
                                         32767,
                                         32768,
                                         4294967295.0,
                                         4294967294.0,
                                         2147483647.0,
                                         9223372036854775807.0,
                                         18446744073709551615.0};
  static const std::vector<double> all = [&] {
    std::vector<double> scaled;
    for (double scale = 1; scale <= 1e6; scale *= 10)
      for (double code : kCodes) scaled.push_back(code / scale);
    std::sort(scaled.begin(), scaled.end());
    return scaled;
  }();
  const double magnitude = std::fabs(value);
  const auto next = std::lower_bound(all.begin(), all.end(), magnitude * (1 - 1e-12));
  return next != all.end() && std::fabs(magnitude - *next) <= 1e-12 * *next;
}

// Median of the ok values within `reach` points on each side, without the point itself; NaN if there are fewer than 4.
double surroundings(std::span<const Point> points, std::size_t i, std::size_t reach) {
  std::vector<double> near;
  const std::size_t from = i > reach ? i - reach : 0, to = std::min(points.size(), i + reach + 1);
  for (std::size_t k = from; k < to; ++k)
    if (k != i && points[k].status == Status::ok) near.push_back(points[k].value);
  return near.size() < 4 ? std::numeric_limits<double>::quiet_NaN() : median(near);
}

void mark_false_zeros(std::vector<Point>& points, std::size_t longest, CleanReport& report) {
  for (std::size_t i = 0; i < points.size();) {
    std::size_t end = i;
    while (end < points.size() && points[end].status == Status::ok && points[end].value == 0) ++end;
    const auto above = [&](std::size_t k) { return points[k].status != Status::ok || points[k].value > 0; };
    if (end > i && end - i <= longest && i > 0 && end < points.size() && above(i - 1) && above(end))
      for (std::size_t k = i; k < end; ++k, ++report.false_zeros) points[k].status = Status::garbage;
    i = std::max(end, i + 1);
  }
}

// More than half of the good values around are below 500 times the point's.
bool near_is_alike(std::span<const Point> points, std::size_t i, std::size_t reach) {
  std::size_t alike = 0, above = 0;
  const std::size_t from = i > reach ? i - reach : 0, to = std::min(points.size(), i + reach + 1);
  for (std::size_t k = from; k < to; ++k) {
    if (k == i || points[k].status != Status::ok) continue;
    ++(points[k].value < 500 * points[i].value ? alike : above);
  }
  return alike > above;
}

// A single reading in kW among watts. The other way round leaves the plausible range.
void mark_wrong_units(std::vector<Point>& points, CleanReport& report) {
  constexpr std::size_t kReach = 5;
  for (std::size_t i = 0; i < points.size(); ++i) {
    Point& p = points[i];
    if (p.status != Status::ok || !(p.value > 0)) continue;
    // Quickly, for nearly all: the median of what surrounds it is then not far above it.
    if (near_is_alike(points, i, kReach)) continue;
    const double around = surroundings(points, i, kReach);
    // Half to twice a thousandth: power moves by less than that between two readings a period apart.
    if (!(around > 0) || p.value * 2000 < around || p.value * 500 > around) continue;
    p.status = Status::garbage;
    ++report.wrong_unit;
  }
}

std::string hint_of_unit(std::span<const Point> points, const Range& range) {
  std::vector<double> finite;
  for (const Point& p : points)
    if (std::isfinite(p.value) && p.value > 0) finite.push_back(p.value);
  if (finite.empty() || !(range.high < 1e300)) return {};
  const double middle = median(finite);
  if (middle <= range.high) return {};
  for (const auto& [factor, name] : {std::pair{1e3, "milli"}, std::pair{1e6, "micro"}})
    if (middle / factor <= range.high && middle / factor >= range.high * 1e-3)
      return fmt::format("the median reading {} is {} times too large: these look like {}-units", format_exact(middle),
                         factor, name);
  return {};
}

}  // namespace

CleanReport clean(std::vector<Point>& points, const SeriesKey& key, const CleanOptions& options) {
  CleanReport report;
  const PlausibleRange general = plausible_range(key.signal, key.scope);
  const Range range = options.range.value_or(Range{general.low, general.high});
  report.unit_hint = hint_of_unit(points, range);
  const bool power = is_power(key.signal);
  for (std::size_t i = 0; i < points.size(); ++i) {
    Point& p = points[i];
    if (p.status != Status::ok) continue;
    ++report.checked;
    if (!std::isfinite(p.value)) {
      ++report.not_finite;
    } else if (!believable(p.value, range)) {
      ++(is_sentinel(p.value) ? report.sentinels : report.out_of_range);
    } else if (power && is_sentinel(p.value)) {
      // Inside the range it may be a true reading: only one that stands apart from what surrounds it is a code.
      const double around = surroundings(points, i, 5);
      if (std::isfinite(around) && p.value < 2 * around && p.value > around / 2) continue;
      ++report.sentinels;
    } else {
      continue;
    }
    p.status = Status::garbage;
  }
  if (!power) return report;
  mark_false_zeros(points, options.longest_false_zero, report);
  mark_wrong_units(points, report);
  return report;
}

bool is_stale(WallTime measured, WallTime now, Seconds period, double periods) {
  return now - measured > period * periods;
}

std::size_t mark_stale(std::vector<Point>& points, WallTime now, Seconds period, double periods) {
  std::size_t count = 0;
  for (Point& p : points)
    if (p.status == Status::ok && is_stale(p.at, now, period, periods)) p.status = Status::stale, ++count;
  return count;
}

}  // namespace flyball::series
