#pragma once
// A profile: which registers, objects, paths or columns of a device give which quantity, with unit and scale. TOML;
// doc/meters.md has every key. Presets are in presets/meters/.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "core/reading.h"
#include "meter/quantity.h"

namespace flyball::meter {

enum class Protocol { modbus, snmp, redfish, ipmi, prometheus, csv };
std::string_view to_string(Protocol protocol);

/// How a value lies in 16-bit registers.
enum class RegisterType { u16, s16, u32, s32, u64, s64, f32, f64 };
/// Which byte comes first. Letters are bytes from the most significant on, in the order in which they arrive: "abcd" is
/// big-endian throughout, "cdab" has the low word first. Wider values continue the pattern.
enum class ByteOrder { abcd, cdab, badc, dcba };
enum class RegisterTable { holding, input };
std::string_view to_string(RegisterType type);
std::string_view to_string(ByteOrder order);
std::string_view to_string(RegisterTable table);
/// In registers: 1, 2 or 4.
int width_of(RegisterType type);

struct ModbusPoint {
  int address = -1;  ///< as the manual has it; Profile::register_base is taken off
  RegisterTable table = RegisterTable::holding;
  RegisterType type = RegisterType::u16;
  ByteOrder order = ByteOrder::abcd;
  std::vector<std::uint64_t> sentinels;  ///< as wide as the type; "not available"
};

struct PointProfile {
  std::string name;
  Quantity quantity = Quantity::power;
  std::string unit;
  double scale = 1;  ///< value in `unit` = what the device says × scale
  Conversion to_base;
  Scope scope = Scope::unknown;
  std::string group;  ///< points of one phase or outlet, which V × A × PF joins
  ModbusPoint modbus;
  std::string oid;                         ///< SNMP
  std::vector<double> absent;              ///< SNMP, CSV: numbers that mean "not available"
  std::string path, pointer;               ///< Redfish: the resource, and the value in it as a JSON pointer
  std::string selector;                    ///< Prometheus
  std::string sensor;                      ///< IPMI: a sensor's name, or "dcmi"
  std::string column;                      ///< CSV
  std::optional<double> resolution;        ///< found at commissioning, in the base unit
  std::optional<Seconds> update_interval;  ///< found at commissioning

  double base_of(double said) const { return said * scale * to_base.factor + to_base.shift; }
};

struct SnmpOptions {
  int version = 2;
  std::string auth;     ///< "SHA", "SHA-256", "SHA-512"; empty: none
  std::string privacy;  ///< "AES"; empty: none
};

/// Where a secret lies; never the secret.
struct SecretPlace {
  std::string file;
  std::string variable;
  bool named() const { return !file.empty() || !variable.empty(); }
};

struct Commissioned {
  std::string at;  ///< RFC 3339; empty: never
  std::string identity;
  std::optional<Seconds> clock_offset;  ///< device − reader
};

struct Profile {
  std::string id;
  Protocol protocol = Protocol::csv;
  std::string source;  ///< where its numbers come from
  std::string address;
  Seconds timeout{2};
  Scope scope = Scope::unknown;
  std::string user;
  SecretPlace password;  ///< also SNMP's community and authentication phrase
  SecretPlace privacy_password;
  std::string ca_file;
  int unit_id = 1;
  int register_base = 0;
  SnmpOptions snmp;
  std::string time_column;  ///< CSV
  std::string zone;         ///< CSV: of stamps without one
  Seconds stale_after{60};
  Seconds window{300};  ///< Prometheus: how far back a live reading looks
  Commissioned commissioned;
  std::vector<PointProfile> points;

  /// Of the file that it was read from.
  const PointProfile* point(std::string_view name) const;
};

/// Every key, for documents and templates.
std::span<const ConfigKey> profile_keys();
/// All faults at once, each with its line: the first 20, and behind them how many more there are.
tl::expected<Profile, std::vector<Error>> parse_profile(std::string_view text, const std::string& name);
/// A file that reads back to the same profile.
std::string profile_text(const Profile& profile);

}  // namespace flyball::meter
