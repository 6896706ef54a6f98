#include "twin/sensor.h"

#include <gtest/gtest.h>

#include <cmath>

namespace flyball::twin {
namespace {

GpuParameters exact() {
  GpuParameters p;
  p.sensor_gain_sd = 0;
  p.counter_gain_sd = 0;
  p.sensor_look_fraction = 1;
  p.sensor_average = Seconds(1);
  return p;
}

TEST(Sensor, AverageTrailsBySecondInstantDoesNot) {
  Sensor sensor(exact(), Random(1));
  sensor.feed(Watts(100), Seconds(5));
  sensor.feed(Watts(300), Seconds(0.5));
  EXPECT_NEAR(sensor.instant().value(), 300, 1e-6);
  EXPECT_NEAR(sensor.average().value(), 200, 1e-6) << "half of its second is old";
  sensor.feed(Watts(300), Seconds(0.5));
  EXPECT_NEAR(sensor.average().value(), 300, 1e-6);
}

TEST(Sensor, ReadsBetweenRefreshesAreRepeats) {
  Sensor sensor(exact(), Random(1));
  sensor.feed(Watts(100), Seconds(0.1));
  const auto refreshes = sensor.refreshes();
  const Joules counter = sensor.counter();
  sensor.feed(Watts(500), Seconds(0.09));
  EXPECT_EQ(sensor.refreshes(), refreshes);
  EXPECT_EQ(sensor.counter(), counter);
  EXPECT_NEAR(sensor.instant().value(), 100, 1e-6);
  sensor.feed(Watts(500), Seconds(0.011));
  EXPECT_EQ(sensor.refreshes(), refreshes + 1);
}

TEST(Sensor, AQuarterOfTheTimeAliasesPeriodicLoadAndTheCounterDoesNot) {
  GpuParameters p = exact();
  p.sensor_look_fraction = 0.25;
  Sensor sensor(p, Random(1));
  // 300 W in the first half of each refresh period, 100 W in the second, where the sensor looks.
  for (int i = 0; i < 100; ++i) {
    sensor.feed(Watts(300), Seconds(0.05));
    sensor.feed(Watts(100), Seconds(0.05));
  }
  sensor.feed(Watts(100), Seconds(0.001));
  EXPECT_NEAR(sensor.average().value(), 100, 1e-6);
  EXPECT_NEAR(sensor.counter().value(), 2000, 0.1);
}

TEST(Sensor, CounterHasItsResolutionAndFallsWhenReset) {
  GpuParameters p = exact();
  p.counter_resolution = Joules(1);
  Sensor sensor(p, Random(1));
  sensor.feed(Watts(33.3), Seconds(10.05));
  EXPECT_EQ(sensor.counter(), Joules(std::floor(33.3 * 10)));
  sensor.reset_counter();
  EXPECT_EQ(sensor.counter(), Joules(0));
  sensor.feed(Watts(33.3), Seconds(1));
  EXPECT_LT(sensor.counter(), Joules(40));
}

TEST(Sensor, BoardsAreOffByTheirOwnGain) {
  GpuParameters p = exact();
  p.sensor_gain_sd = 0.02;
  Sensor a(p, Random(1));
  Sensor b(p, Random(2));
  a.feed(Watts(200), Seconds(2.05));
  b.feed(Watts(200), Seconds(2.05));
  EXPECT_NE(a.average(), b.average());
  EXPECT_NEAR(a.average().value(), 200, 20);
}

}  // namespace
}  // namespace flyball::twin
