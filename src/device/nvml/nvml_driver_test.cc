#include "device/nvml/nvml_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/memory_filesystem.h"
#include "device/nvml/nvml_error.h"
#include "device/nvml/nvml_read.h"
#include "device/nvml/scripted_nvml.h"

namespace flyball::nvml {
namespace {

using testing::HasSubstr;

const DeviceId kA = DeviceId::of("GPU-aaaa");
const DeviceId kB = DeviceId::of("GPU-bbbb");

class NvmlDriverTest : public testing::Test {
 protected:
  NvmlDriverTest() {
    script.boards.resize(2);
    script.boards[0].uuid = kA.text();
    script.boards[1].uuid = kB.text();
    script.boards[1].bus = "00000000:43:00.0";
    EXPECT_TRUE(files.write_atomically("/boot_id", "b007\n"));
  }
  ~NvmlDriverTest() override { EXPECT_EQ(script.stale_handles, 0) << "a handle of an ended session was used"; }

  GpuReading read(const DeviceId& id) {
    const auto reading = driver.read(id);
    EXPECT_TRUE(reading) << reading.error().message();
    return reading.value_or(GpuReading());
  }

  ScriptedNvml script;
  VirtualClock clock;
  MemoryFilesystem files;
  std::string load = "module-17";
  NvmlDriver driver{script.loader(), clock, files, [this] { return load; }, "/boot_id"};
};

TEST_F(NvmlDriverTest, ListsEveryBoardByUuid) {
  script.boards[1].mig = true;
  const auto list = driver.devices();
  ASSERT_TRUE(list) << list.error().message();
  ASSERT_EQ(list->size(), 2U);
  EXPECT_EQ((*list)[0].id, kA);
  EXPECT_EQ((*list)[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ((*list)[0].pci_bus, "00000000:1B:00.0");
  EXPECT_FALSE((*list)[0].shared);
  EXPECT_TRUE((*list)[1].shared) << "a board split into MIG instances is shared";
}

TEST_F(NvmlDriverTest, ReadsEveryValueInItsUnit) {
  const GpuReading r = read(kA);
  EXPECT_EQ(r.state, DeviceState::ok);
  EXPECT_EQ(r.scope, Scope::board);
  EXPECT_EQ(r.power_average.value_or(Watts(0)), Watts(501));
  EXPECT_EQ(r.power_instant.value_or(Watts(0)), Watts(512));
  EXPECT_EQ(r.energy.value_or(Joules(0)), Joules(1000));
  EXPECT_DOUBLE_EQ(r.utilisation_fraction.value_or(0), 0.97);
  EXPECT_EQ(r.temperature.value_or(Celsius(0)), Celsius(61));
  EXPECT_EQ(r.sm_clock.value_or(Hertz(0)), Hertz(1755e6));
  EXPECT_EQ(r.memory_clock.value_or(Hertz(0)), Hertz(2619e6));
  EXPECT_EQ(r.limit_requested.value_or(Milliwatts(0)), Milliwatts(700'000));
  EXPECT_EQ(r.limit_enforced.value_or(Milliwatts(0)), Milliwatts(700'000));
  EXPECT_TRUE(r.throttle.ok() && r.throttle.value.software_power_cap());
}

TEST_F(NvmlDriverTest, AFailedEntryOfASuccessfulQueryIsMissingAndTheOtherStands) {
  (void)read(kA);
  script.boards[0].average.status = kUnknown;
  const GpuReading r = read(kA);
  EXPECT_EQ(r.power_average.status, Status::failed);
  EXPECT_EQ(r.power_instant.value_or(Watts(0)), Watts(512));
}

TEST_F(NvmlDriverTest, AValueIsTakenFromTheMemberThatTheEntryNames) {
  auto& entry = script.boards[0].average;
  entry.type = kUnsignedLongLong;
  entry.value.as_ulonglong = 333'000;
  EXPECT_EQ(read(kA).power_average.value_or(Watts(0)), Watts(333));
  entry.type = kDouble;
  entry.value.as_double = 444'500;
  EXPECT_EQ(read(kA).power_average.value_or(Watts(0)), Watts(444.5));
  // The number stands in another member than the one named: 4.4e5 as an integer, read as a double, is nearly 0.
  entry.type = kDouble;
  entry.value.as_ulonglong = 444'500;
  EXPECT_EQ(read(kA).power_average.status, Status::garbage);
  entry.type = kUnsignedInt;
  entry.value.as_double = 444'500;
  EXPECT_EQ(read(kA).power_average.status, Status::garbage);
  entry.type = kUnsignedShort;
  entry.value.as_ulonglong = 444'500;
  EXPECT_EQ(read(kA).power_average.status, Status::garbage);
  entry.type = static_cast<ValueType>(99);
  EXPECT_EQ(read(kA).power_average.status, Status::garbage);
}

TEST_F(NvmlDriverTest, NoNumberThatCannotBeTruePasses) {
  script.boards[0].average.value.as_uint = 0;
  script.boards[0].instant.value.as_uint = kNotAvailable32;
  script.boards[0].celsius = 255;
  script.boards[0].busy_percent = 101;
  script.boards[0].sm_mhz = kNotAvailable32;
  script.boards[0].throttle = kNotAvailable64;
  script.boards[0].enforced_mw = kNotAvailable32;
  script.boards[0].requested_mw = 0;
  const GpuReading r = read(kA);
  EXPECT_EQ(r.power_average.status, Status::garbage);
  EXPECT_EQ(r.power_instant.status, Status::garbage);
  EXPECT_EQ(r.temperature.status, Status::garbage);
  EXPECT_EQ(r.utilisation_fraction.status, Status::garbage);
  EXPECT_EQ(r.sm_clock.status, Status::garbage);
  EXPECT_EQ(r.throttle.status, Status::garbage);
  EXPECT_EQ(r.limit_enforced.status, Status::garbage);
  EXPECT_EQ(r.limit_requested.status, Status::garbage);
  EXPECT_TRUE(r.energy.ok()) << "one bad value does not take the others along";
}

TEST_F(NvmlDriverTest, ThrottleReasonsAreDecodedAndUnknownBitsDropped) {
  script.boards[0].throttle = 0x80 | 0x4 | 0x100000;
  const GpuReading r = read(kA);
  ASSERT_TRUE(r.throttle.ok());
  EXPECT_EQ(to_string(*r.throttle), "software_power_cap, power_brake");
}

struct UsageCase {
  unsigned architecture;
  unsigned device_and_vendor;
  bool is_average;
};

class UsageFallbackTest : public NvmlDriverTest, public testing::WithParamInterface<UsageCase> {};

TEST_P(UsageFallbackTest, WithoutFieldsTheOneNumberGoesToTheSourceOfItsChip) {
  script.absent.insert("field_values");
  script.boards[0].architecture = GetParam().architecture;
  script.boards[0].device_and_vendor = GetParam().device_and_vendor;
  const GpuReading r = read(kA);
  const auto& holds = GetParam().is_average ? r.power_average : r.power_instant;
  const auto& empty = GetParam().is_average ? r.power_instant : r.power_average;
  EXPECT_EQ(holds.value_or(Watts(0)), Watts(499));
  EXPECT_EQ(empty.status, Status::not_supported);
}

INSTANTIATE_TEST_SUITE_P(Chips, UsageFallbackTest,
                         testing::Values(UsageCase{5, 0x1db510de, false},                       // V100
                                         UsageCase{7, 0x20b210de, false},                       // A100
                                         UsageCase{7, 0x223510de, true},                        // A40
                                         UsageCase{9, 0x233010de, true},                        // H100
                                         UsageCase{kArchitectureUnknown, 0x12ab10de, false}));  // not told

TEST_F(NvmlDriverTest, SourcesAreNeverMixedWithinASession) {
  EXPECT_EQ(read(kA).power_average.value_or(Watts(0)), Watts(501));
  script.boards[0].failing["field_values"] = kNotSupported;
  const GpuReading r = read(kA);
  EXPECT_EQ(r.power_average.status, Status::not_supported) << "the plain call's number must not stand in";
  EXPECT_EQ(r.power_instant.status, Status::not_supported);
}

TEST_F(NvmlDriverTest, ATransientFailureAtTheFirstReadDoesNotChooseTheSource) {
  script.boards[0].failing["field_values"] = kUnknown;
  EXPECT_EQ(read(kA).power_average.status, Status::failed);
  script.boards[0].failing.clear();
  EXPECT_EQ(read(kA).power_average.value_or(Watts(0)), Watts(501));
}

TEST_F(NvmlDriverTest, OnlyTheInstantFieldIsEnoughForThatSource) {
  script.boards[0].average.status = kNotSupported;
  const GpuReading r = read(kA);
  EXPECT_EQ(r.power_average.status, Status::not_supported);
  EXPECT_EQ(r.power_instant.value_or(Watts(0)), Watts(512));
}

TEST_F(NvmlDriverTest, AFallingCounterIsGarbageOnceAndThenANewCount) {
  EXPECT_EQ(read(kA).energy.value_or(Joules(0)), Joules(1000));
  clock.advance(Seconds(1));
  script.boards[0].energy_mj = 5000;
  EXPECT_EQ(read(kA).energy.status, Status::garbage);
  clock.advance(Seconds(1));
  script.boards[0].energy_mj = 5500;
  EXPECT_EQ(read(kA).energy.value_or(Joules(0)), Joules(5.5));
}

TEST_F(NvmlDriverTest, ACounterThatJumpsFasterThanAnyBoardDrawsIsGarbage) {
  (void)read(kA);
  clock.advance(Seconds(1));
  script.boards[0].energy_mj += 1ULL << 40;
  EXPECT_EQ(read(kA).energy.status, Status::garbage);
  clock.advance(Seconds(1));
  script.boards[0].energy_mj = 1'500'000;  // the flipped bit is gone
  EXPECT_EQ(read(kA).energy.value_or(Joules(0)), Joules(1500));
  script.boards[0].energy_mj = kNotAvailable64;
  EXPECT_FALSE(read(kA).energy.ok());
}

TEST_F(NvmlDriverTest, WithoutACounterEnergyIsNotSupportedAndNeverZero) {
  script.absent.insert("energy");
  EXPECT_EQ(read(kA).energy.status, Status::not_supported);
}

TEST_F(NvmlDriverTest, OnAModulePartTheCounterIsNotTakenForTheGpus) {
  script.boards[0].name = "NVIDIA GH200 480GB";
  const GpuReading r = read(kA);
  EXPECT_EQ(r.scope, Scope::board);
  EXPECT_TRUE(r.power_average.ok());
  EXPECT_EQ(r.energy.status, Status::not_supported);
  EXPECT_TRUE(driver.devices().value()[0].module_scope);
  // Without fields of GPU scope, power and counter both are the module's, and say so.
  script.end_session();
  script.absent.insert("field_values");
  const GpuReading m = read(kA);
  EXPECT_EQ(m.scope, Scope::module);
  EXPECT_TRUE(m.energy.ok());
}

TEST_F(NvmlDriverTest, AModulePartIsKnownByItsModuleScopeWhateverItsName) {
  script.boards[1].has_module_scope = true;
  EXPECT_TRUE(driver.devices().value()[1].module_scope);
  EXPECT_FALSE(driver.devices().value()[0].module_scope);
}

TEST_F(NvmlDriverTest, LimitsWithSentinelsAreNotValues) {
  script.boards[0].minimum_mw = kNotAvailable32;
  script.boards[0].persistence = 7;
  const auto limits = driver.limits(kA);
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->minimum.status, Status::garbage);
  EXPECT_EQ(limits->maximum.value_or(Milliwatts(0)), Milliwatts(700'000));
  EXPECT_EQ(limits->persistence.status, Status::garbage);
  const auto set = driver.set_power_limit(kA, Milliwatts(300'000));
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, ErrorCode::refused);
  EXPECT_EQ(script.boards[0].requested_mw, 700'000U) << "nothing may be written without a known range";
}

TEST_F(NvmlDriverTest, ARangeUpsideDownIsNoRange) {
  script.boards[0].minimum_mw = 800'000;
  const auto limits = driver.limits(kA);
  ASSERT_TRUE(limits);
  EXPECT_FALSE(limits->minimum.ok());
  EXPECT_FALSE(limits->maximum.ok());
}

TEST_F(NvmlDriverTest, EnforcedBelowRequestedIsReadAsItIs) {
  script.boards[0].enforced_mw = 450'000;
  const auto limits = driver.limits(kA);
  ASSERT_TRUE(limits);
  EXPECT_EQ(*limits->requested, Milliwatts(700'000));
  EXPECT_EQ(*limits->enforced, Milliwatts(450'000));
}

TEST_F(NvmlDriverTest, WritesExactlyInRangeAndRefusesAMilliwattOutside) {
  EXPECT_TRUE(driver.set_power_limit(kA, Milliwatts(200'000)));
  EXPECT_EQ(script.boards[0].requested_mw, 200'000U);
  EXPECT_EQ(script.boards[1].requested_mw, 700'000U);
  EXPECT_TRUE(driver.set_power_limit(kA, Milliwatts(700'000)));
  for (const std::int64_t outside : {199'999LL, 700'001LL, 0LL, -5LL, 4'294'967'296LL + 300'000LL}) {
    const auto set = driver.set_power_limit(kA, Milliwatts(outside));
    ASSERT_FALSE(set) << outside;
    EXPECT_EQ(set.error().code, ErrorCode::refused);
    EXPECT_THAT(set.error().message(), HasSubstr("200000"));
  }
  EXPECT_EQ(script.boards[0].requested_mw, 700'000U);
}

TEST_F(NvmlDriverTest, ReadsFineButWritesFailIsAStateOfItsOwn) {
  EXPECT_EQ(driver.capabilities(kA).value().write_limit, Status::ok);
  script.boards[0].failing["set_limit"] = kNoPermission;
  const auto set = driver.set_power_limit(kA, Milliwatts(300'000));
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message(), HasSubstr("flyball-guard"));
  const auto can = driver.capabilities(kA);
  ASSERT_TRUE(can);
  EXPECT_EQ(can->write_limit, Status::no_permission);
  EXPECT_EQ(can->read_limits, Status::ok);
  EXPECT_EQ(can->read_power, Status::ok);
  EXPECT_EQ(driver.capabilities(kB).value().write_limit, Status::ok) << "found per GPU";
}

TEST_F(NvmlDriverTest, CapabilitiesAreProbedCallByCall) {
  script.boards[0].failing["limit_constraints"] = kNotSupported;
  script.boards[0].failing["energy"] = kNotSupported;
  script.boards[0].architecture = 4;
  const auto can = driver.capabilities(kA);
  ASSERT_TRUE(can);
  EXPECT_EQ(can->read_energy, Status::not_supported);
  EXPECT_EQ(can->read_limits, Status::not_supported);
  EXPECT_EQ(can->write_limit, Status::not_supported);
  EXPECT_EQ(can->lock_clocks, Status::not_supported);
  EXPECT_EQ(can->read_power, Status::ok);
}

TEST_F(NvmlDriverTest, LocksAndResetsClocksInWholeMegahertz) {
  EXPECT_TRUE(driver.lock_clocks(kB, {Hertz(210e6), Hertz(1305e6)}));
  EXPECT_EQ(script.boards[1].locked_low_mhz, 210U);
  EXPECT_EQ(script.boards[1].locked_high_mhz, 1305U);
  EXPECT_TRUE(driver.reset_clocks(kB));
  EXPECT_EQ(script.boards[1].locked_high_mhz, 0U);
  EXPECT_FALSE(driver.lock_clocks(kB, {Hertz(1305e6), Hertz(210e6)}));
  EXPECT_FALSE(driver.lock_clocks(kB, {Hertz(0), Hertz(210e6)}));
  EXPECT_FALSE(driver.lock_clocks(kB, {Hertz(210e6), Hertz(1e18)}));
}

TEST_F(NvmlDriverTest, AMigInstanceIsRefusedAndItsGpuNamed) {
  const auto reading = driver.read(DeviceId::of("MIG-of-GPU-bbbb"));
  ASSERT_FALSE(reading);
  EXPECT_EQ(reading.error().code, ErrorCode::unsupported);
  EXPECT_THAT(reading.error().remedy, HasSubstr("GPU-bbbb"));
  EXPECT_FALSE(driver.read(DeviceId::of("GPU-other")));
}

}  // namespace
}  // namespace flyball::nvml
