#include "twin/gpu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "twin/clock_preset.h"
#include "twin/machine.h"

namespace flyball::twin {
namespace {

using namespace flyball::literals;

/// A machine without noise, so that a coupling shows by itself.
MachineParameters quiet() {
  MachineParameters p;
  p.job.throughput_noise_sd = 0;
  p.job.drift_sd = 0;
  p.gpu.board_power_sd = 0;
  p.gpu.sensor_gain_sd = 0;
  p.gpu.counter_gain_sd = 0;
  p.job.exposed_wait_fraction = 0;
  p.job.activity_fraction = 1;
  return p;
}

// The knots of the fit are what a board does under a locked clock, and what a limit at that power leads to.
TEST(PowerCurve, FollowsMeasuredClocks) {
  for (const std::string& name : clock_preset_names()) {
    const ClockPreset preset = *clock_preset(name);
    if (preset.points.empty()) continue;
    MachineParameters p = quiet();
    p.preset = name;
    p.gpu = *gpu_preset("a100-sxm4-80gb-500w");
    p.gpu.board_power_sd = p.gpu.leakage_per_kelvin = 0;
    p.gpu.settle_time = 0_s;
    for (const ClockPoint& point : preset.points) {
      auto locked = Machine::create(p);
      ASSERT_TRUE(locked) << locked.error().message();
      locked->gpus()[0].lock_clocks({Hertz(0), point.clock});
      locked->advance(100_s);
      EXPECT_NEAR(locked->job().last_step().duration.value() / p.job.step_time.value() / point.time, 1, 2e-3);
      EXPECT_NEAR(locked->gpus()[0].truth().power / point.power, 1, 2e-3);
      EXPECT_NEAR(locked->gpus()[0].truth().sm_clock / point.clock, 1, 1e-9);
      auto limited = Machine::create(p);
      limited->gpus()[0].set_limit(Milliwatts::from(point.power));
      limited->advance(100_s);
      EXPECT_NEAR(limited->job().last_step().duration / locked->job().last_step().duration, 1, 5e-3);
    }
    EXPECT_FALSE(preset.source.empty());
    EXPECT_FALSE(preset.licence.empty());
  }
}

TEST(PowerCurve, ParametricInvertsItsOwnFormula) {
  const GpuParameters p;
  const PowerCurve curve = PowerCurve::parametric(p);
  for (double x = 0.2; x <= 1.0; x += 0.05) {
    const OperatingPoint by_clock = curve.at_clock(x);
    const OperatingPoint by_limit = curve.at_limit(by_clock.power);
    EXPECT_NEAR(by_limit.clock_fraction, x, 0.005) << "at clock " << x;
    EXPECT_NEAR(by_limit.power.value(), by_clock.power.value(), 1.0);
  }
  EXPECT_TRUE(curve.at_limit(Watts(200)).limited);
  EXPECT_FALSE(curve.at_limit(Watts(500)).limited);
  EXPECT_DOUBLE_EQ(curve.at_limit(Watts(500)).clock_fraction, 1.0);
}

TEST(PowerCurve, BelowTheLowestClockTheLimitIsNotReached) {
  const PowerCurve curve = PowerCurve::parametric(GpuParameters{});
  const OperatingPoint point = curve.at_limit(Watts(10));
  EXPECT_GT(point.power, Watts(10));
  EXPECT_TRUE(point.limited);
}

TEST(PowerCurve, MeasuredRunsAtTheMeasuredSpeedAndPower) {
  const curve::Point points[] = {{Milliwatts(100'000), Seconds(13.1), Watts(108)},
                                 {Milliwatts(150'000), Seconds(10.6), Watts(148)},
                                 {Milliwatts(200'000), Seconds(10.1), Watts(188)},
                                 {Milliwatts(250'000), Seconds(10.0), Watts(205)}};
  const auto measured = curve::Curve::monotone(points);
  ASSERT_TRUE(measured);
  const double share = 0.8;
  const PowerCurve curve = PowerCurve::measured(*measured, share, GpuParameters{});
  for (double limit = 100; limit <= 250; limit += 12.5) {
    const OperatingPoint point = curve.at_limit(Watts(limit));
    EXPECT_NEAR(rate_at(point.clock_fraction, share), measured->speed_fraction(Watts(limit)), 2e-4) << limit;
    EXPECT_NEAR(point.power.value(), measured->power(Watts(limit)).value(), 0.05) << limit;
  }
  EXPECT_GT(curve.at_limit(Watts(100)).power, Watts(100)) << "this board cannot go as low as it is asked to";
}

TEST(Machine, LowerLimitLowersClockPowerHeatAndProgress) {
  double last_clock = 0, last_power = 0, last_temperature = 0, last_tokens = 0;
  for (const std::int64_t limit : {120'000, 180'000, 240'000, 300'000, 400'000}) {
    auto machine = Machine::create(quiet());
    ASSERT_TRUE(machine);
    machine->gpus()[0].set_limit(Milliwatts(limit));
    machine->advance(600_s);
    const GpuTruth truth = machine->gpus()[0].truth();
    EXPECT_NEAR(truth.power.value(), static_cast<double>(limit) / 1000, 0.5) << "the limit binds and holds";
    EXPECT_GT(truth.sm_clock.value(), last_clock);
    EXPECT_GT(truth.power.value(), last_power);
    EXPECT_GT(truth.temperature.value(), last_temperature);
    EXPECT_GT(machine->job().exact_tokens(), last_tokens);
    EXPECT_TRUE(truth.throttle.software_power_cap());
    EXPECT_FALSE(truth.throttle.external_brake());
    last_clock = truth.sm_clock.value();
    last_power = truth.power.value();
    last_temperature = truth.temperature.value();
    last_tokens = machine->job().exact_tokens();
  }
}

TEST(Machine, EnergyIsTheIntegralOfPower) {
  auto machine = Machine::create(quiet());
  ASSERT_TRUE(machine);
  Joules sum;
  for (int i = 0; i < 3000; ++i) {
    machine->advance(machine->parameters().tick);
    sum += machine->power() * machine->parameters().tick;
  }
  EXPECT_NEAR(machine->energy() / sum, 1.0, 1e-9);
  EXPECT_NEAR(machine->gpus()[0].sensor().counter() / sum, 1.0, 1e-3);
}

TEST(Gpu, ALimitIsFeltWithItsSettleTimeAndOvershoots) {
  MachineParameters p = quiet();
  p.gpu.settle_time = 2_s;
  p.gpu.overshoot_fraction = 0.5;
  p.gpu.overshoot_time = 1_s;
  p.gpu.default_limit = 300_W;
  auto machine = Machine::create(p);
  ASSERT_TRUE(machine);
  machine->advance(60_s);
  const Watts before = machine->power();
  machine->gpus()[0].set_limit(200'000_mW);
  machine->advance(0.1_s);
  EXPECT_GT(machine->power(), before) << "a step down goes up first on this board";
  machine->advance(2_s);
  EXPECT_GT(machine->power(), 210_W);
  machine->advance(20_s);
  EXPECT_NEAR(machine->power().value(), 200, 0.5);
}

TEST(Gpu, LeakageCostsSpeedUnderALimitAndPowerWithout) {
  MachineParameters cold = quiet();
  cold.gpu.default_limit = 250_W;
  MachineParameters hot = cold;
  hot.gpu.inlet_temperature = Celsius(50);
  auto a = Machine::create(cold);
  auto b = Machine::create(hot);
  a->advance(600_s);
  b->advance(600_s);
  EXPECT_NEAR(a->power().value(), b->power().value(), 0.5);
  EXPECT_GT(a->job().exact_tokens(), b->job().exact_tokens());
  for (auto* machine : {&*a, &*b}) machine->gpus()[0].lock_clocks({Hertz(210e6), Hertz(700e6)});
  a->advance(600_s);
  b->advance(600_s);
  EXPECT_LT(a->power() + 2_W, b->power());
}

TEST(Gpu, TemperatureLagsPower) {
  MachineParameters p = quiet();
  auto machine = Machine::create(p);
  const double start = machine->gpus()[0].truth().temperature.value();
  const double end = p.gpu.inlet_temperature.value() + p.gpu.thermal_resistance * 400;
  machine->advance(p.gpu.thermal_time);
  EXPECT_NEAR(machine->gpus()[0].truth().temperature.value(), end + (start - end) * std::exp(-1), 0.6);
}

TEST(Gpu, HeatSlowsItBeforeItBreaks) {
  MachineParameters p = quiet();
  p.gpu.inlet_temperature = Celsius(70);
  auto machine = Machine::create(p);
  machine->advance(900_s);
  const GpuTruth truth = machine->gpus()[0].truth();
  EXPECT_TRUE(truth.throttle.thermal());
  EXPECT_LT(truth.temperature, p.gpu.shutdown_temperature);
  EXPECT_LT(truth.power, 395_W);
}

TEST(Gpu, LockedClocksAndBrakeHoldTheClockDown) {
  auto machine = Machine::create(quiet());
  Gpu& gpu = machine->gpus()[0];
  gpu.lock_clocks({Hertz(210e6), Hertz(900e6)});
  machine->advance(5_s);
  EXPECT_NEAR(gpu.truth().sm_clock.value(), 900e6, 1e6);
  EXPECT_FALSE(gpu.truth().throttle.software_power_cap());
  gpu.reset_clocks();
  gpu.set_brake(true);
  machine->advance(5_s);
  EXPECT_NEAR(gpu.truth().sm_clock.value(), 705e6, 1e6);
  EXPECT_TRUE(gpu.truth().throttle.external_brake());
  gpu.set_brake(false);
  machine->advance(5_s);
  EXPECT_GT(gpu.truth().sm_clock.value(), 1.2e9);
}

TEST(Gpu, ABmcCeilingHidesBehindTheRequestedLimit) {
  auto machine = Machine::create(quiet());
  Gpu& gpu = machine->gpus()[0];
  gpu.set_external_ceiling(Milliwatts(220'000));
  machine->advance(10_s);
  EXPECT_EQ(gpu.truth().limit_requested, Milliwatts(400'000));
  EXPECT_EQ(gpu.truth().limit_enforced, Milliwatts(220'000));
  EXPECT_NEAR(machine->power().value(), 220, 0.5);
}

TEST(Machine, SpeedMovesJobAndHeatButNotEnergyOrSensor) {
  MachineParameters p = quiet();
  auto real = Machine::create(p);
  p.speed = 20;
  auto fast = Machine::create(p);
  real->advance(60_s);
  fast->advance(60_s);
  EXPECT_NEAR(fast->job().exact_tokens() / real->job().exact_tokens(), 20, 0.5);
  EXPECT_GT(fast->gpus()[0].truth().temperature, real->gpus()[0].truth().temperature);
  EXPECT_NEAR(fast->energy() / real->energy(), 1, 0.03);
  EXPECT_EQ(fast->gpus()[0].sensor().refreshes(), real->gpus()[0].sensor().refreshes());
}

TEST(Machine, TheSliceOfTimeDoesNotChangeTheResult) {
  MachineParameters p;
  p.gpus = 3;
  auto a = Machine::create(p);
  auto b = Machine::create(p);
  a->advance(Seconds(123.4));
  for (int i = 0; i < 1234; ++i) b->advance(Seconds(i % 2 == 0 ? 0.03 : 0.17));
  EXPECT_EQ(a->now(), b->now());
  EXPECT_EQ(a->energy(), b->energy());
  EXPECT_EQ(a->job().exact_tokens(), b->job().exact_tokens());
}

TEST(Machine, SameSeedSameRunOtherSeedOtherBoards) {
  MachineParameters p;
  p.gpus = 2;
  auto a = Machine::create(p);
  auto b = Machine::create(p);
  p.seed = 2;
  auto c = Machine::create(p);
  for (auto* machine : {&*a, &*b, &*c}) machine->advance(100_s);
  EXPECT_EQ(a->energy(), b->energy());
  EXPECT_NE(a->energy(), c->energy());
  EXPECT_EQ(a->gpus()[0].id(), b->gpus()[0].id());
  EXPECT_NE(a->gpus()[0].id(), a->gpus()[1].id());
  EXPECT_NE(a->gpus()[0].id(), c->gpus()[0].id());
}

}  // namespace
}  // namespace flyball::twin
