#pragma once
// From a profile to a meter.

#include <memory>

#include "meter/meter.h"
#include "meter/profile.h"

namespace flyball::meter {

/// Reads the secrets; connects at the first reading. A protocol whose library this program was built without is
/// `unsupported`. The clock must outlive the meter.
Result<std::unique_ptr<Meter>> open_meter(const Profile& profile, Clock& clock);

/// The error of a protocol that was left out: "this build has no SNMP".
Error left_out(std::string_view protocol, std::string_view package);

/// "127.0.0.1:502" or "[::1]:502"; the port may be left out. Names are refused: asking for one can hang.
struct NumericAddress {
  std::string host;
  int port = 0;
};
Result<NumericAddress> parse_numeric_address(std::string_view text, int default_port);

}  // namespace flyball::meter
