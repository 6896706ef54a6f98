#include "device/twin/twin_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flyball::device {
namespace {

using namespace flyball::literals;
using testing::HasSubstr;

class TwinDriverTest : public testing::Test {
 protected:
  static twin::MachineParameters parameters() {
    twin::MachineParameters p;
    p.gpus = 2;
    p.gpu.has_fan = true;
    p.gpu.sensor_average = 1_s;
    return p;
  }
  DeviceId a() { return machine_.gpus()[0].id(); }
  DeviceId b() { return machine_.gpus()[1].id(); }

  twin::Machine machine_ = *twin::Machine::create(parameters());
  VirtualClock clock_;
  TwinDriver driver_{machine_, clock_};
};

TEST_F(TwinDriverTest, ReadsWhatTheSensorShowsAtTheClocksTime) {
  clock_.advance(30_s);
  const auto reading = driver_.read(a());
  ASSERT_TRUE(reading);
  EXPECT_EQ(machine_.now(), clock_.now());
  EXPECT_EQ(reading->taken, clock_.now());
  const twin::Gpu& gpu = machine_.gpus()[0];
  EXPECT_NEAR((*reading->power_average).value(), gpu.sensor().average().value(), 0.0006) << "whole milliwatts";
  EXPECT_NE((*reading->power_average).value(), gpu.truth().power.value()) << "the truth is not to be had";
  EXPECT_EQ(*reading->limit_enforced, 400'000_mW);
  EXPECT_TRUE(reading->fan_fraction.ok());
  EXPECT_GT(*reading->utilisation_fraction, 0.9);
  // Sooner than the sensor refreshes: the same again.
  clock_.advance(Seconds(0.04));
  EXPECT_EQ(*driver_.read(a())->energy, *reading->energy);
}

TEST_F(TwinDriverTest, ABoardWithoutAMeanHasOnlyTheInstant) {
  // Neither chip has a mean; the older one shows the instant in the default field, for want of another.
  for (const char* preset : {"a100-sxm4-80gb", "v100-pcie-16gb"}) {
    twin::MachineParameters parameters;
    parameters.gpu = *twin::gpu_preset(preset);
    twin::Machine machine = *twin::Machine::create(parameters);
    TwinDriver driver(machine, clock_);
    clock_.advance(5_s);
    const auto reading = driver.read(machine.gpus()[0].id());
    EXPECT_EQ(reading->power_average.status, Status::not_supported) << preset;
    EXPECT_TRUE(reading->power_instant.ok()) << preset;
    EXPECT_EQ(driver.capabilities(machine.gpus()[0].id())->read_instant_power, Status::ok) << preset;
  }
}

TEST_F(TwinDriverTest, TheBoardIdledBeforeTheRunBegan) {
  EXPECT_NEAR(driver_.read(a())->power_average.value.value(), 62, 6);
}

TEST_F(TwinDriverTest, ALimitIsSetInRangeAndHoldsOneBoard) {
  EXPECT_TRUE(driver_.set_power_limit(a(), 250'000_mW));
  clock_.advance(20_s);
  EXPECT_NEAR(driver_.read(a())->power_average.value.value(), 250, 25);
  EXPECT_EQ(*driver_.limits(a())->enforced, 250'000_mW);
  EXPECT_EQ(*driver_.limits(b())->enforced, 400'000_mW);
  for (const std::int64_t bad : {99'999, 400'001, 0, -1}) {
    const auto set = driver_.set_power_limit(a(), Milliwatts(bad));
    ASSERT_FALSE(set) << bad;
    EXPECT_EQ(set.error().code, ErrorCode::input);
  }
  EXPECT_EQ(*driver_.limits(a())->requested, 250'000_mW);
  EXPECT_FALSE(driver_.set_power_limit(DeviceId::of("GPU-nobody"), 250'000_mW));
  EXPECT_EQ(driver_.writes(), 5U);
}

TEST_F(TwinDriverTest, LockedClocksHoldUntilReset) {
  EXPECT_FALSE(driver_.lock_clocks(a(), {Hertz(900e6), Hertz(300e6)}));
  EXPECT_TRUE(driver_.lock_clocks(a(), {Hertz(300e6), Hertz(900e6)}));
  clock_.advance(5_s);
  EXPECT_EQ(*driver_.read(a())->sm_clock, Hertz(900e6));
  EXPECT_TRUE(driver_.reset_clocks(a()));
  clock_.advance(5_s);
  EXPECT_GT(*driver_.read(a())->sm_clock, Hertz(1000e6));
}

TEST_F(TwinDriverTest, FaultsOfTheDriverShowAsTheyDoInTheField) {
  clock_.advance(5_s);
  TwinFaults& faults = driver_.faults(a());

  faults = {};
  faults.no_write_permission = true;
  EXPECT_EQ(driver_.set_power_limit(a(), 300'000_mW).error().code, ErrorCode::refused);
  EXPECT_EQ(driver_.capabilities(a())->write_limit, Status::no_permission);
  EXPECT_TRUE(driver_.read(a())->power_average.ok()) << "reads go on";

  faults = {};
  faults.set_unsupported = true;
  EXPECT_EQ(driver_.set_power_limit(a(), 300'000_mW).error().code, ErrorCode::unsupported);
  faults = {};
  faults.setter_fails = true;
  EXPECT_EQ(driver_.set_power_limit(a(), 300'000_mW).error().code, ErrorCode::failed);

  faults = {};
  faults.setter_lies = true;
  EXPECT_TRUE(driver_.set_power_limit(a(), 300'000_mW));
  EXPECT_EQ(*driver_.limits(a())->enforced, 400'000_mW);

  faults = {};
  faults.power_unsupported = faults.energy_unsupported = faults.limits_unsupported = true;
  EXPECT_EQ(driver_.read(a())->power_average.status, Status::not_supported);
  EXPECT_EQ(driver_.read(a())->energy.status, Status::not_supported);
  EXPECT_EQ(driver_.limits(a())->minimum.status, Status::not_supported);
  EXPECT_EQ(driver_.capabilities(a())->read_limits, Status::not_supported);

  faults = {};
  faults.garbage_power = Watts(4'294'967);
  EXPECT_EQ(*driver_.read(a())->power_average, Watts(4'294'967));
  faults = {};
  faults.reads_fail = true;
  EXPECT_FALSE(driver_.read(a()));
  EXPECT_TRUE(driver_.read(b())) << "one board's fault is its own";
}

TEST_F(TwinDriverTest, CallsAndHangsTakeTimeOnTheClock) {
  driver_.faults(a()).call_time = Seconds(0.015);
  const auto reading = driver_.read(a());
  EXPECT_NEAR(reading->call_time.value(), 0.015, 1e-9);
  driver_.faults(a()).hang_time = Seconds(120);
  const MonoTime before = clock_.now();
  EXPECT_FALSE(driver_.read(a()));
  EXPECT_NEAR((clock_.now() - before).value(), 120, 1e-9);
}

TEST_F(TwinDriverTest, ALostBoardStaysListed) {
  driver_.set_lost(a(), true);
  const auto devices = driver_.devices();
  ASSERT_TRUE(devices);
  ASSERT_EQ(devices->size(), 2U);
  EXPECT_EQ((*devices)[0].state, DeviceState::lost);
  EXPECT_EQ((*devices)[1].state, DeviceState::ok);
  EXPECT_EQ(driver_.read(a())->state, DeviceState::lost);
  EXPECT_EQ(driver_.limits(a())->enforced.status, Status::lost);
  EXPECT_FALSE(driver_.set_power_limit(a(), 300'000_mW));
}

TEST_F(TwinDriverTest, OthersChangeLimits) {
  EXPECT_TRUE(driver_.set_power_limit(a(), 300'000_mW));
  driver_.foreign_write(a(), 350'000_mW);
  EXPECT_EQ(*driver_.limits(a())->requested, 350'000_mW);
  driver_.set_bmc_ceiling(a(), 200'000_mW);
  EXPECT_EQ(*driver_.limits(a())->requested, 350'000_mW);
  EXPECT_EQ(*driver_.limits(a())->enforced, 200'000_mW);
  driver_.set_bmc_ceiling(a(), std::nullopt);
  driver_.set_brake(a(), true);
  clock_.advance(2_s);
  EXPECT_TRUE(driver_.read(a())->throttle.value.external_brake());
}

TEST_F(TwinDriverTest, AReloadForgetsLimitsUnlessPersistenceIsOn) {
  EXPECT_TRUE(driver_.set_power_limit(a(), 300'000_mW));
  const auto before = driver_.epoch();
  driver_.reload_driver();
  EXPECT_NE(*driver_.epoch(), *before);
  EXPECT_EQ(*driver_.limits(a())->requested, 300'000_mW);
  driver_.set_persistence(false);
  EXPECT_FALSE(*driver_.limits(a())->persistence);
  driver_.reload_driver();
  EXPECT_EQ(*driver_.limits(a())->requested, 400'000_mW);

  driver_.set_persistence(true);
  EXPECT_TRUE(driver_.set_power_limit(a(), 300'000_mW));
  const std::string boot = driver_.epoch()->boot_id;
  driver_.reboot();
  EXPECT_NE(driver_.epoch()->boot_id, boot);
  EXPECT_EQ(*driver_.limits(a())->requested, 400'000_mW);

  driver_.set_loaded(false);
  EXPECT_FALSE(driver_.devices());
  EXPECT_THAT(driver_.read(a()).error().message(), HasSubstr("not loaded"));
}

}  // namespace
}  // namespace flyball::device
