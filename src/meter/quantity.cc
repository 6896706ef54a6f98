#include "meter/quantity.h"

#include <fmt/format.h>

#include <array>

#include "base/units.h"

namespace flyball::meter {
namespace {

using enum Quantity;

struct QuantityRow {
  Quantity quantity;
  std::string_view name;
  std::string_view unit;
  Range range;
};

// Widest of what is sold: a site draws less than 10 GW, no bus bar carries more than 100 kA, no supply meter sees more
// than 1 MV, air is within -60 and 150 °C, and fans turn slower than 60,000 times a minute.
constexpr std::array<QuantityRow, 13> kQuantities = {{
    {power, "power", "W", {-1e10, 1e10}},
    {apparent_power, "apparent_power", "VA", {0, 1e10}},
    {energy, "energy", "J", {0, 1e18}},
    {voltage, "voltage", "V", {-1e6, 1e6}},
    {current, "current", "A", {-1e5, 1e5}},
    {power_factor, "power_factor", "", {-1, 1}},
    {frequency, "frequency", "Hz", {0, 1e3}},
    {temperature, "temperature", "°C", {-60, 150}},
    {humidity, "humidity", "", {0, 1}},
    {flow, "flow", "m3/s", {-1e3, 1e3}},
    {pressure, "pressure", "Pa", {-1e6, 1e8}},
    {speed, "speed", "1/s", {0, 1e3}},
    {state, "state", "", {-1e18, 1e18}},
}};

const QuantityRow& row_of(Quantity quantity) { return kQuantities[static_cast<std::size_t>(quantity)]; }

struct UnitRow {
  Quantity quantity;
  std::string_view name;
  double factor;
  double shift = 0;
};

constexpr double kPercent = 0.01;
constexpr double kPerMinute = 1.0 / 60;
constexpr double kPerHour = 1.0 / 3600;

constexpr UnitRow kUnits[] = {
    {power, "mW", 1e-3},
    {power, "dW", 0.1},
    {power, "W", 1},
    {power, "kW", 1e3},
    {power, "MW", 1e6},
    {apparent_power, "mVA", 1e-3},
    {apparent_power, "VA", 1},
    {apparent_power, "kVA", 1e3},
    {apparent_power, "MVA", 1e6},
    {energy, "uJ", 1e-6},
    {energy, "mJ", 1e-3},
    {energy, "J", 1},
    {energy, "kJ", 1e3},
    {energy, "MJ", 1e6},
    {energy, "Wh", kJoulesPerWattHour},
    {energy, "kWh", kJoulesPerKilowattHour},
    {energy, "MWh", 1e3 * kJoulesPerKilowattHour},
    {voltage, "mV", 1e-3},
    {voltage, "dV", 0.1},
    {voltage, "V", 1},
    {voltage, "kV", 1e3},
    {current, "mA", 1e-3},
    {current, "cA", 0.01},
    {current, "dA", 0.1},
    {current, "A", 1},
    {current, "kA", 1e3},
    {power_factor, "", 1},
    {power_factor, "%", kPercent},
    {frequency, "mHz", 1e-3},
    {frequency, "dHz", 0.1},
    {frequency, "Hz", 1},
    {temperature, "degC", 1},
    {temperature, "ddegC", 0.1},
    {temperature, "degF", 5.0 / 9, -32 * 5.0 / 9},
    {temperature, "K", 1, -273.15},
    {humidity, "", 1},
    {humidity, "%", kPercent},
    {flow, "m3/s", 1},
    {flow, "m3/h", kPerHour},
    {flow, "l/s", 1e-3},
    {flow, "l/min", 1e-3 * kPerMinute},
    {flow, "gpm", 6.30901964e-5},  // US gallon, 231 cubic inches
    {pressure, "Pa", 1},
    {pressure, "hPa", 100},
    {pressure, "kPa", 1e3},
    {pressure, "bar", 1e5},
    {pressure, "mbar", 100},
    {pressure, "psi", 6894.757293168},
    {speed, "1/s", 1},
    {speed, "rpm", kPerMinute},
    {state, "", 1},
};

}  // namespace

std::string_view to_string(Quantity quantity) { return row_of(quantity).name; }
std::string_view unit_of(Quantity quantity) { return row_of(quantity).unit; }
Range possible_range(Quantity quantity) { return row_of(quantity).range; }

Result<Quantity> parse_quantity(std::string_view text) {
  std::string known;
  for (const QuantityRow& row : kQuantities) {
    if (row.name == text) return row.quantity;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  return fail(ErrorCode::input, fmt::format("'{}' is no quantity", text.substr(0, 40)), {}, "one of " + known);
}

Result<Conversion> conversion(Quantity quantity, std::string_view unit) {
  std::string known;
  std::string_view other;
  for (const UnitRow& row : kUnits) {
    if (row.quantity == quantity && row.name == unit) return Conversion{row.factor, row.shift};
    if (row.quantity == quantity) known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", row.name);
    if (row.name == unit && !unit.empty()) other = to_string(row.quantity);
  }
  std::string what = fmt::format("\"{}\" is no unit of {}", unit.substr(0, 40), to_string(quantity));
  if (!other.empty()) what += fmt::format(" but of {}", other);
  return fail(ErrorCode::input, what, {}, "one of " + known);
}

std::string format(Quantity quantity, double value) {
  const std::string_view unit = unit_of(quantity);
  return fmt::format("{:.4g}{}{}", value, unit.empty() ? "" : " ", unit);
}

}  // namespace flyball::meter
