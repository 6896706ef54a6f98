#include "curve/curve.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/stats.h"
#include "base/text.h"

namespace flyball::curve {
namespace {

Result<std::vector<Point>> ascending(std::span<const Point> points) {
  std::vector<Point> sorted(points.begin(), points.end());
  std::sort(sorted.begin(), sorted.end(), [](const Point& a, const Point& b) { return a.limit < b.limit; });
  if (sorted.empty()) return fail(ErrorCode::input, "a curve needs at least one point");
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const Point& point = sorted[i];
    const std::string at = "at limit " + format(point.limit);
    if (point.limit <= Milliwatts(0)) return fail(ErrorCode::input, "the limit must be above 0 W", at);
    if (i > 0 && point.limit == sorted[i - 1].limit) return fail(ErrorCode::input, "the limit occurs twice", at);
    if (!point.time.finite() || point.time <= Seconds(0)) {
      return fail(ErrorCode::input, "the time is " + format_exact(point.time.value()) + " s, it must be above 0", at);
    }
    if (!point.power.finite() || point.power <= Watts(0)) {
      return fail(ErrorCode::input, "the power is " + format_exact(point.power.value()) + " W, it must be above 0", at);
    }
  }
  return sorted;
}

}  // namespace

Result<Curve> Curve::through(std::span<const Point> points) {
  Curve curve;
  FLYBALL_ASSIGN(curve.knots_, ascending(points));
  std::vector<double> limit, log_time, power;
  for (const Point& point : curve.knots_) {
    limit.push_back(point.limit.watts().value());
    log_time.push_back(std::log(point.time.value()));
    power.push_back(point.power.value());
  }
  FLYBALL_ASSIGN(curve.log_time_, MonotoneCubic::through(limit, log_time));
  FLYBALL_ASSIGN(curve.power_, MonotoneCubic::through(limit, power));
  return curve;
}

Result<Curve> Curve::monotone(std::span<const Point> points) {
  FLYBALL_ASSIGN(auto sorted, ascending(points));
  std::vector<double> log_speed, power;
  for (const Point& point : sorted) {
    log_speed.push_back(-std::log(point.time.value()));
    power.push_back(point.power.value());
  }
  log_speed = isotonic_non_decreasing(log_speed);
  power = isotonic_non_decreasing(power);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    sorted[i].time = Seconds(std::exp(-log_speed[i]));
    sorted[i].power = Watts(power[i]);
  }
  return through(sorted);
}

Seconds Curve::time(Watts limit) const { return Seconds(std::exp(log_time_(limit.value()))); }

Watts Curve::power(Watts limit) const { return Watts(power_(limit.value())); }

}  // namespace flyball::curve
