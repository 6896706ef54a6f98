#include <fmt/format.h>

#include <algorithm>

#include "cli/calibrate.h"
#include "facility/weather.h"

namespace flyball::cli {
namespace {

// What no meter of its kind shows.
constexpr double kMostWatts = 1e10;
constexpr double kColdest = -60, kHottest = 60;

}  // namespace

void tell(const Table& table, const std::string& path, std::vector<std::string>& warnings) {
  const std::uint64_t left_out = table.no_value + table.impossible + table.repeated + table.unsure_stamps;
  if (left_out > 0) {
    std::string text = fmt::format(
        "{}: {} rows are left out: {} without a value, {} with an impossible one, {} with a time that was "
        "already there, {} with a local time that names no one instant",
        path, left_out, table.no_value, table.impossible, table.repeated, table.unsure_stamps);
    for (const std::string& row : table.left_out) text += "; " + row;
    warnings.push_back(std::move(text));
  }
  if (table.zone_assumed)
    warnings.emplace_back("the stamps carry no zone and were read as UTC; a map can name it (zone)");
}

Result<facility::Weather> read_weather(const std::vector<std::string>& files, const StampRule& stamp,
                                       const std::vector<std::string>& columns, bool fahrenheit,
                                       std::vector<std::string>& warnings) {
  std::vector<facility::WeatherPoint> points;
  const auto shown = [&](double celsius) { return fahrenheit ? celsius * 1.8 + 32 : celsius; };
  std::vector<WantedColumn> wanted = {{columns[0], shown(kColdest), shown(kHottest)}};
  if (columns.size() > 1) wanted.push_back({columns[1], 0, 100});
  for (const std::string& file : files) {
    FLYBALL_ASSIGN(const Table table, read_table(file, stamp, wanted));
    tell(table, file, warnings);
    for (const TableRow& row : table.rows) {
      const Celsius air(fahrenheit ? (row.values[0] - 32) / 1.8 : row.values[0]);
      points.push_back({row.at, columns.size() > 1 ? facility::wet_bulb(air, row.values[1] / 100) : air});
    }
  }
  return facility::Weather(std::move(points));
}

std::string coverage_of(const std::vector<std::string>& files, const facility::Weather& weather) {
  std::string names;
  for (const std::string& file : files) names += (names.empty() ? "" : ", ") + file;
  const char* verb = files.size() == 1 ? "covers" : "cover";
  if (weather.size() == 0) return fmt::format("{} {} nothing", names, verb);
  return fmt::format("{} {} {} to {}", names, verb, format_rfc3339(weather.points().front().at),
                     format_rfc3339(weather.points().back().at));
}

Result<PlantInput> read_plant(const std::string& path, const PlantMap& map, const std::vector<std::string>& weather) {
  if (map.units.size() > facility::kMostUnits)
    return fail(ErrorCode::input,
                fmt::format("{} units; at most {} are told apart", map.units.size(), facility::kMostUnits), map.format,
                "name fewer in plant.units");
  PlantInput input;
  std::vector<std::string> columns = {map.wet_bulb};
  if (map.wet_bulb.empty()) columns = {map.dry_bulb, map.humidity};
  FLYBALL_ASSIGN(const facility::Weather air, read_weather(weather, {map.weather_time, map.zone, Fold::earlier},
                                                           columns, map.fahrenheit, input.warnings));
  input.weather_covers = coverage_of(weather, air);
  std::vector<WantedColumn> wanted = {
      {map.load, -0.05 * kMostWatts / map.load_unit.value(), kMostWatts / map.load_unit.value()},
      {map.power, 0, kMostWatts / map.power_unit.value()}};
  for (const std::string& unit : map.units) wanted.push_back({unit, 0, 1e6});
  FLYBALL_ASSIGN(const Table table, read_table(path, {map.time, map.zone, Fold::earlier}, wanted));
  tell(table, path, input.warnings);
  input.rows_left_out = table.no_value + table.impossible + table.repeated + table.unsure_stamps;
  for (const TableRow& row : table.rows) {
    facility::PlantSample sample{row.at, row.values[0] * map.load_unit, row.values[1] * map.power_unit, 0,
                                 air.felt(row.at)};
    constexpr double kOn = 0.5;
    for (std::size_t i = 0; i < map.units.size(); ++i)
      if (row.values[2 + i] > kOn) sample.units_on |= 1U << i;
    // A load without a running unit is carried by one that is not named.
    if (sample.units_on == 0 && sample.load > Watts(0)) sample.units_on = 1;
    input.samples.push_back(sample);
  }
  if (input.samples.empty()) return fail(ErrorCode::input, "the file has no usable rows", path);
  return input;
}

}  // namespace flyball::cli
