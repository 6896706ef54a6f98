// Registers of any content in every type and order: the bits are the registers', an order is undone by itself, and no
// block of a plan is larger than a request or splits a point.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "meter/modbus/registers.h"

namespace {
void check(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flyball::meter;
  Profile profile;
  for (std::size_t at = 0; at + 12 <= size; at += 12) {
    PointProfile point;
    point.modbus.type = static_cast<RegisterType>(data[at] % 8);
    point.modbus.order = static_cast<ByteOrder>(data[at + 1] % 4);
    point.modbus.table = static_cast<RegisterTable>(data[at + 1] / 128);
    point.modbus.address = data[at + 2] << 3 | data[at + 3] % 8;
    std::uint16_t registers[4];
    for (int i = 0; i < 4; ++i)
      registers[i] = static_cast<std::uint16_t>(data[at + 4 + 2 * i] << 8 | data[at + 5 + 2 * i]);
    const auto value = decode_registers(registers, point.modbus);
    check(!value.sentinel);
    point.modbus.sentinels = {value.bits};
    check(decode_registers(registers, point.modbus).sentinel);
    profile.points.push_back(point);
  }
  std::size_t points = 0;
  for (const RegisterBlock& block : plan_blocks(profile)) {
    check(block.count >= 1 && block.count <= kMostRegisters);
    points += block.points.size();
    for (const std::size_t i : block.points) {
      const ModbusPoint& at = profile.points[i].modbus;
      check(at.table == block.table && at.address >= block.first);
      check(at.address + width_of(at.type) <= block.first + block.count);
    }
  }
  check(points == profile.points.size());
  return 0;
}
