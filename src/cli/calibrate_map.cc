#include "cli/calibrate_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "base/config.h"
#include "cli/app.h"

namespace flyball::cli {
namespace {

/// A refrigeration ton: 12,000 BTU (international table) an hour.
constexpr double kWattsPerTon = 3516.852842;

constexpr std::array<ConfigKey, 42> kKeys = {{
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
    {"name", ConfigType::text, "", 0, 0, "of the plant, for the report", ""},
    {"facility.time", ConfigType::text, "", 0, 0, "column of the stamps", ""},
    {"facility.unit", ConfigType::text, "kW", 0, 0, "of all powers: W, kW, MW", ""},
    {"facility.temperature_unit", ConfigType::text, "C", 0, 0, "C or F", ""},
    {"facility.means", ConfigType::flag, "true", 0, 0, "powers are means since the row before, not values", ""},
    {"facility.job", ConfigType::text, "", 0, 0, "type of the job, where no column says it", ""},
    {"facility.job_type", ConfigType::text, "", 0, 0, "column of the type of the job", ""},
    {"facility.phase", ConfigType::text, "", 0, 0, "column of its phase: training, checkpoint, idle …", ""},
    {"facility.it", ConfigType::text, "", 0, 0, "column of the IT's power", ""},
    {"facility.utility", ConfigType::text, "", 0, 0, "column of what comes in from outside", ""},
    {"facility.generated", ConfigType::text, "", 0, 0, "column of what is generated on site", ""},
    {"facility.discharged", ConfigType::text, "", 0, 0, "column of what comes from storage (negative: charging)", ""},
    {"facility.ups_in", ConfigType::text, "", 0, 0, "column of what goes into all UPS", ""},
    {"facility.ups_out", ConfigType::text, "", 0, 0, "column of what comes out of them", ""},
    {"facility.on_battery", ConfigType::text, "", 0, 0, "column that says whether they feed from batteries (1)", ""},
    {"facility.chillers", ConfigType::text, "", 0, 0, "column of the compressors' power", ""},
    {"facility.pumps", ConfigType::text, "", 0, 0, "column of the pumps' power", ""},
    {"facility.fans", ConfigType::text, "", 0, 0, "column of the fans' power", ""},
    {"facility.chillers_on", ConfigType::text, "", 0, 0, "column of how many chillers run", ""},
    {"facility.set_point", ConfigType::text, "", 0, 0, "column of the cold side's set point", ""},
    {"facility.wet_bulb", ConfigType::text, "", 0, 0, "column of the outdoor wet bulb", ""},
    {"facility.dry_bulb", ConfigType::text, "", 0, 0, "column of the outdoor air temperature", ""},
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

/// Keys whose column is that of a sample, by the column's name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kFacilityColumns = {{
    {"facility.it", "it_w"},
    {"facility.utility", "utility_w"},
    {"facility.generated", "generated_w"},
    {"facility.discharged", "discharged_w"},
    {"facility.ups_in", "ups_in_w"},
    {"facility.ups_out", "ups_out_w"},
    {"facility.on_battery", "on_battery"},
    {"facility.chillers", "chillers_w"},
    {"facility.pumps", "pumps_w"},
    {"facility.fans", "fans_w"},
    {"facility.chillers_on", "chillers_on"},
    {"facility.set_point", "set_point_c"},
    {"facility.wet_bulb", "wet_bulb_c"},
}};

Result<FacilityMap> facility_map(const Config& config, const std::string& path) {
  FacilityMap map;
  const auto get = [&](std::string_view key) { return config.text(key).value_or(""); };
  map.format = get("name").empty() ? path : get("name");
  map.zone = get("zone");
  map.time = get("facility.time");
  map.phase = get("facility.phase");
  map.job_type = get("facility.job_type");
  map.job = get("facility.job");
  map.means = config.flag("facility.means").value_or(true);
  map.phase_start = get("phases.start");
  map.phase_stop = get("phases.stop");
  map.phase_label = get("phases.label");
  map.phase_job_type = get("phases.job_type");
  map.weather_time = get("weather.time");
  map.wet_bulb = get("weather.wet_bulb");
  map.dry_bulb = get("weather.dry_bulb");
  map.humidity = get("weather.humidity");
  FLYBALL_ASSIGN(map.fahrenheit, in_fahrenheit(config, "weather.unit"));
  FLYBALL_ASSIGN(const bool fahrenheit, in_fahrenheit(config, "facility.temperature_unit"));
  FLYBALL_ASSIGN(const Watts unit, power_unit(get("facility.unit"), config.where("facility.unit")));
  FLYBALL_TRY(all_said(
      {{map.time, "facility.time"}, {get("facility.it"), "facility.it"}, {get("facility.utility"), "facility.utility"}},
      path));
  const auto add = [&](std::string_view key, std::string_view column) {
    if (get(key).empty()) return;
    FacilityMap::Column made{find_facility_column(column), get(key), 1, 0};
    if (made.what->unit == "W") made.unit = unit.value();
    if (made.what->unit == "C" && fahrenheit) made.unit = 1 / 1.8, made.offset = 32;
    map.columns.push_back(std::move(made));
  };
  for (const auto& [key, column] : kFacilityColumns) add(key, column);
  add("facility.dry_bulb", "dry_bulb_c");
  return map;
}

/// Columns of a file that names them as a sample does.
FacilityMap own_format(const std::vector<std::string>& header) {
  FacilityMap map;
  map.format = "facility";
  map.time = "time";
  for (const std::string& name : header) {
    if (const FacilityColumn* column = find_facility_column(name); column != nullptr)
      map.columns.push_back({column, name, 1, 0});
    if (name == fmt::format("job{}_type", map.jobs + 1)) ++map.jobs;
    if (name == "phase") map.phase = name;
    if (name == "job_type") map.job_type = name;
  }
  map.weather_time = "time";
  map.wet_bulb = "wet_bulb_c";
  return map;
}

}  // namespace

Result<AnyMap> read_map(const std::string& path, Filesystem& files) {
  FLYBALL_ASSIGN(const std::string text, read_input(files, path, kLargestConfig));
  const auto config = Config::parse(text, path, kKeys);
  if (!config) return fail_all(config.error());
  const bool meter = config->text("meter.start").has_value() || config->text("meter.energy").has_value();
  if (config->text("facility.it").has_value() || config->text("facility.utility").has_value()) {
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
  if (has("time") && has("it_w") && has("utility_w")) return own_format(header);
  if (header.size() == 2 && has("start") && has("value"))
    return MeterMap{"building_meters", "start", "value", Joules(kJoulesPerKilowattHour), "dt", "tempF", true, {}};
  std::string names;
  for (const std::string& name : header) names += (names.empty() ? "" : ", ") + name;
  return fail(ErrorCode::input, "no known format has the columns " + names, path + ":1",
              "name the columns in a map, --map FILE (flyball calibrate fit --help)");
}

}  // namespace flyball::cli
