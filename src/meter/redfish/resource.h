#pragma once
// Values in Redfish resources (JSON). Pure. Takes the old Power and Thermal resources, EnvironmentMetrics, PowerSupply
// metrics and Sensors alike: a value is a JSON pointer into a resource, and what stands around it says whether it
// counts.

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "core/reading.h"
#include "meter/meter.h"
#include "meter/profile.h"

namespace flyball::meter {

/// What stands at a pointer.
struct RedfishValue {
  Sample<double> said;  ///< in the service's unit
  std::string reason;
  std::string unit;            ///< ReadingUnits in our words, "degC"; empty where the service does not say
  std::optional<WallTime> at;  ///< ReadingTime
};

/// A value under a Status whose State is not one of a working device is absent, whatever number stands there.
RedfishValue redfish_value(std::string_view body, const std::string& pointer);

/// A text at a pointer; empty where there is none.
std::string redfish_text(std::string_view body, const std::string& pointer);

}  // namespace flyball::meter
