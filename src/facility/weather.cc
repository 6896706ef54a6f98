#include "facility/weather.h"

#include <algorithm>
#include <cmath>

namespace flyball::facility {
namespace {

constexpr Seconds kLongestGap = Seconds(2 * 3600.0);
constexpr Seconds kFeltAfter = Seconds(3600.0);

}  // namespace

Celsius wet_bulb(Celsius dry_bulb, double relative_humidity_fraction) {
  const double t = dry_bulb.value();
  const double rh = 100 * std::clamp(relative_humidity_fraction, 0.0, 1.0);
  return Celsius(t * std::atan(0.151977 * std::sqrt(rh + 8.313659)) + std::atan(t + rh) - std::atan(rh - 1.676331) +
                 0.00391838 * std::pow(rh, 1.5) * std::atan(0.023101 * rh) - 4.686035);
}

Weather::Weather(std::vector<WeatherPoint> points) : points_(std::move(points)) {
  std::stable_sort(points_.begin(), points_.end(),
                   [](const WeatherPoint& a, const WeatherPoint& b) { return a.at < b.at; });
  std::vector<WeatherPoint> kept;
  for (const WeatherPoint& point : points_) {
    if (!kept.empty() && kept.back().at == point.at) kept.pop_back();
    kept.push_back(point);
  }
  points_ = std::move(kept);
}

std::optional<Celsius> Weather::at(WallTime time) const {
  const auto after = std::lower_bound(points_.begin(), points_.end(), time,
                                      [](const WeatherPoint& p, WallTime t) { return p.at < t; });
  if (after != points_.end() && after->at == time) return after->air;
  // Before the first and behind the last the nearest holds for as long as a gap may be bridged at its ends.
  if (after == points_.end() || after == points_.begin()) {
    if (points_.empty()) return std::nullopt;
    const WeatherPoint& end = after == points_.begin() ? points_.front() : points_.back();
    const Seconds away = end.at > time ? end.at - time : time - end.at;
    return away <= kLongestGap * 0.5 ? std::optional(end.air) : std::nullopt;
  }
  const WeatherPoint& before = *(after - 1);
  if (after->at - before.at > kLongestGap) return std::nullopt;
  const double part = (time - before.at) / (after->at - before.at);
  return before.air + part * (after->air - before.air);
}

std::optional<Celsius> Weather::felt(WallTime time) const {
  const auto now = at(time);
  if (!now) return now;
  return (*now + at(time - kFeltAfter).value_or(*now)) * 0.5;
}

}  // namespace flyball::facility
