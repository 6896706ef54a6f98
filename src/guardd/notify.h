#pragma once
#include <optional>
#include <string>

#include "base/units.h"

namespace flyball::guardd {

/// Tells the service manager ("READY=1", "WATCHDOG=1", "STOPPING=1"); does nothing when there is none. The protocol is
/// one datagram to $NOTIFY_SOCKET, see sd_notify(3); that is less than a library to link.
void notify(const std::string& state);

/// How often the service manager wants to hear "WATCHDOG=1": half of $WATCHDOG_USEC. Absent = not at all.
std::optional<Seconds> watchdog_period();

}  // namespace flyball::guardd
