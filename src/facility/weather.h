#pragma once
// Outdoor air as cooling feels it.

#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/units.h"

namespace flyball::facility {

/// From dry bulb and relative humidity, at sea level: Stull, "Wet-bulb temperature from relative humidity and air
/// temperature" (2011), within 1 K for 5 to 99 % and −20 to 50 °C.
Celsius wet_bulb(Celsius dry_bulb, double relative_humidity_fraction);

struct WeatherPoint {
  WallTime at;
  Celsius air;  ///< wet bulb or dry bulb, all of one kind
};

class Weather {
 public:
  /// In any order; of two points of one time the later one in the list counts.
  explicit Weather(std::vector<WeatherPoint> points);

  /// Between neighbours that are at most two hours apart, linear; else the nearest within an hour; else nothing.
  std::optional<Celsius> at(WallTime time) const;
  /// The mean of now and an hour ago: what a tower's basin and a building's skin let through of an hour. Nothing where
  /// now is not known.
  std::optional<Celsius> felt(WallTime time) const;
  std::size_t size() const { return points_.size(); }
  /// In order of time.
  std::span<const WeatherPoint> points() const { return points_; }

 private:
  std::vector<WeatherPoint> points_;
};

}  // namespace flyball::facility
