#include "meter/open.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include "base/text.h"
#include "meter/csv/csv_meter.h"
#include "meter/ipmi/ipmi_meter.h"
#include "meter/modbus/modbus_meter.h"
#include "meter/prometheus/prometheus_meter.h"
#include "meter/redfish/redfish_meter.h"
#include "meter/snmp/snmp_meter.h"

namespace flyball::meter {

Error left_out(std::string_view protocol, std::string_view package) {
  return {ErrorCode::unsupported,
          fmt::format("this build has no {}", protocol),
          {},
          fmt::format("install {} and build again", package)};
}

Result<NumericAddress> parse_numeric_address(std::string_view text, int default_port) {
  const auto bad = [&](std::string why) {
    return fail(ErrorCode::input, fmt::format("'{}' {}", text.substr(0, 80), why), "meter.address",
                "write an IP address and a port, 10.0.0.7:502 or [fd00::7]:502");
  };
  NumericAddress made{std::string(text), default_port};
  const auto colon = text.rfind(':');
  const bool bracketed = text.starts_with('[');
  const auto bracket = text.find(']');
  if (bracketed && bracket == std::string_view::npos) return bad("has a bracket without end");
  const bool has_port = bracketed ? colon == bracket + 1 : text.find(':') == colon && colon != std::string_view::npos;
  if (has_port) {
    const auto port = parse_int(text.substr(colon + 1));
    if (!port || *port < 1 || *port > 65535) return bad("has no port from 1 to 65535");
    made.port = static_cast<int>(*port);
    made.host = std::string(text.substr(0, colon));
  }
  if (bracketed) made.host = std::string(text.substr(1, bracket - 1));
  in6_addr scratch{};
  if (::inet_pton(AF_INET, made.host.c_str(), &scratch) != 1 &&
      ::inet_pton(AF_INET6, made.host.c_str(), &scratch) != 1) {
    return bad("is no IP address; a name server that hangs would hang the reading");
  }
  return made;
}

Result<std::unique_ptr<Meter>> open_meter(const Profile& profile, Clock& clock) {
  if (profile.address.empty()) return fail(ErrorCode::input, "the profile names no address", "meter.address");
  switch (profile.protocol) {
    case Protocol::modbus:
      return make_modbus_meter(profile, clock);
    case Protocol::csv:
      return make_csv_meter(profile, clock);
    case Protocol::prometheus: {
      FLYBALL_ASSIGN(std::unique_ptr<Meter> made, make_prometheus_meter(profile, clock));
      return made;
    }
    case Protocol::redfish:
      return make_redfish_meter(profile, clock);
    case Protocol::snmp:
      return make_snmp_meter(profile, clock);
    case Protocol::ipmi:
      break;
  }
  return make_ipmi_meter(profile, clock);
}

}  // namespace flyball::meter
