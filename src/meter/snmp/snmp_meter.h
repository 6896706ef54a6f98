#pragma once
// SNMP v2c and v3 over net-snmp's single-session interface: numeric objects, no MIB files, no configuration files.

#include <memory>

#include "meter/meter.h"
#include "meter/profile.h"

namespace flyball::meter {

Result<std::unique_ptr<Meter>> make_snmp_meter(const Profile& profile, Clock& clock);

}  // namespace flyball::meter
