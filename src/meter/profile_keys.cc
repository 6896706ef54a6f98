// The keys of a profile, and the words that some of them take.
#include <array>

#include "meter/profile_words.h"

namespace flyball::meter {
namespace {

using enum ConfigType;

constexpr double kLargest = 1e12;

constexpr ConfigKey kKeys[] = {
    {"meter.id", text, "", 0, 0, "Name of this meter, unique at the site", ""},
    {"meter.protocol", text, "", 0, 0, "modbus, snmp, redfish, ipmi, prometheus or csv", ""},
    {"meter.source", text, "", 0, 0, "Where the numbers of this profile come from", ""},
    {"meter.address", text, "", 0, 0,
     "modbus, snmp: IP:port; redfish, prometheus: URL; ipmi: host, or local; csv: the file", ""},
    {"meter.timeout", duration, "2s", 0.1, 60, "For one request", "slow BMCs and PDUs answer within one second"},
    {"meter.scope", text, "unknown", 0, 0, "What is behind the meter: node_ac, rack, pdu, ups, feed, facility …",
     "scopes that contain each other are never added"},
    {"meter.user", text, "", 0, 0, "User or security name", ""},
    {"meter.password_file", text, "", 0, 0, "File of the password, community or authentication phrase", ""},
    {"meter.password_env", text, "", 0, 0, "Environment variable of the same; one of the two", ""},
    {"meter.privacy_password_file", text, "", 0, 0, "SNMPv3: file of the privacy phrase", ""},
    {"meter.privacy_password_env", text, "", 0, 0, "SNMPv3: environment variable of the same", ""},
    {"meter.ca_file", text, "", 0, 0, "Certificates that sign the device's; not given = the system's", ""},
    {"meter.unit_id", whole, "1", 0, 255, "Modbus unit behind the address", "what single devices answer to"},
    {"meter.register_base", whole, "0", 0, 1, "Modbus: number of the first register in the device's manual",
     "the protocol's own count starts at 0"},
    {"meter.snmp_version", whole, "2", 2, 3, "2 (2c, community) or 3", "most PDUs ship with it"},
    {"meter.snmp_auth", text, "", 0, 0, "SNMPv3: SHA, SHA-256 or SHA-512", ""},
    {"meter.snmp_privacy", text, "", 0, 0, "SNMPv3: AES", ""},
    {"meter.time_column", text, "", 0, 0, "csv: the column of stamps (RFC 3339, or local with meter.zone)", ""},
    {"meter.zone", text, "", 0, 0, "csv: zone of stamps without one, Europe/Berlin", ""},
    {"meter.stale_after", duration, "60s", 0.1, 86400, "A value that was measured longer ago is stale",
     "collectors that average were 40 s late"},
    {"meter.window", duration, "300s", 1, 86400, "prometheus: how far back a live reading looks",
     "Prometheus' own look-back"},

    {"commissioned.at", text, "", 0, 0, "Written by `flyball meter commission`", ""},
    {"commissioned.identity", text, "", 0, 0, "What the device said of itself then", ""},
    {"commissioned.clock_offset_s", number, "", -kLargest, kLargest, "Device's clock minus ours, in seconds", ""},

    {"point.*.quantity", text, "", 0, 0,
     "power apparent_power energy voltage current power_factor frequency temperature humidity flow pressure speed "
     "state",
     ""},
    {"point.*.unit", text, "", 0, 0, "Unit of the number after scale: W kW VA Wh V A dA % degC rpm …", ""},
    {"point.*.scale", number, "", -kLargest, kLargest, "The device's number times this is in the unit; 1 if not given",
     ""},
    {"point.*.scope", text, "", 0, 0, "Not given = the meter's", ""},
    {"point.*.group", text, "", 0, 0, "Phase or outlet: within a group V x A x PF must give W", ""},
    {"point.*.register", whole, "", 0, 65536, "modbus: number in the manual, see meter.register_base", ""},
    {"point.*.table", text, "", 0, 0, "modbus: holding or input; holding if not given", ""},
    {"point.*.type", text, "", 0, 0, "modbus: u16 s16 u32 s32 u64 s64 f32 f64", ""},
    {"point.*.order", text, "", 0, 0, "modbus: abcd, cdab (low word first), badc or dcba; abcd if not given", ""},
    {"point.*.sentinel", texts, "", 0, 0, "modbus: patterns for not available, as wide as the type: 0x80000000", ""},
    {"point.*.oid", text, "", 0, 0, "snmp: numeric, 1.3.6.1…", ""},
    {"point.*.absent", texts, "", 0, 0, "snmp, csv: numbers for not available, before scale", ""},
    {"point.*.path", text, "", 0, 0, "redfish: the resource, /redfish/v1/…", ""},
    {"point.*.pointer", text, "", 0, 0, "redfish: the value in it, /PowerControl/0/PowerConsumedWatts", ""},
    {"point.*.selector", text, "", 0, 0, "prometheus: series selector that matches exactly one series", ""},
    {"point.*.sensor", text, "", 0, 0, "ipmi: name of a sensor, or dcmi", ""},
    {"point.*.column", text, "", 0, 0, "csv: the column", ""},
    {"point.*.resolution", number, "", 0, kLargest, "Found at commissioning: smallest step, in the base unit", ""},
    {"point.*.update_interval", duration, "", 0, 86400, "Found at commissioning: time between changes", ""},
};

constexpr std::array<std::string_view, 6> kProtocols = {"modbus", "snmp", "redfish", "ipmi", "prometheus", "csv"};
constexpr std::array<std::string_view, 8> kTypes = {"u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64"};
constexpr std::array<std::string_view, 4> kOrders = {"abcd", "cdab", "badc", "dcba"};
constexpr std::array<std::string_view, 2> kTables = {"holding", "input"};

}  // namespace

std::span<const ConfigKey> profile_keys() { return kKeys; }
std::span<const std::string_view> protocol_words() { return kProtocols; }
std::span<const std::string_view> type_words() { return kTypes; }
std::span<const std::string_view> order_words() { return kOrders; }
std::span<const std::string_view> table_words() { return kTables; }

std::string_view to_string(Protocol protocol) { return kProtocols[static_cast<std::size_t>(protocol)]; }
std::string_view to_string(RegisterType type) { return kTypes[static_cast<std::size_t>(type)]; }
std::string_view to_string(ByteOrder order) { return kOrders[static_cast<std::size_t>(order)]; }
std::string_view to_string(RegisterTable table) { return kTables[static_cast<std::size_t>(table)]; }

int width_of(RegisterType type) {
  switch (type) {
    case RegisterType::u16:
    case RegisterType::s16:
      return 1;
    case RegisterType::u32:
    case RegisterType::s32:
    case RegisterType::f32:
      return 2;
    case RegisterType::u64:
    case RegisterType::s64:
    case RegisterType::f64:
      break;
  }
  return 4;
}

}  // namespace flyball::meter
