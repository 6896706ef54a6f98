#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meter/modbus/registers.h"

namespace flyball::meter {
namespace {

TEST(Registers, WordAndByteOrders) {
  const std::uint16_t abcd[] = {0x0102, 0x0304};
  EXPECT_EQ(register_bits(abcd, RegisterType::u32, ByteOrder::abcd), 0x01020304U);
  EXPECT_EQ(register_bits(abcd, RegisterType::u32, ByteOrder::cdab), 0x03040102U);
  EXPECT_EQ(register_bits(abcd, RegisterType::u32, ByteOrder::badc), 0x02010403U);
  EXPECT_EQ(register_bits(abcd, RegisterType::u32, ByteOrder::dcba), 0x04030201U);
  const std::uint16_t eight[] = {1, 2, 3, 4};
  EXPECT_EQ(register_bits(eight, RegisterType::u64, ByteOrder::abcd), 0x0001000200030004U);
  EXPECT_EQ(register_bits(eight, RegisterType::u64, ByteOrder::cdab), 0x0004000300020001U);
}

TEST(Registers, SignsAndFloats) {
  EXPECT_EQ(register_number(0xffff, RegisterType::s16), -1);
  EXPECT_EQ(register_number(0xffff, RegisterType::u16), 65535);
  EXPECT_EQ(register_number(0xfffffffe, RegisterType::s32), -2);
  EXPECT_FLOAT_EQ(static_cast<float>(register_number(0x43668000, RegisterType::f32)), 230.5F);
  EXPECT_TRUE(std::isnan(register_number(0x7fc00000, RegisterType::f32)));
}

TEST(Registers, SentinelIsTheWholePattern) {
  ModbusPoint point;
  point.type = RegisterType::s32;
  point.order = ByteOrder::cdab;
  point.sentinels = {0x80000000};
  const std::uint16_t absent[] = {0x0000, 0x8000};
  EXPECT_TRUE(decode_registers(absent, point).sentinel);
  const std::uint16_t half[] = {0x8000, 0x0000};  // 32,768: only looks like it
  EXPECT_FALSE(decode_registers(half, point).sentinel);
}

PointProfile at(int address, RegisterType type, RegisterTable table = RegisterTable::holding) {
  PointProfile point;
  point.modbus.address = address;
  point.modbus.type = type;
  point.modbus.table = table;
  return point;
}

TEST(Blocks, AdjacentPointsShareARequestAndNoPointIsSplit) {
  Profile profile;
  for (int i = 0; i < 63; ++i) profile.points.push_back(at(1 + 2 * i, RegisterType::u32));
  profile.points.push_back(at(500, RegisterType::u16));
  profile.points.push_back(at(501, RegisterType::u16, RegisterTable::input));
  profile.register_base = 1;
  const auto blocks = plan_blocks(profile);
  ASSERT_EQ(blocks.size(), 4U);
  EXPECT_EQ(blocks[0].first, 0);
  EXPECT_EQ(blocks[0].count, 124);  // a 63rd value would need 126
  EXPECT_EQ(blocks[1].first, 124);
  EXPECT_EQ(blocks[1].count, 2);
  EXPECT_EQ(blocks[2].first, 499);
  EXPECT_EQ(blocks[3].table, RegisterTable::input);
}

TEST(Blocks, HolesAreNotAskedFor) {
  Profile profile;
  profile.points = {at(10, RegisterType::u16), at(12, RegisterType::u16)};
  EXPECT_EQ(plan_blocks(profile).size(), 2U);
}

}  // namespace
}  // namespace flyball::meter
