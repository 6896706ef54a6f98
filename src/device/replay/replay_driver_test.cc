#include "device/replay/replay_driver.h"

#include <gtest/gtest.h>

namespace flyball::device {
namespace {

const series::SeriesKey kPower{DeviceId::of("GPU-a"), Signal::power_average, Scope::board, "nvml"};
const series::SeriesKey kLimit{DeviceId::of("GPU-a"), Signal::limit_enforced, Scope::board, "nvml"};
const DeviceId kGpu = DeviceId::of("GPU-a");

struct Played {
  Played() {
    EXPECT_TRUE(driver.add_series(kPower, Seconds(1)));
    EXPECT_TRUE(driver.add_series(kLimit, Seconds(0)));
  }
  void feed(double watts, Status status = Status::ok) { driver.feed(kPower, {clock.wall(), watts, status}); }
  Sample<Watts> power() { return driver.read(kGpu)->power_average; }

  VirtualClock clock;
  ReplayDriver driver{clock};
};

TEST(ReplayDriver, PlaysWhatWasThenAndSaysWhenItIsOld) {
  Played played;
  EXPECT_EQ(played.power().status, Status::missing);
  played.feed(200);
  played.driver.feed(kLimit, {played.clock.wall(), 300, Status::ok});
  EXPECT_EQ(played.power().value, Watts(200));
  EXPECT_EQ(played.driver.read(kGpu)->energy.status, Status::not_supported);
  played.clock.advance(Seconds(2));
  played.feed(202);
  played.clock.advance(Seconds(0.5));
  const auto reading = played.driver.read(kGpu);
  EXPECT_EQ(reading->power_average.value, Watts(202));
  EXPECT_EQ(reading->taken, MonoTime(2'000'000'000));
  EXPECT_EQ(played.power().status, Status::unchanged) << "no new information is no value again";
  EXPECT_EQ(*played.driver.limits(kGpu)->enforced, Milliwatts(300'000));
  played.clock.advance(Seconds(3));
  EXPECT_EQ(played.power().status, Status::stale);
  EXPECT_EQ(*played.driver.limits(kGpu)->enforced, Milliwatts(300'000)) << "a limit stays until another is seen";
}

TEST(ReplayDriver, AReadThatFailedThenFailsAgainAndWhatABoardLacksStaysSo) {
  Played played;
  played.feed(0, Status::failed);
  EXPECT_FALSE(played.driver.read(kGpu));
  played.clock.advance(Seconds(1));
  played.feed(0, Status::not_supported);
  played.clock.advance(Seconds(100));
  played.driver.feed(kLimit, {played.clock.wall(), 300, Status::ok});
  EXPECT_EQ(played.power().status, Status::not_supported);
  played.feed(0, Status::lost);
  EXPECT_EQ(played.driver.read(kGpu)->state, DeviceState::lost);
}

TEST(ReplayDriver, WritesNothingAndKnowsOnlyItsDevices) {
  Played played;
  const auto refused = played.driver.set_power_limit(kGpu, Milliwatts(200'000));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_NE(refused.error().message().find("recording"), std::string::npos);
  EXPECT_FALSE(played.driver.lock_clocks(kGpu, {}));
  EXPECT_FALSE(played.driver.reset_clocks(kGpu));
  EXPECT_FALSE(played.driver.limits(kGpu)->minimum.ok());  // so no guard writes
  EXPECT_FALSE(played.driver.read(DeviceId::of("GPU-b")));
  EXPECT_EQ(played.driver.devices()->size(), 1U);
}

TEST(ReplayDriver, ASecondSourceIsNotMixedInAndWithoutPowerThereIsNoBoard) {
  Played played;
  series::SeriesKey other = kPower;
  other.source = "nvidia-smi";
  EXPECT_FALSE(played.driver.add_series(other, Seconds(1)));
  EXPECT_EQ(played.driver.boards(), 1U);
  other.device = DeviceId::of("GPU-b");
  other.signal = Signal::temperature;
  EXPECT_TRUE(played.driver.add_series(other, Seconds(1)));
  EXPECT_EQ(played.driver.boards(), 1U);
  EXPECT_EQ(played.driver.devices()->size(), 1U);
}

}  // namespace
}  // namespace flyball::device
