#pragma once
// What `ipmitool` prints, as values. Pure.

#include <map>
#include <string>
#include <string_view>

#include "core/reading.h"

namespace flyball::meter {

struct IpmiValue {
  Sample<double> said;
  std::string unit;  ///< in our words: W, V, A, degC, rpm, %
  std::string reason;
};

/// `ipmitool dcmi power reading`. A reading whose state is not "activated" is absent, whatever number it shows.
IpmiValue parse_dcmi(std::string_view output);

/// `ipmitool -c sdr list full`: name,value,unit,status lines. A name that stands twice is garbage under that name.
std::map<std::string, IpmiValue> parse_sensors(std::string_view output);

/// "Name : value" lines, as `mc info` and `fru` print them; empty where there is none.
std::string ipmi_field(std::string_view output, std::string_view name);

}  // namespace flyball::meter
