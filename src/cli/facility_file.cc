#include "cli/facility_file.h"

#include <fmt/format.h>

#include <array>
#include <variant>

#include "base/byte_source.h"
#include "cli/calibrate_map.h"
#include "cli/calibrate_table.h"

namespace flyball::cli {
namespace {

struct Unit {
  std::string_view name;
  std::string_view base;  ///< how names of columns in that unit end
  double scale, offset;
};
constexpr std::array<Unit, 9> kUnits = {{{"W", "_w", 1, 0},
                                         {"kW", "_w", 1e3, 0},
                                         {"MW", "_w", 1e6, 0},
                                         {"C", "_c", 1, 0},
                                         {"F", "_c", 1 / 1.8, -32 / 1.8},
                                         {"Hz", "_hz", 1, 0},
                                         {"MHz", "_hz", 1e6, 0},
                                         {"fraction", "_fraction", 1, 0},
                                         {"percent", "_fraction", 0.01, 0}}};

}  // namespace

const char* const kFacilityMapHelp =
    "Columns: time, utility_w, generated_w, discharged_w, ups_in_w, ups_out_w, on_battery, voltage_v, it_w,\n"
    "chillers_w, pumps_w, fans_w, chillers_on, fan_speed_fraction, pump_speed_fraction, supply_c, set_point_c,\n"
    "back_c, dry_bulb_c, wet_bulb_c, gpu_power_w, gpu_clock_hz, gpu_temperature_c, gpu_throttled_fraction,\n"
    "ecc_errors, link_errors, software, rack1_w, rack1_inlet_c …, job1_type, job1_phase, job1_gpus_fraction,\n"
    "job1_tokens_per_s, job1_utilisation_fraction, job1_loss …; any of them may be missing.\n"
    "Cells are separated by commas, semicolons (decimal commas are read then) or tabs.\n"
    "A map names those of any other file, each by its name or as \"#3\"; one map serves fit, explain and watch:\n"
    "  zone = \"Europe/Berlin\"             # of stamps without offset; without it they are read as UTC\n"
    "  columns.time = \"stamp\"\n"
    "  columns.it_w = \"IT load\"\n"
    "  units.it_w = \"kW\"                 # W, kW, MW; C, F; Hz, MHz; fraction, percent";

Result<series::FacilityMap> facility_columns_of(const Config& config) {
  series::FacilityMap map;
  map.zone = config.text("zone").value_or("");
  for (const std::string& name : config.names("columns")) {
    const std::string key = "columns." + name;
    if (name != series::kTimeColumn && !series::find_facility_field(name))
      return fail(ErrorCode::input, fmt::format("'{}' is no column of a building", name), config.where(key),
                  "flyball calibrate explain --help lists them");
    series::FacilityMap::Column column{config.text(key).value_or(""), 1, 0};
    const std::string unit_key = "units." + name;
    if (const auto unit = config.text(unit_key)) {
      const Unit* found = nullptr;
      for (const Unit& each : kUnits)
        if (each.name == *unit && name.ends_with(each.base)) found = &each;
      if (found == nullptr)
        return fail(ErrorCode::input, fmt::format("'{}' is no unit of '{}'", *unit, name), config.where(unit_key),
                    "use W, kW, MW, C, F, Hz, MHz, fraction or percent as the column's name says");
      column.scale = found->scale;
      column.offset = found->offset;
    }
    map.columns[name] = column;
  }
  for (const std::string& name : config.names("units"))
    if (!map.columns.contains(name))
      return fail(ErrorCode::input, fmt::format("the map has a unit of '{}', but no column", name),
                  config.where("units." + name), fmt::format("add columns.{} = \"name of the column\"", name));
  return map;
}

Result<series::FacilityMap> read_facility_map(const std::string& path, Filesystem& files) {
  FLYBALL_ASSIGN(const AnyMap map, read_map(path, files));
  const auto* const building = std::get_if<FacilityMap>(&map);
  if (building == nullptr)
    return fail(ErrorCode::input, "the map is of a plant or a meter, not of a building", path,
                "columns.time = \"stamp\" and at least one more");
  return building->table;
}

Result<> read_facility_file(const std::string& path, const series::FacilityMap& map, series::RowOrder order,
                            std::vector<std::string>& warnings, const std::function<void(FacilitySample)>& each) {
  const auto open = [&] { return open_bytes(path); };
  FLYBALL_ASSIGN(const series::FacilityTableCounts counts,
                 series::read_facility(open, separator_of(path), map, path, each, order));
  if (counts.rows == 0) return fail(ErrorCode::input, "the file has no usable rows", path);
  if (const std::string text = series::to_text(counts); !text.empty())
    warnings.push_back(fmt::format("{}: {}", path, text));
  if (counts.zone_assumed)
    warnings.push_back(path + ": the stamps carry no zone and were read as UTC; a map can name it (zone)");
  return {};
}

}  // namespace flyball::cli
