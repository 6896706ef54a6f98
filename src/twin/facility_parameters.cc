#include "twin/facility_parameters.h"

#include <fmt/format.h>

#include <type_traits>

#include "base/text.h"
#include "twin/facility_keys.h"
#include "twin/parameter_text.h"

namespace flyball::twin {

namespace {

constexpr std::string_view kPrefix = "facility.";

}  // namespace

std::vector<ParameterInfo> list_parameters(const FacilityParameters& parameters) {
  std::vector<ParameterInfo> all;
  visit_facility(parameters, [&all](const char* key, const auto& value, const char* source, double, double) {
    all.push_back({key, show(value), source});
  });
  return all;
}

Result<> set_parameter(FacilityParameters& parameters, std::string_view name, std::string_view text) {
  const std::string key = (name.starts_with(kPrefix) ? "" : std::string(kPrefix)) + std::string(name);
  bool known = false;
  Result<> done;
  visit_facility(parameters, [&](std::string_view each, auto& field, const char*, double, double) {
    if (each != key) return;
    known = true;
    done = read(trim(text), field);
  });
  if (!known) {
    std::string names;
    for (const ParameterInfo& each : list_parameters(parameters)) names += each.key + ' ';
    names.pop_back();
    return fail(ErrorCode::input, fmt::format("there is no parameter '{}'", name.substr(0, 60)), {},
                "use one of: " + names);
  }
  if (!done) done.error().where = key;
  return done;
}

Result<> check(const FacilityParameters& parameters) {
  Complaints c;
  visit_facility(parameters, [&c](const char* key, const auto& value, const char*, double low, double high) {
    using T = std::remove_cvref_t<decltype(value)>;
    if constexpr (!std::is_same_v<T, bool>) c.between(key, value, static_cast<T>(low), static_cast<T>(high));
  });
  const CoolingParameters& cooling = parameters.cooling;
  c.between("facility.cooling.stage_down_fraction", cooling.stage_down_fraction, 0.1, cooling.stage_up_fraction - 0.05);
  c.between<std::uint64_t>("facility racks", parameters.racks(), 1, 4096);
  return c.result();
}

}  // namespace flyball::twin
