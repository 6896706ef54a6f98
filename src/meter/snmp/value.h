#pragma once
// One SNMP variable as it came, and as a number. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/reading.h"
#include "meter/profile.h"

namespace flyball::meter {

enum class SnmpKind { integer, counter, number, text, no_object, no_instance, other };

struct SnmpValue {
  SnmpKind kind = SnmpKind::other;
  std::int64_t integer = 0;   ///< INTEGER
  std::uint64_t counter = 0;  ///< Gauge32, Counter32, Counter64, TimeTicks
  double number = 0;          ///< opaque float or double
  std::string text;           ///< OCTET STRING, as it came
};

struct SnmpNumber {
  Sample<double> said;
  std::string reason;
  std::string raw;
};
/// Many PDUs say numbers as text ("2.4", "2.4 A" is none). The profile's numbers for "not available" are missing.
SnmpNumber snmp_number(const SnmpValue& value, const PointProfile& point);

/// DateAndTime of SNMPv2-TC: 8 octets in local time or 11 with the offset. Without an offset it names no instant.
Result<WallTime> date_and_time(std::string_view octets);

/// "1.3.6.1.2.1.1.1.0", with or without a dot before it. Empty where it is none.
std::vector<std::uint64_t> parse_oid(std::string_view text);

}  // namespace flyball::meter
