#pragma once
// A meter, whatever it speaks: it is asked, and answers for each point of its profile with a value or a reason.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/reading.h"
#include "meter/quantity.h"

namespace flyball::meter {

/// Whose clock a time of measurement is from.
enum class TimeSource {
  reader,  ///< ours, in the middle of the request: the device says no time
  device,  ///< the device's or its collector's, corrected by the offset found at commissioning
};
std::string_view to_string(TimeSource source);

struct MeterReading {
  std::string meter;  ///< the profile's id
  std::string point;  ///< the profile's name for it
  Quantity quantity = Quantity::power;
  Scope scope = Scope::unknown;
  Sample<double> value;           ///< in unit_of(quantity); only `ok` values are read
  std::string reason;             ///< why there is no value; empty if there is one
  std::optional<double> refused;  ///< of garbage: the number that cannot be true, in the base unit
  WallTime measured;              ///< when the value was true, not when it arrived
  TimeSource clock = TimeSource::reader;
  MonoTime received;  ///< on the reader's clock
  std::string raw;    ///< as the device said it, for people: "0x08fc", "2300 INTEGER"
};

/// What a device says of itself. Empty = it does not say.
struct Identity {
  std::string vendor;
  std::string model;
  std::string serial;
  std::string firmware;
  /// "Vendor Model serial S firmware F", without what is empty.
  std::string text() const;
};

/// The device's clock beside ours, both as of the middle of the request.
struct ClockPair {
  WallTime device;
  WallTime reader;
  Seconds uncertainty;  ///< half the request, and what the device's format cuts off
};

/// One device. Every call returns within the profile's timeout, or twice that where it has to connect anew.
class Meter {
 public:
  virtual ~Meter() = default;
  /// One reading for each point of the profile, in its order, always: what failed is there with a status and a reason.
  virtual std::vector<MeterReading> read() = 0;
  virtual Result<Identity> identify();
  virtual Result<ClockPair> device_clock();
};

}  // namespace flyball::meter
