#pragma once
// How everyone else asks for limits. Implemented by the engine inside one process (simulation, tests) and by the
// client of the guard's socket (live); callers cannot tell the difference.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "core/control.h"
#include "core/device.h"
#include "core/driver.h"

namespace flyball::guard {

using LeaseId = std::uint64_t;

struct LeaseRequest {
  LeaseKind kind = LeaseKind::saving;
  Authority authority = Authority::job;
  std::vector<DeviceId> devices;
  Seconds time_to_live{10};  ///< unrenewed for this long = ended
  std::string purpose;       ///< one line for the journal and the audit log
  bool sticky = false;       ///< limits stay after the client ends, until `restore`
};

struct WriteRequest {
  DeviceId device;
  std::optional<Milliwatts> power_limit;
  std::optional<ClockRange> locked_clocks = {};
  bool unlock_clocks = false;  ///< ends a lock of this lease's; excludes locked_clocks
};

enum class WriteState : std::uint8_t {
  applied,    ///< verified by the enforced limit
  unchanged,  ///< inside the dead band, nothing written
  deferred,   ///< dwell or ramp: accepted, will be stepped there by the guard
  refused,    ///< not allowed; nothing written
  failed,     ///< the driver refused or lied; the reason says which
};
std::string_view to_string(WriteState state);

struct WriteOutcome {
  DeviceId device;
  WriteState state = WriteState::refused;
  Milliwatts asked;             ///< as requested
  Milliwatts accepted;          ///< after clamping to site range and queried range
  Sample<Milliwatts> enforced;  ///< read back
  std::string reason;
};

struct RestoreOutcome {
  DeviceId device;
  bool restored = false;       ///< read back and equal to what was found (or to the safe cap of a budget lease)
  bool left_to_other = false;  ///< someone else wrote since: theirs now
  Sample<Milliwatts> found;    ///< the limit before our first write
  Sample<Milliwatts> now;
  std::string reason;
};

/// Not thread-safe. Errors of a single device are in its outcome; an error result means that nothing was done at all.
class LimitAuthority {
 public:
  virtual ~LimitAuthority() = default;
  virtual Result<LeaseId> acquire(const LeaseRequest& request) = 0;
  virtual Result<> renew(LeaseId lease) = 0;
  virtual Result<std::vector<WriteOutcome>> write(LeaseId lease, const std::vector<WriteRequest>& writes) = 0;
  /// Ends the lease and restores by the rule of its kind.
  virtual Result<std::vector<RestoreOutcome>> release(LeaseId lease) = 0;
  /// The stop button: every lease, by its rule.
  virtual Result<std::vector<RestoreOutcome>> restore_all(const std::string& reason) = 0;
};

}  // namespace flyball::guard
