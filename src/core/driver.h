#pragma once
// The one interface to hardware whose limits can be set. Implemented by NVML, ROCm, RAPL, a recording and the twin.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/device.h"
#include "core/reading.h"

namespace flyball {

/// The limits of one board as its driver reports them now. A field that the driver did not answer is not `ok`;
/// without `minimum` and `maximum` the board must not be written.
struct PowerLimits {
  Sample<Milliwatts> requested;  ///< what was asked for last, by anyone
  Sample<Milliwatts> enforced;   ///< what holds: the lowest of all limiters. The only one to verify by
  Sample<Milliwatts> minimum;
  Sample<Milliwatts> maximum;
  Sample<Milliwatts> factory_default;
  Sample<bool> persistence;  ///< off: the driver may unload and forget the limit
};

struct ClockRange {
  Hertz low;
  Hertz high;
  bool operator==(const ClockRange&) const = default;
};

/// What was found to work by trying (reads) or by the driver's own word (writes), per GPU.
struct Capabilities {
  Status read_power = Status::missing;
  Status read_instant_power = Status::missing;
  Status read_energy = Status::missing;
  Status read_limits = Status::missing;
  Status write_limit = Status::missing;  ///< `ok` = not known to fail; `no_permission` and `not_supported` are
  Status lock_clocks = Status::missing;
};

/// Identifies one loading of the driver on one boot. When it changes, limits may be back at their defaults.
struct DriverEpoch {
  std::string boot_id;
  std::string driver_load;  ///< changes with each load or re-initialisation; empty if it cannot be told
  std::string version;
  bool operator==(const DriverEpoch&) const = default;
};

/// Calls block for as long as the driver does (10 to 20 ms is usual, for ever has been seen); not thread-safe. A call
/// on a lost device returns an error or a reading whose state says so, and never makes another device's call fail.
class Driver {
 public:
  virtual ~Driver() = default;

  virtual std::string name() const = 0;
  virtual Result<DriverEpoch> epoch() = 0;
  /// Every board, lost ones included. Order carries no meaning.
  virtual Result<std::vector<DeviceInfo>> devices() = 0;
  virtual Result<GpuReading> read(const DeviceId& device) = 0;
  virtual Result<PowerLimits> limits(const DeviceId& device) = 0;
  virtual Result<Capabilities> capabilities(const DeviceId& device) = 0;

  // The setters are called by the guard alone. Success means that the driver accepted, not that it did it: verify.
  virtual Result<> set_power_limit(const DeviceId& device, Milliwatts limit) = 0;
  virtual Result<> lock_clocks(const DeviceId& device, ClockRange range) = 0;
  virtual Result<> reset_clocks(const DeviceId& device) = 0;
};

}  // namespace flyball
