#pragma once
// What a sensor said, and whether it said anything. A value never stands without its status, source and time.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/units.h"
#include "core/device.h"

namespace flyball {

enum class Status : std::uint8_t {
  ok,
  missing,        ///< not asked, or no value for a reason not known better
  unchanged,      ///< the sensor has not refreshed since the last read: no new information
  not_supported,  ///< this board or driver does not have it
  no_permission,
  failed,   ///< the call failed this time
  lost,     ///< the device is gone
  stale,    ///< measured too long ago to act on
  garbage,  ///< a value came, and it cannot be true (range, sentinel, unit)
};
std::string_view to_string(Status status);

/// A value that may not be there. Only `ok` values may be read.
template <class T>
struct Sample {
  T value{};
  Status status = Status::missing;

  Sample() = default;
  Sample(T v) : value(v), status(Status::ok) {}  // NOLINT(google-explicit-constructor): a value is a sample
  static Sample absent(Status why) {
    Sample s;
    s.status = why;
    return s;
  }
  bool ok() const { return status == Status::ok; }
  explicit operator bool() const { return ok(); }
  const T& operator*() const { return value; }
  T value_or(T other) const { return ok() ? value : other; }
};

/// What a number measures. Each has one base unit (see unit_of).
enum class Signal : std::uint8_t {
  power_average,  ///< W, trailing mean by the sensor (about 1 s on most boards since Ampere)
  power_instant,  ///< W, as of now; never in one series with the average
  energy,         ///< J, a counter
  utilisation,    ///< fraction 0..1
  temperature,    ///< °C
  memory_temperature,
  sm_clock,         ///< Hz
  memory_clock,     ///< Hz
  limit_requested,  ///< W
  limit_enforced,   ///< W
  throttle,         ///< bit set, see ThrottleReasons
  fan,              ///< fraction 0..1
  tokens,           ///< count, cumulative
  other,            ///< named by the series' own text
};
std::string_view to_string(Signal signal);
/// "W", "J", "Hz", "°C" or "" for pure numbers.
std::string_view unit_of(Signal signal);
Result<Signal> parse_signal(std::string_view text);

/// What is behind the meter. Energies of scopes that contain each other are never added.
enum class Scope : std::uint8_t { chip, board, module, node_dc, node_ac, rack, pdu, ups, feed, facility, unknown };
std::string_view to_string(Scope scope);
Result<Scope> parse_scope(std::string_view text);

/// Why clocks are lower than asked, decoded from the driver's bits.
struct ThrottleReasons {
  std::uint32_t bits = 0;
  static constexpr std::uint32_t kIdle = 1, kApplicationClocks = 2, kSoftwarePowerCap = 4, kHardwareSlowdown = 8,
                                 kSyncBoost = 16, kSoftwareThermal = 32, kHardwareThermal = 64, kPowerBrake = 128,
                                 kDisplayClocks = 256;
  /// Evidence that our own cap binds; never an alarm.
  bool software_power_cap() const { return (bits & kSoftwarePowerCap) != 0; }
  /// Someone outside (PSU, BMC, building) slows the board: learning stops, the ceiling is external.
  bool external_brake() const { return (bits & kPowerBrake) != 0; }
  bool thermal() const { return (bits & (kSoftwareThermal | kHardwareThermal)) != 0; }
  bool operator==(const ThrottleReasons&) const = default;
};
/// "software_power_cap, power_brake" or "none".
std::string to_string(ThrottleReasons reasons);

/// All that one poll of one GPU gave.
struct GpuReading {
  DeviceId device;
  MonoTime taken;  ///< when the poll began, on the reader's clock
  WallTime wall;
  Seconds call_time;  ///< how long the driver needed
  DeviceState state = DeviceState::ok;
  Scope scope = Scope::board;
  Sample<Watts> power_average;
  Sample<Watts> power_instant;
  Sample<Joules> energy;
  Sample<double> utilisation_fraction;
  Sample<Celsius> temperature;
  Sample<Hertz> sm_clock;
  Sample<Hertz> memory_clock;
  Sample<Milliwatts> limit_requested;
  Sample<Milliwatts> limit_enforced;
  Sample<ThrottleReasons> throttle;
  Sample<double> fan_fraction;
};

}  // namespace flyball
