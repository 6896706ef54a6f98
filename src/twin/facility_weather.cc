#include "twin/facility_weather.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/csv.h"
#include "base/random.h"
#include "base/text.h"

namespace flyball::twin {

namespace {

constexpr double kHour = 3600, kDay = 86400, kYear = 365.25 * kDay;
constexpr double kMean = 11, kYearly = 12.5, kDaily = 4.5;  // °C, K; NOAA 1991–2020 normals of Chicago, rounded
constexpr double kFront = 3.5, kFrontTime = 3 * kDay;       // chosen
constexpr double kGust = 1, kGustTime = 6 * kHour;          // chosen
constexpr double kHumidity = 0.7, kHumidityDaily = 0.15, kHumiditySd = 0.1;
constexpr double kColdestDay = 20 * kDay, kWarmestHour = 21 * kHour;  // UTC

double wave(WallTime at, double period, double top) {
  return std::cos(2 * std::numbers::pi * (std::fmod(at.seconds(), period) - top) / period);
}

class Wander {
 public:
  Wander(double sd, double time, double step, Random& random)
      : keep_(std::exp(-step / time)), kick_(sd * std::sqrt(1 - keep_ * keep_)), value_(sd * random.normal()) {}
  double next(Random& random) { return value_ = keep_ * value_ + kick_ * random.normal(); }

 private:
  double keep_, kick_, value_;
};

double usual_humidity(WallTime at) { return kHumidity - kHumidityDaily * wave(at, kDay, kWarmestHour); }

Result<WallTime> parse_stamp(std::string_view text) {
  std::string stamp(trim(text));
  if (stamp.size() > 10 && stamp[10] == ' ') stamp[10] = 'T';
  return parse_rfc3339(stamp);
}

struct Columns {
  int time = -1, celsius = -1, fahrenheit = -1, wet_bulb = -1, humidity = -1;
};

Result<Columns> find_columns(const CsvRow& header) {
  Columns c;
  for (std::size_t i = 0; i < header.cells.size(); ++i) {
    const std::string name = to_lower(trim(header.cells[i]));
    const int at = static_cast<int>(i);
    if (name == "time" || name == "dt" || name == "at" || name == "start") c.time = at;
    if (name == "dry_bulb_c") c.celsius = at;
    if (name == "tempf") c.fahrenheit = at;
    if (name == "wet_bulb_c") c.wet_bulb = at;
    if (name == "relative_humidity_fraction") c.humidity = at;
  }
  if (c.time < 0 || (c.celsius < 0 && c.fahrenheit < 0)) {
    return fail(ErrorCode::input, "the weather's header names no time or no temperature", "line 1",
                "name the columns time, dry_bulb_c and, where known, wet_bulb_c or relative_humidity_fraction");
  }
  return c;
}

Result<WeatherSample> read_row(const CsvRow& row, const Columns& c) {
  const auto cell = [&row](int column) { return row.cells[static_cast<std::size_t>(column)]; };
  WeatherSample sample;
  FLYBALL_ASSIGN(sample.at, parse_stamp(cell(c.time)));
  FLYBALL_ASSIGN(const double air, parse_double(trim(cell(c.celsius >= 0 ? c.celsius : c.fahrenheit))));
  sample.dry_bulb = Celsius(c.celsius >= 0 ? air : (air - 32) / 1.8);
  if (c.wet_bulb >= 0) {
    FLYBALL_ASSIGN(const double wet, parse_double(trim(cell(c.wet_bulb))));
    sample.wet_bulb = Celsius(wet);
    return sample;
  }
  double humidity = usual_humidity(sample.at);
  if (c.humidity >= 0) {
    FLYBALL_ASSIGN(humidity, parse_double(trim(cell(c.humidity))));
  }
  sample.wet_bulb = wet_bulb_of(sample.dry_bulb, humidity);
  return sample;
}

}  // namespace

Celsius wet_bulb_of(Celsius dry_bulb, double relative_humidity_fraction) {
  const double t = dry_bulb.value(), rh = 100 * std::clamp(relative_humidity_fraction, 0.05, 0.99);
  return Celsius(std::min(t, t * std::atan(0.151977 * std::sqrt(rh + 8.313659)) + std::atan(t + rh) -
                                 std::atan(rh - 1.676331) + 0.00391838 * std::pow(rh, 1.5) * std::atan(0.023101 * rh) -
                                 4.686035));
}

std::vector<WeatherSample> synthetic_weather(std::uint64_t seed, WallTime start, Seconds length) {
  Random random = Random(seed).fork(101);
  Wander front(kFront, kFrontTime, kHour, random), gust(kGust, kGustTime, kHour, random),
      humidity(kHumiditySd, kFrontTime, kHour, random);
  std::vector<WeatherSample> weather;
  for (double t = 0; t <= length.value() + kHour; t += kHour) {
    const WallTime at = start + Seconds(t);
    const double air = kMean - kYearly * wave(at, kYear, kColdestDay) + kDaily * wave(at, kDay, kWarmestHour) +
                       front.next(random) + gust.next(random);
    const double damp = std::clamp(usual_humidity(at) + humidity.next(random), 0.2, 0.98);
    weather.push_back({at, Celsius(air), wet_bulb_of(Celsius(air), damp)});
  }
  return weather;
}

Result<std::vector<WeatherSample>> read_weather(ByteSource& source) {
  CsvReader reader(source);
  CsvRow row;
  FLYBALL_ASSIGN(const bool any, reader.next(row));
  if (!any) return fail(ErrorCode::input, "the weather has no header", "line 1");
  FLYBALL_ASSIGN(const Columns columns, find_columns(row));
  const std::size_t cells = row.cells.size();
  std::vector<WeatherSample> weather;
  while (true) {
    FLYBALL_ASSIGN(const bool more, reader.next(row));
    if (!more) break;
    if (!row.defect.empty() || row.cells.size() != cells) {
      return fail(ErrorCode::input, "a row that is not as the header says", "line " + std::to_string(row.line));
    }
    auto sample = read_row(row, columns);
    if (!sample) {
      sample.error().where = "line " + std::to_string(row.line);
      return fail(sample.error());
    }
    if (!weather.empty() && sample->at < weather.back().at) {
      return fail(ErrorCode::input, "the weather's times fall", "line " + std::to_string(row.line));
    }
    weather.push_back(*sample);
  }
  if (weather.empty()) return fail(ErrorCode::input, "the weather has no rows");
  return weather;
}

std::vector<WeatherSample> shift_weather(std::vector<WeatherSample> weather, WallTime from, WallTime start) {
  for (WeatherSample& sample : weather) sample.at = sample.at + (start - from);
  return weather;
}

WeatherCursor::WeatherCursor(std::vector<WeatherSample> weather) : weather_(std::move(weather)) {}

WeatherSample WeatherCursor::at(WallTime time) {
  while (next_ < weather_.size() && weather_[next_].at <= time) ++next_;
  if (next_ == 0) return {time, weather_.front().dry_bulb, weather_.front().wet_bulb};
  const WeatherSample& before = weather_[next_ - 1];
  if (next_ == weather_.size()) return {time, before.dry_bulb, before.wet_bulb};
  const WeatherSample& after = weather_[next_];
  const double share = (time - before.at) / (after.at - before.at);
  return {time, before.dry_bulb + (after.dry_bulb - before.dry_bulb) * share,
          before.wet_bulb + (after.wet_bulb - before.wet_bulb) * share};
}

}  // namespace flyball::twin
