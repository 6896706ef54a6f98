#pragma once
// A BMC by `ipmitool` as a child process: sensors and DCMI's power reading. Nothing is ever set.

#include <memory>

#include "meter/meter.h"
#include "meter/profile.h"

namespace flyball::meter {

Result<std::unique_ptr<Meter>> make_ipmi_meter(const Profile& profile, Clock& clock,
                                               const std::string& program = "ipmitool");

}  // namespace flyball::meter
