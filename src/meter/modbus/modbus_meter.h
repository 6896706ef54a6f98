#pragma once
// Modbus TCP over libmodbus.

#include <cstdint>
#include <memory>
#include <vector>

#include "meter/meter.h"
#include "meter/profile.h"

namespace flyball::meter {

/// Raw registers, for commissioning: other word orders are other readings of the same answer.
class RegisterSource {
 public:
  virtual ~RegisterSource() = default;
  /// Empty where the device did not give them.
  virtual std::vector<std::uint16_t> registers_of(std::size_t point) const = 0;
};

Result<std::unique_ptr<Meter>> make_modbus_meter(const Profile& profile, Clock& clock);

}  // namespace flyball::meter
