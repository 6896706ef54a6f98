#pragma once
// What a Redfish service has to read: a bounded walk over its links, which gives the points of a profile.

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "meter/profile.h"

namespace flyball::meter {

struct DiscoverLimits {
  std::size_t resources = 300;  ///< a rack PDU with 48 outlets has about 100, a server with sensors 150
  int depth = 8;                ///< of links; root, chassis, subsystem, supplies, supply, metrics are 6
  Seconds time{120};
};

struct Discovery {
  std::vector<PointProfile> points;  ///< power, energy, temperature, voltage and current that say a number now
  std::size_t resources = 0;         ///< that were read
  std::vector<std::string> notes;    ///< what was left out, and why; at most 20
};

/// The body of a path, within a time.
using Fetch = std::function<Result<std::string>(const std::string& path, Seconds timeout)>;

/// From /redfish/v1 on, breadth first. Only paths below it on the same service are followed, each once.
Result<Discovery> discover(const Fetch& fetch, const Clock& clock, Seconds timeout, const DiscoverLimits& limits = {});
/// The same of the profile's address, with its secrets.
Result<Discovery> discover_redfish(const Profile& profile, Clock& clock, const DiscoverLimits& limits = {});

}  // namespace flyball::meter
