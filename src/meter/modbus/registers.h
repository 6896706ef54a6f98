#pragma once
// Modbus registers as numbers, and which requests fetch them. Pure.

#include <cstdint>
#include <span>
#include <vector>

#include "meter/profile.h"

namespace flyball::meter {

/// The most that one request may ask for: Modbus Application Protocol 1.1b3, 6.3.
constexpr int kMostRegisters = 125;

/// The registers of a value as one number, most significant byte first. `registers` has the type's width.
std::uint64_t register_bits(std::span<const std::uint16_t> registers, RegisterType type, ByteOrder order);
/// Those bits as a number. A NaN of a float type comes out as NaN.
double register_number(std::uint64_t bits, RegisterType type);

/// What came for one point: sentinels before anything else, so that no arithmetic sees them.
struct RegisterValue {
  std::uint64_t bits = 0;
  bool sentinel = false;
  double number = 0;
};
RegisterValue decode_registers(std::span<const std::uint16_t> registers, const ModbusPoint& point);

/// One request.
struct RegisterBlock {
  RegisterTable table = RegisterTable::holding;
  int first = 0;  ///< counted from 0, as on the wire
  int count = 0;
  std::vector<std::size_t> points;  ///< that lie in it, by place in the profile
};
/// Adjacent points share a request; the registers of one point are never in two. Registers that no point names are not
/// asked for: many devices refuse a range with a hole.
std::vector<RegisterBlock> plan_blocks(const Profile& profile);

}  // namespace flyball::meter
