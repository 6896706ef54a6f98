#include "cli/calibrate_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "base/config.h"
#include "cli/app.h"
#include "cli/facility_file.h"

namespace flyball::cli {
namespace {

/// A refrigeration ton: 12,000 BTU (international table) an hour.
constexpr double kWattsPerTon = 3516.852842;

constexpr std::array<ConfigKey, 25> kKeys = {{
    {"zone", ConfigType::text, "", 0, 0, "IANA zone of stamps that carry none; not given: UTC", ""},
    {"plant.time", ConfigType::text, "", 0, 0, "column of the stamps", ""},
    {"plant.load", ConfigType::text, "", 0, 0, "column of the load carried: cooling load or IT power", ""},
    {"plant.load_unit", ConfigType::text, "kW", 0, 0, "W, kW, MW or RT (refrigeration tons)", ""},
    {"plant.least_load", ConfigType::number, "0", 0, 1e12, "in the load's unit: hours below count apart, as idle", ""},
    {"plant.power", ConfigType::text, "", 0, 0, "column of the power drawn, which is to be foretold", ""},
    {"plant.power_unit", ConfigType::text, "kW", 0, 0, "W, kW, MW or RT", ""},
    {"plant.units", ConfigType::texts, "", 0, 0, "columns that say which units run (1) or not (0)", ""},
    {"meter.start", ConfigType::text, "", 0, 0, "column of the stamps at which an interval begins", ""},
    {"meter.energy", ConfigType::text, "", 0, 0, "column of the energy from that stamp to the next", ""},
    {"meter.unit", ConfigType::text, "kWh", 0, 0, "J, MJ, Wh, kWh or MWh", ""},
    {"weather.time", ConfigType::text, "", 0, 0, "column of the stamps", ""},
    {"weather.wet_bulb", ConfigType::text, "", 0, 0, "column of the wet bulb temperature", ""},
    {"weather.dry_bulb", ConfigType::text, "", 0, 0, "column of the air temperature, where there is no wet bulb", ""},
    {"weather.humidity", ConfigType::text, "", 0, 0, "column of the relative humidity in percent, beside it", ""},
    {"weather.unit", ConfigType::text, "C", 0, 0, "C or F", ""},
    {"name", ConfigType::text, "", 0, 0, "of the plant or building, for the report", ""},
    {"columns.*", ConfigType::text, "", 0, 0, "the column that is this one of a building's", ""},
    {"units.*", ConfigType::text, "", 0, 0, "its unit: W, kW, MW, C, F, Hz, MHz, fraction, percent", ""},
    {"means", ConfigType::flag, "true", 0, 0, "a building's powers are means since the row before, not values", ""},
    {"job", ConfigType::text, "", 0, 0, "type of the building's job, where no column says it", ""},
    {"phases.start", ConfigType::text, "start", 0, 0, "column of --phases: when a phase begins", ""},
    {"phases.stop", ConfigType::text, "stop", 0, 0, "column: when it ends", ""},
    {"phases.label", ConfigType::text, "label", 0, 0, "column: which it is", ""},
    {"phases.job_type", ConfigType::text, "", 0, 0, "column: of which type of job", ""},
}};

Result<Watts> power_unit(const std::string& text, const std::string& where) {
  static constexpr std::array<std::pair<std::string_view, double>, 4> kUnits = {
      {{"W", 1.0}, {"kW", 1e3}, {"MW", 1e6}, {"RT", kWattsPerTon}}};
  for (const auto& [name, watts] : kUnits)
    if (text == name) return Watts(watts);
  return fail(ErrorCode::input, fmt::format("'{}' is no unit of power", text), where, "write W, kW, MW or RT");
}

Result<Joules> energy_unit(const std::string& text, const std::string& where) {
  static constexpr std::array<std::pair<std::string_view, double>, 5> kUnits = {
      {{"J", 1.0}, {"MJ", 1e6}, {"Wh", 3.6e3}, {"kWh", 3.6e6}, {"MWh", 3.6e9}}};
  for (const auto& [name, joules] : kUnits)
    if (text == name) return Joules(joules);
  return fail(ErrorCode::input, fmt::format("'{}' is no unit of energy", text), where, "write J, MJ, Wh, kWh or MWh");
}

Result<bool> in_fahrenheit(const Config& config, std::string_view key) {
  const std::string degrees = config.text(key).value_or("");
  if (degrees == "C" || degrees == "F") return degrees == "F";
  return fail(ErrorCode::input, fmt::format("'{}' is no unit of temperature", degrees), config.where(key),
              "write C or F");
}

Result<> all_said(std::initializer_list<std::pair<std::string, const char*>> keys, const std::string& path) {
  for (const auto& [value, key] : keys)
    if (value.empty())
      return fail(ErrorCode::input, fmt::format("the map does not say {}", key), path,
                  fmt::format("add {} = \"name of the column\"", key));
  return {};
}

Result<PlantMap> plant_map(const Config& config, const std::string& path) {
  PlantMap map;
  const auto get = [&](std::string_view key) { return config.text(key).value_or(""); };
  map.format = get("name").empty() ? path : get("name");
  map.zone = get("zone");
  map.time = get("plant.time");
  map.load = get("plant.load");
  map.power = get("plant.power");
  map.units = config.texts("plant.units");
  map.weather_time = get("weather.time");
  map.wet_bulb = get("weather.wet_bulb");
  map.dry_bulb = get("weather.dry_bulb");
  map.humidity = get("weather.humidity");
  FLYBALL_ASSIGN(map.load_unit, power_unit(get("plant.load_unit"), config.where("plant.load_unit")));
  FLYBALL_ASSIGN(map.power_unit, power_unit(get("plant.power_unit"), config.where("plant.power_unit")));
  map.least_load = map.load_unit * config.number("plant.least_load").value_or(0);
  FLYBALL_ASSIGN(map.fahrenheit, in_fahrenheit(config, "weather.unit"));
  FLYBALL_TRY(all_said({{map.time, "plant.time"},
                        {map.load, "plant.load"},
                        {map.power, "plant.power"},
                        {map.weather_time, "weather.time"}},
                       path));
  if (map.wet_bulb.empty() && (map.dry_bulb.empty() || map.humidity.empty()))
    return fail(ErrorCode::input, "the map says neither weather.wet_bulb nor weather.dry_bulb with weather.humidity",
                path, "add one of the two");
  return map;
}

Result<MeterMap> meter_map(const Config& config, const std::string& path) {
  MeterMap map;
  const auto get = [&](std::string_view key) { return config.text(key).value_or(""); };
  map.format = get("name").empty() ? path : get("name");
  map.zone = get("zone");
  map.start = get("meter.start");
  map.energy = get("meter.energy");
  map.weather_time = get("weather.time");
  map.dry_bulb = get("weather.dry_bulb");
  FLYBALL_ASSIGN(map.energy_unit, energy_unit(get("meter.unit"), config.where("meter.unit")));
  FLYBALL_ASSIGN(map.fahrenheit, in_fahrenheit(config, "weather.unit"));
  FLYBALL_TRY(all_said({{map.start, "meter.start"},
                        {map.energy, "meter.energy"},
                        {map.weather_time, "weather.time"},
                        {map.dry_bulb, "weather.dry_bulb"}},
                       path));
  return map;
}

Result<FacilityMap> facility_map(const Config& config, const std::string& path) {
  FacilityMap map;
  const auto get = [&](std::string_view key) { return config.text(key).value_or(""); };
  map.format = get("name").empty() ? path : get("name");
  FLYBALL_ASSIGN(map.table, facility_columns_of(config));
  map.job = get("job");
  map.means = config.flag("means").value_or(true);
  map.phase_start = get("phases.start");
  map.phase_stop = get("phases.stop");
  map.phase_label = get("phases.label");
  map.phase_job_type = get("phases.job_type");
  map.weather_time = get("weather.time");
  map.wet_bulb = get("weather.wet_bulb");
  map.dry_bulb = get("weather.dry_bulb");
  map.humidity = get("weather.humidity");
  FLYBALL_ASSIGN(map.fahrenheit, in_fahrenheit(config, "weather.unit"));
  return map;
}

}  // namespace

Result<AnyMap> read_map(const std::string& path, Filesystem& files) {
  FLYBALL_ASSIGN(const std::string text, read_input(files, path, kLargestConfig));
  const auto config = Config::parse(text, path, kKeys);
  if (!config) return fail_all(config.error());
  const bool meter = config->text("meter.start").has_value() || config->text("meter.energy").has_value();
  if (!config->names("columns").empty()) {
    FLYBALL_ASSIGN(FacilityMap map, facility_map(*config, path));
    return map;
  }
  if (meter) {
    FLYBALL_ASSIGN(MeterMap map, meter_map(*config, path));
    return map;
  }
  FLYBALL_ASSIGN(PlantMap map, plant_map(*config, path));
  return map;
}

Result<AnyMap> known_map(const std::string& path) {
  FLYBALL_ASSIGN(const std::vector<std::string> header, read_header(path));
  const auto has = [&](std::string_view name) { return std::find(header.begin(), header.end(), name) != header.end(); };
  if (has("Time") && has("RT") && has("kW_Tot")) {
    PlantMap map;
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
  if (has("time") && has("it_w") && has("utility_w")) {
    FacilityMap map;
    map.format = "facility";
    return map;
  }
  if (header.size() == 2 && has("start") && has("value"))
    return MeterMap{"building_meters", "start", "value", Joules(kJoulesPerKilowattHour), "dt", "tempF", true, {}};
  std::string names;
  for (const std::string& name : header) names += (names.empty() ? "" : ", ") + name;
  return fail(ErrorCode::input, "no known format has the columns " + names, path + ":1",
              "name the columns in a map, --map FILE (flyball calibrate fit --help)");
}

}  // namespace flyball::cli
