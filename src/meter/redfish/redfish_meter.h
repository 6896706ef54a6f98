#pragma once
// A BMC or PDU that speaks Redfish, over verified HTTPS.

#include <memory>

#include "meter/meter.h"
#include "meter/profile.h"

namespace flyball::meter {

Result<std::unique_ptr<Meter>> make_redfish_meter(const Profile& profile, Clock& clock);

}  // namespace flyball::meter
