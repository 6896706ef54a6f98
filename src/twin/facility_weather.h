#pragma once
// Outdoor air for a building: from a file, or a made-up year.

#include <cstdint>
#include <vector>

#include "base/byte_source.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"

namespace flyball::twin {

struct WeatherSample {
  WallTime at;
  Celsius dry_bulb, wet_bulb;
};

/// Hourly: a yearly and a daily sinusoid, plus an Ornstein-Uhlenbeck front of 3 days and one of 6 hours. Mean 11 °C,
/// yearly ± 11 K, daily ± 5 K, fronts 3.5 K and 1 K sd: a temperate continental place (Chicago's normals, NOAA
/// 1991–2020). Relative humidity goes from 0.85 at night to 0.55 by day with its own slow noise.
std::vector<WeatherSample> synthetic_weather(std::uint64_t seed, WallTime start, Seconds length);

/// CSV with a header: a stamp ("time", "dt", "at" …), "dry_bulb_c" or "tempF", and, where known, "wet_bulb_c" or
/// "relative_humidity_fraction". Without either the humidity is that of the made-up year. In order of time.
Result<std::vector<WeatherSample>> read_weather(ByteSource& source);
/// The same weather, moved so that it begins at `start`: a year's file for a run in any year.
std::vector<WeatherSample> shift_weather(std::vector<WeatherSample> weather, WallTime from, WallTime start);

/// From dry bulb and relative humidity at sea level (Stull, 2011).
Celsius wet_bulb_of(Celsius dry_bulb, double relative_humidity_fraction);

/// Linear between samples; before the first and behind the last their values. Times must not fall.
class WeatherCursor {
 public:
  explicit WeatherCursor(std::vector<WeatherSample> weather);
  WeatherSample at(WallTime time);

 private:
  std::vector<WeatherSample> weather_;
  std::size_t next_ = 0;
};

}  // namespace flyball::twin
