#pragma once
// What a meter's number measures, in one base unit each, and the units in which devices say it.

#include <string>
#include <string_view>

#include "base/result.h"

namespace flyball::meter {

enum class Quantity {
  power,           ///< W, active
  apparent_power,  ///< VA; never a power
  energy,          ///< J, a counter
  voltage,         ///< V
  current,         ///< A
  power_factor,    ///< 1
  frequency,       ///< Hz
  temperature,     ///< °C
  humidity,        ///< fraction, relative
  flow,            ///< m³/s
  pressure,        ///< Pa
  speed,           ///< 1/s, of fans and pumps
  state,           ///< a device's own number
};
std::string_view to_string(Quantity quantity);
Result<Quantity> parse_quantity(std::string_view text);
/// "W", "VA", "J", "V", "A", "", "Hz", "°C", "", "m3/s", "Pa", "1/s", "".
std::string_view unit_of(Quantity quantity);

/// base = factor × said + shift. The shift is that of temperatures alone.
struct Conversion {
  double factor = 1;
  double shift = 0;
};
/// How a number in `unit` ("kW", "Wh", "dA", "degF", "%") becomes one in the base unit. A unit of another quantity is
/// refused: VA is not W.
Result<Conversion> conversion(Quantity quantity, std::string_view unit);

/// What the quantity can be, in its base unit, at any meter of a site. Outside it a value is garbage.
struct Range {
  double low = 0;
  double high = 0;
  bool holds(double value) const { return value >= low && value <= high; }
};
Range possible_range(Quantity quantity);

/// "230.1 V", for people.
std::string format(Quantity quantity, double value);

}  // namespace flyball::meter
