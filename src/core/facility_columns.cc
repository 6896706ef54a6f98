#include "core/facility_columns.h"

#include <algorithm>
#include <type_traits>

namespace flyball {

namespace {

using Sample = FacilitySample;

template <auto Field>
std::optional<double> get(const Sample& sample) {
  const auto& field = sample.*Field;
  if (!field) return {};
  if constexpr (requires { field->value(); }) {
    return field->value();
  } else {
    return static_cast<double>(*field);
  }
}

template <auto Field>
void set(Sample& sample, std::optional<double> value) {
  auto& field = sample.*Field;
  using T = typename std::remove_reference_t<decltype(field)>::value_type;
  if (!value) {
    field.reset();
  } else if constexpr (std::is_same_v<T, bool>) {
    field = *value != 0;
  } else {
    field = T(*value);
  }
}

template <auto Field>
constexpr FacilityColumn column(std::string_view name, std::string_view unit) {
  return {name, unit, &get<Field>, &set<Field>};
}

constexpr FacilityColumn kColumns[] = {
    column<&Sample::utility>("utility_w", "W"),
    column<&Sample::generated>("generated_w", "W"),
    column<&Sample::discharged>("discharged_w", "W"),
    column<&Sample::ups_in>("ups_in_w", "W"),
    column<&Sample::ups_out>("ups_out_w", "W"),
    column<&Sample::on_battery>("on_battery", "1"),
    column<&Sample::voltage>("voltage_v", "V"),
    column<&Sample::it>("it_w", "W"),
    column<&Sample::chillers>("chillers_w", "W"),
    column<&Sample::pumps>("pumps_w", "W"),
    column<&Sample::fans>("fans_w", "W"),
    column<&Sample::chillers_on>("chillers_on", "1"),
    column<&Sample::fan_speed_fraction>("fan_speed_fraction", "1"),
    column<&Sample::pump_speed_fraction>("pump_speed_fraction", "1"),
    column<&Sample::supply>("supply_c", "C"),
    column<&Sample::set_point>("set_point_c", "C"),
    column<&Sample::back>("back_c", "C"),
    column<&Sample::dry_bulb>("dry_bulb_c", "C"),
    column<&Sample::wet_bulb>("wet_bulb_c", "C"),
    column<&Sample::gpu_power>("gpu_power_w", "W"),
    column<&Sample::gpu_clock>("gpu_clock_hz", "Hz"),
    column<&Sample::gpu_temperature>("gpu_temperature_c", "C"),
    column<&Sample::gpu_throttled_fraction>("gpu_throttled_fraction", "1"),
    column<&Sample::ecc_errors>("ecc_errors", "1"),
    column<&Sample::link_errors>("link_errors", "1"),
};

}  // namespace

std::span<const FacilityColumn> facility_columns() { return kColumns; }

const FacilityColumn* find_facility_column(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kColumns), std::end(kColumns), [name](const auto& each) { return each.name == name; });
  return found == std::end(kColumns) ? nullptr : found;
}

}  // namespace flyball
