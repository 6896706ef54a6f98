#pragma once
// What the guard owes one board: what it found there before its first write, and what it wrote since. This is all that
// the journal keeps, and all that a restore needs.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/control.h"
#include "core/device.h"
#include "core/driver.h"
#include "guard/authority.h"

namespace flyball::guard {

/// Taken before the first write, on disk before it.
struct Snapshot {
  Sample<Milliwatts> requested;
  Sample<Milliwatts> enforced;
  Sample<bool> persistence;
  DriverEpoch epoch;
  std::string last_writer;  ///< who set it, if known: "factory default", "another program"
  WallTime taken;
  bool operator==(const Snapshot&) const;

  /// What a restore writes: the request where it can be read, for a BMC's cap must not be made permanent.
  std::optional<Milliwatts> limit() const;
};

/// A wish that outlives its client, until `restore`.
struct StickyWish {
  LeaseId lease = 0;
  Authority authority = Authority::job;
  std::optional<Milliwatts> power_limit;
  bool operator==(const StickyWish&) const = default;
};

struct Hold {
  DeviceId device;
  LeaseKind kind = LeaseKind::saving;
  Authority owner = Authority::job;  ///< of the budget; only it or a higher one releases upward
  Snapshot found;
  Milliwatts safe_cap;  ///< of a budget hold
  bool parked = false;  ///< a budget lease has ended: min(found, safe cap) holds until its owner returns
  bool clocks_locked = false;
  std::optional<Milliwatts> accepted;  ///< our last write that the driver took and that was read back
  /// Sent, or about to be, and not told apart yet: each may be what the board holds after a crash or a stuck call.
  std::vector<Milliwatts> intents;
  std::vector<StickyWish> sticky;
  bool operator==(const Hold&) const;

  /// Whether `requested` is a value that we may have written.
  bool is_ours(Milliwatts requested, Milliwatts rounding) const;
  /// Remembers a value before it is sent. Bounded: the oldest is forgotten.
  void add_intent(Milliwatts limit);
  /// Where this board goes when nobody asks for anything.
  std::optional<Milliwatts> resting_limit() const;
};

/// |a − b| ≤ rounding.
bool same_limit(Milliwatts a, Milliwatts b, Milliwatts rounding);

}  // namespace flyball::guard
