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
  const bool between = after != points_.end() && after != points_.begin();
  if (!between || after->at - (after - 1)->at > kLongestGap) {
    // At the ends, and on either side of a long gap, the nearest holds for half of what may be bridged.
    std::optional<WeatherPoint> nearest;
    if (after != points_.end()) nearest = *after;
    if (after != points_.begin() && (!nearest || time - (after - 1)->at < nearest->at - time)) nearest = *(after - 1);
    if (!nearest) return std::nullopt;
    const Seconds away = nearest->at > time ? nearest->at - time : time - nearest->at;
    return away <= kLongestGap * 0.5 ? std::optional(nearest->air) : std::nullopt;
  }
  const WeatherPoint& before = *(after - 1);
  const double part = (time - before.at) / (after->at - before.at);
  return before.air + part * (after->air - before.air);
}

std::optional<Celsius> Weather::felt(WallTime time) const {
  const auto now = at(time);
  if (!now) return now;
  return (*now + at(time - kFeltAfter).value_or(*now)) * 0.5;
}

}  // namespace flyball::facility
