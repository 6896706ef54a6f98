#include "cli/calibrate_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/config.h"
#include "cli/app.h"

namespace flyball::cli {
namespace {

/// A refrigeration ton: 12,000 BTU (international table) an hour.
constexpr double kWattsPerTon = 3516.852842;

constexpr std::array<ConfigKey, 14> kKeys = {{
    {"zone", ConfigType::text, "", 0, 0, "IANA zone of stamps that carry none; not given: UTC", ""},
    {"plant.time", ConfigType::text, "", 0, 0, "column of the stamps", ""},
    {"plant.load", ConfigType::text, "", 0, 0, "column of the load carried: cooling load or IT power", ""},
    {"plant.load_unit", ConfigType::text, "kW", 0, 0, "W, kW, MW or RT (refrigeration tons)", ""},
    {"plant.least_load", ConfigType::number, "0", 0, 1e12, "in the load's unit: hours below count apart, as idle", ""},
    {"plant.power", ConfigType::text, "", 0, 0, "column of the power drawn, which is to be foretold", ""},
    {"plant.power_unit", ConfigType::text, "kW", 0, 0, "W, kW, MW or RT", ""},
    {"plant.units", ConfigType::texts, "", 0, 0, "columns that say which units run (1) or not (0)", ""},
    {"weather.time", ConfigType::text, "", 0, 0, "column of the stamps", ""},
    {"weather.wet_bulb", ConfigType::text, "", 0, 0, "column of the wet bulb temperature", ""},
    {"weather.dry_bulb", ConfigType::text, "", 0, 0, "column of the air temperature, where there is no wet bulb", ""},
    {"weather.humidity", ConfigType::text, "", 0, 0, "column of the relative humidity in percent, beside it", ""},
    {"weather.unit", ConfigType::text, "C", 0, 0, "C or F", ""},
    {"name", ConfigType::text, "", 0, 0, "of the plant, for the report", ""},
}};

Result<Watts> power_unit(const std::string& text, const std::string& where) {
  static constexpr std::array<std::pair<std::string_view, double>, 4> kUnits = {
      {{"W", 1.0}, {"kW", 1e3}, {"MW", 1e6}, {"RT", kWattsPerTon}}};
  for (const auto& [name, watts] : kUnits)
    if (text == name) return Watts(watts);
  return fail(ErrorCode::input, fmt::format("'{}' is no unit of power", text), where, "write W, kW, MW or RT");
}

}  // namespace

Result<PlantMap> read_plant_map(const std::string& path, Filesystem& files) {
  FLYBALL_ASSIGN(const std::string text, read_input(files, path, kLargestConfig));
  const auto config = Config::parse(text, path, kKeys);
  if (!config) return fail_all(config.error());
  PlantMap map;
  const auto get = [&](std::string_view key) { return config->text(key).value_or(""); };
  map.format = get("name").empty() ? path : get("name");
  map.zone = get("zone");
  map.time = get("plant.time");
  map.load = get("plant.load");
  map.power = get("plant.power");
  map.units = config->texts("plant.units");
  map.weather_time = get("weather.time");
  map.wet_bulb = get("weather.wet_bulb");
  map.dry_bulb = get("weather.dry_bulb");
  map.humidity = get("weather.humidity");
  FLYBALL_ASSIGN(map.load_unit, power_unit(get("plant.load_unit"), config->where("plant.load_unit")));
  FLYBALL_ASSIGN(map.power_unit, power_unit(get("plant.power_unit"), config->where("plant.power_unit")));
  map.least_load = map.load_unit * config->number("plant.least_load").value_or(0);
  const std::string degrees = get("weather.unit");
  if (degrees != "C" && degrees != "F")
    return fail(ErrorCode::input, fmt::format("'{}' is no unit of temperature", degrees), config->where("weather.unit"),
                "write C or F");
  map.fahrenheit = degrees == "F";
  for (const auto& [value, key] : {std::pair(map.time, "plant.time"), std::pair(map.load, "plant.load"),
                                   std::pair(map.power, "plant.power"), std::pair(map.weather_time, "weather.time")})
    if (value.empty())
      return fail(ErrorCode::input, fmt::format("the map does not say {}", key), path,
                  fmt::format("add {} = \"name of the column\"", key));
  if (map.wet_bulb.empty() && (map.dry_bulb.empty() || map.humidity.empty()))
    return fail(ErrorCode::input, "the map says neither weather.wet_bulb nor weather.dry_bulb with weather.humidity",
                path, "add one of the two");
  return map;
}

Result<PlantMap> known_plant_map(const std::string& path) {
  FLYBALL_ASSIGN(const std::vector<std::string> header, read_header(path));
  const auto has = [&](std::string_view name) { return std::find(header.begin(), header.end(), name) != header.end(); };
  PlantMap map;
  if (has("Time") && has("RT") && has("kW_Tot")) {
    map.format = "cooling_plant";
    map.time = "Time";
    map.load = "RT";
    map.load_unit = Watts(kWattsPerTon);
    map.least_load = map.load_unit * 30;
    map.power = "kW_Tot";
    map.power_unit = Watts(1000);
    for (const char* unit : {"CH1", "CH2", "CH3", "CH4"})
      if (has(unit)) map.units.emplace_back(unit);
    map.weather_time = "DateTime";
    map.wet_bulb = "WBT_C";
    return map;
  }
  std::string names;
  for (const std::string& name : header) names += (names.empty() ? "" : ", ") + name;
  return fail(ErrorCode::input, "no known format has the columns " + names, path + ":1",
              "name the columns in a map, --map FILE (flyball calibrate fit --help)");
}

bool is_meter_file(const std::vector<std::string>& header) {
  return header == std::vector<std::string>{"start", "value"};
}

}  // namespace flyball::cli
