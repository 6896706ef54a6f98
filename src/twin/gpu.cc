#include "twin/gpu.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace flyball::twin {

namespace {

constexpr double kFanIdle = 0.3, kFanFull = 1.0;          // share of full speed
constexpr double kFanStart = 50.0, kFanPerKelvin = 0.02;  // full at 85 °C, as board fan curves usually are
constexpr double kUtilisationWindow = 1.0;                // s; NVML's sample period is between 1/6 s and 1 s
constexpr double kThermalClockPerKelvin = 0.1;            // clock given up per kelvin above the slowdown temperature
constexpr double kLowestThermalClock = 0.3;

double decay(double tick, double time_constant) { return time_constant > 0 ? std::exp(-tick / time_constant) : 0; }

}  // namespace

Gpu::Gpu(const GpuParameters& parameters, const PowerCurve& curve, DeviceId id, Seconds tick, double speed,
         Random random)
    : parameters_(parameters),
      curve_(&curve),
      id_(std::move(id)),
      sensor_(parameters, random.fork(1)),
      requested_(Milliwatts::from(parameters.default_limit)),
      tick_(tick.value()),
      per_tick_(1 / tick_),
      power_scale_(std::max(0.5, 1 + parameters.board_power_sd * random.normal())),
      inlet_(parameters.inlet_temperature.value()),
      settle_decay_(decay(tick_, parameters.settle_time.value())),
      overshoot_decay_(decay(tick_, parameters.overshoot_time.value())),
      target_(parameters.default_limit.value()),
      temperature_(inlet_ + parameters.thermal_resistance * parameters.idle_power.value()),
      idle_power_(parameters.idle_power.value()) {
  set_speed(speed);
}

void Gpu::set_speed(double speed) { thermal_decay_ = decay(tick_ * speed, parameters_.thermal_time.value()); }

Milliwatts Gpu::enforced_limit() const {
  return external_ceiling_ ? std::min(*external_ceiling_, requested_) : requested_;
}

void Gpu::aim() {
  const double aim = enforced_limit().watts().value();
  if (aim == target_) return;
  double from = target_ + lag_;
  if (aim < target_) {
    // The regulator starts from what the board draws, not from a limit that did not bind.
    from = std::max(aim, std::min(from, busy_power_));
    overshoot_ += parameters_.overshoot_fraction * (from - aim);
  }
  lag_ = from - aim;
  target_ = aim;
}

void Gpu::set_limit(Milliwatts limit) {
  requested_ = limit;
  aim();
}

void Gpu::set_external_ceiling(std::optional<Milliwatts> ceiling) {
  external_ceiling_ = ceiling;
  aim();
}

void Gpu::lock_clocks(ClockRange range) {
  clock_ceiling_ = std::clamp(range.high / parameters_.maximum_clock, 0.0, 1.0);
  locked_ = range;
}

void Gpu::reset_clocks() {
  clock_ceiling_ = 1;
  locked_.reset();
}

void Gpu::reload_driver() {
  set_limit(Milliwatts::from(parameters_.default_limit));
  reset_clocks();
  sensor_.reset_counter();
}

double Gpu::leakage() const {
  return parameters_.leakage_per_kelvin * (temperature_ - parameters_.reference_temperature.value());
}

void Gpu::begin_tick() {
  lag_ *= settle_decay_;
  overshoot_ *= overshoot_decay_;
  idle_power_ = std::max(0.0, parameters_.idle_power.value() + leakage());
  tick_energy_ = tick_busy_ = tick_used_ = 0;
}

void Gpu::set_load(const Load& load) {
  load_ = load;
  if (lost_ || load.activity <= 0) {
    busy_power_ = wait_power_ = idle_power_;
    rate_ = lost_ ? 0 : 1;
    clock_ = parameters_.minimum_clock / parameters_.maximum_clock;
    limited_ = false;
    return;
  }
  // The curve is that of a nominal board at activity 1 and reference temperature: the limit is carried over to it and
  // the power back.
  const double idle = parameters_.idle_power.value();
  const double leak = idle_power_ - idle;
  const double scale = power_scale_ * load.activity;
  OperatingPoint point = curve_->at_limit(Watts(idle + (target_ + lag_ + overshoot_ - leak - idle) / scale));
  const double ceiling = std::min({clock_ceiling_, thermal_ceiling_, brake_ ? parameters_.brake_clock_fraction : 1.0});
  if (point.clock_fraction > ceiling) point = curve_->at_clock(ceiling);
  clock_ = point.clock_fraction;
  limited_ = point.limited;
  rate_ = rate_at(point.pace_fraction, load.compute_share);
  busy_power_ = idle + scale * (point.power.value() - idle) + leak;
  wait_power_ = std::max(idle_power_, load.wait_power_fraction * busy_power_);
}

void Gpu::end_tick() {
  energy_ += tick_energy_;
  power_ = tick_energy_ * per_tick_;
  busy_fraction_ = tick_busy_ * per_tick_;
  utilisation_ += (tick_used_ * per_tick_ - utilisation_) * std::min(1.0, tick_ / kUtilisationWindow);
  double resistance = parameters_.thermal_resistance;
  if (parameters_.has_fan) {
    fan_ = std::clamp(kFanIdle + kFanPerKelvin * (temperature_ - kFanStart), kFanIdle, kFanFull);
    resistance *= 1 + parameters_.fan_resistance_gain * (1 - fan_);
  }
  const double settled = inlet_ + resistance * power_;
  temperature_ = settled + (temperature_ - settled) * thermal_decay_;
  const double over = temperature_ - parameters_.slowdown_temperature.value();
  thermal_ceiling_ = over > 0 ? std::max(kLowestThermalClock, 1 - kThermalClockPerKelvin * over) : 1;
}

GpuTruth Gpu::truth() const {
  GpuTruth t;
  t.power = Watts(power_);
  t.energy = Joules(energy_);
  t.temperature = Celsius(temperature_);
  t.sm_clock = parameters_.maximum_clock * clock_;
  t.memory_clock = parameters_.memory_clock;
  t.limit_requested = requested_;
  t.limit_enforced = enforced_limit();
  if (load_.activity <= 0) t.throttle.bits |= ThrottleReasons::kIdle;
  if (limited_) t.throttle.bits |= ThrottleReasons::kSoftwarePowerCap;
  if (brake_) t.throttle.bits |= ThrottleReasons::kPowerBrake | ThrottleReasons::kHardwareSlowdown;
  if (thermal_ceiling_ < 1) t.throttle.bits |= ThrottleReasons::kSoftwareThermal;
  if (temperature_ > parameters_.shutdown_temperature.value()) {
    t.throttle.bits |= ThrottleReasons::kHardwareThermal | ThrottleReasons::kHardwareSlowdown;
  }
  t.rate = rate_;
  t.busy_fraction = busy_fraction_;
  t.utilisation_fraction = std::clamp(utilisation_, 0.0, 1.0);
  t.fan_fraction = parameters_.has_fan ? fan_ : 0;
  return t;
}

}  // namespace flyball::twin
