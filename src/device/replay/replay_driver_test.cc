#include "device/replay/replay_driver.h"

#include <gtest/gtest.h>

namespace flyball::device {
namespace {

const DeviceId kGpu = DeviceId::of("GPU-a");
constexpr std::int64_t kSecond = 1'000'000'000;

series::Recording recording() {
  const WallTime start = VirtualClock().wall();
  series::Recording r;
  r.series.push_back({{kGpu, Signal::power_average, Scope::board, "nvml"}, {}});
  r.series.push_back({{kGpu, Signal::limit_enforced, Scope::board, "nvml"}, {{start, 300, Status::ok}}});
  for (int i = 0; i < 10; ++i) {
    if (i == 4) continue;  // one sample is lost
    r.series[0].points.push_back(
        {WallTime(start.nanoseconds() + i * kSecond), 200.0 + i, i == 5 ? Status::failed : Status::ok});
  }
  return r;
}

TEST(ReplayDriver, PlaysWhatWasThenAndSaysWhenItIsOld) {
  VirtualClock clock;
  auto driver = ReplayDriver::create(recording(), clock);
  ASSERT_TRUE(driver);
  EXPECT_EQ(driver->read(kGpu)->power_average.value, Watts(200));
  clock.advance(Seconds(2.5));
  const auto reading = driver->read(kGpu);
  EXPECT_EQ(reading->power_average.value, Watts(202));
  EXPECT_EQ(reading->taken, MonoTime(2 * kSecond));
  EXPECT_EQ(*reading->limit_enforced, Milliwatts(300'000));
  clock.advance(Seconds(2));  // the lost sample: the one before still holds
  EXPECT_EQ(driver->read(kGpu)->power_average.value, Watts(203));
  clock.advance(Seconds(1));
  EXPECT_EQ(driver->read(kGpu)->power_average.status, Status::failed);
  clock.advance(Seconds(100));
  EXPECT_EQ(driver->read(kGpu)->power_average.status, Status::stale);
  clock.step_wall(Seconds(-105));  // back to the start
  EXPECT_EQ(driver->read(kGpu)->power_average.value, Watts(200));
  clock.step_wall(Seconds(-1000));
  EXPECT_EQ(driver->read(kGpu)->power_average.status, Status::missing);
  EXPECT_EQ(driver->read(kGpu)->energy.status, Status::not_supported);
}

TEST(ReplayDriver, WritesNothingAndKnowsOnlyItsDevices) {
  const VirtualClock clock;
  auto driver = ReplayDriver::create(recording(), clock);
  ASSERT_TRUE(driver);
  const auto refused = driver->set_power_limit(kGpu, Milliwatts(200'000));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_NE(refused.error().message().find("recording"), std::string::npos);
  EXPECT_FALSE(driver->lock_clocks(kGpu, {}));
  EXPECT_FALSE(driver->reset_clocks(kGpu));
  EXPECT_FALSE(driver->limits(kGpu)->minimum.ok());  // so no guard writes
  EXPECT_FALSE(driver->read(DeviceId::of("GPU-b")));
  EXPECT_EQ(driver->devices()->size(), 1U);
}

TEST(ReplayDriver, RecordingWithoutPowerIsRefused) {
  const VirtualClock clock;
  series::Recording r = recording();
  r.series.erase(r.series.begin());
  EXPECT_FALSE(ReplayDriver::create(r, clock));
}

}  // namespace
}  // namespace flyball::device
