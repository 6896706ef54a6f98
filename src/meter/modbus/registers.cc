#include "meter/modbus/registers.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace flyball::meter {

std::uint64_t register_bits(std::span<const std::uint16_t> registers, RegisterType type, ByteOrder order) {
  const bool low_word_first = order == ByteOrder::cdab || order == ByteOrder::dcba;
  const bool low_byte_first = order == ByteOrder::badc || order == ByteOrder::dcba;
  const auto width = static_cast<std::size_t>(width_of(type));
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < width && i < registers.size(); ++i) {
    std::uint16_t word = registers[low_word_first ? width - 1 - i : i];
    if (low_byte_first) word = static_cast<std::uint16_t>(word << 8 | word >> 8);
    bits = bits << 16 | word;
  }
  return bits;
}

double register_number(std::uint64_t bits, RegisterType type) {
  switch (type) {
    case RegisterType::s16:
      return static_cast<std::int16_t>(bits);
    case RegisterType::s32:
      return static_cast<std::int32_t>(bits);
    case RegisterType::s64:
      return static_cast<double>(static_cast<std::int64_t>(bits));
    case RegisterType::f32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case RegisterType::f64:
      return std::bit_cast<double>(bits);
    case RegisterType::u16:
    case RegisterType::u32:
    case RegisterType::u64:
      break;
  }
  return static_cast<double>(bits);
}

RegisterValue decode_registers(std::span<const std::uint16_t> registers, const ModbusPoint& point) {
  RegisterValue made;
  made.bits = register_bits(registers, point.type, point.order);
  made.sentinel = std::find(point.sentinels.begin(), point.sentinels.end(), made.bits) != point.sentinels.end();
  made.number = register_number(made.bits, point.type);
  return made;
}

std::vector<RegisterBlock> plan_blocks(const Profile& profile) {
  std::vector<std::size_t> order(profile.points.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto place = [&](std::size_t i) {
    const ModbusPoint& at = profile.points[i].modbus;
    return std::tuple(at.table, at.address, width_of(at.type), i);
  };
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return place(a) < place(b); });
  std::vector<RegisterBlock> blocks;
  for (const std::size_t i : order) {
    const ModbusPoint& at = profile.points[i].modbus;
    const int first = at.address - profile.register_base;
    const int end = first + width_of(at.type);
    if (!blocks.empty()) {
      RegisterBlock& last = blocks.back();
      const bool touches = last.table == at.table && first <= last.first + last.count;
      if (touches && end - last.first <= kMostRegisters) {
        last.count = std::max(last.count, end - last.first);
        last.points.push_back(i);
        continue;
      }
    }
    blocks.push_back({at.table, first, end - first, {i}});
  }
  return blocks;
}

}  // namespace flyball::meter
