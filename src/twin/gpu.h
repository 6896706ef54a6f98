#pragma once
// One GPU: limit → clock → power → energy and heat → progress. Advanced in ticks by the job that runs on it.

#include <cstdint>
#include <optional>

#include "base/random.h"
#include "base/units.h"
#include "core/device.h"
#include "core/driver.h"
#include "core/reading.h"
#include "twin/parameters.h"
#include "twin/power_curve.h"
#include "twin/sensor.h"

namespace flyball::twin {

/// What the running program asks of the GPU for now.
struct Load {
  double activity = 0;       ///< of full power, while busy
  double compute_share = 1;  ///< share of busy time that follows the SM clock
  double wait_power_fraction = 0.4;
};

/// What is really so. For tests, accounts of a simulated run and the status of the fake; never for a policy.
struct GpuTruth {
  Watts power;  ///< mean over the last tick
  Joules energy;
  Celsius temperature;
  Hertz sm_clock;
  Hertz memory_clock;
  Milliwatts limit_requested;
  Milliwatts limit_enforced;
  ThrottleReasons throttle;
  double rate = 1;                  ///< speed of work relative to full clock
  double busy_fraction = 0;         ///< of the last tick, computing
  double utilisation_fraction = 0;  ///< as the driver counts it: waiting in a collective is busy too
  double fan_fraction = 0;
};

class Gpu {
 public:
  /// `curve` outlives the GPU. Boards of one seed differ by their stream.
  Gpu(const GpuParameters& parameters, const PowerCurve& curve, DeviceId id, Seconds tick, double speed, Random random);

  const DeviceId& id() const { return id_; }
  const GpuParameters& parameters() const { return parameters_; }

  // What can be done to a board. Limits are not range-checked here: that is the driver's part.
  void set_limit(Milliwatts limit);
  void lock_clocks(ClockRange range);
  void reset_clocks();
  std::optional<ClockRange> locked_clocks() const { return locked_; }
  /// A BMC or node-level cap, out of the driver's sight but for the enforced limit; none = empty.
  void set_external_ceiling(std::optional<Milliwatts> ceiling);
  void set_brake(bool on) { brake_ = on; }
  /// What a driver reload does with persistence off: default limit, clocks unlocked, counter from 0.
  void reload_driver();
  /// The board stops answering and working; it goes on drawing idle power.
  void set_lost(bool lost) { lost_ = lost; }
  bool lost() const { return lost_; }
  void set_speed(double speed);
  void set_inlet(Celsius inlet) { inlet_ = inlet.value(); }

  Milliwatts requested_limit() const { return requested_; }
  Milliwatts enforced_limit() const;

  // One tick, by the job: begin, any number of loads and spends that add up to the tick, end.
  void begin_tick();
  /// Sets the load and finds the operating point for it.
  void set_load(const Load& load);
  /// Work per second of job time, relative to the full clock; 0 when lost.
  double rate() const { return rate_; }
  void spend_busy(Seconds time) {
    spend(busy_power_, time.value());
    tick_busy_ += time.value();
    tick_used_ += time.value();
  }
  void spend_waiting(Seconds time) {
    spend(wait_power_, time.value());
    tick_used_ += time.value();
  }
  void spend_idle(Seconds time) { spend(idle_power_, time.value()); }
  void end_tick();

  GpuTruth truth() const;
  /// Of the truth, what a node's meters need each tick.
  Watts tick_power() const { return Watts(power_); }
  double tick_busy_fraction() const { return busy_fraction_; }
  const Sensor& sensor() const { return sensor_; }
  Sensor& sensor() { return sensor_; }

 private:
  void spend(double power, double time) {
    tick_energy_ += power * time;
    sensor_.feed(Watts(power), Seconds(time));
  }
  double leakage() const;
  void aim();

  GpuParameters parameters_;
  const PowerCurve* curve_;
  DeviceId id_;
  Sensor sensor_;
  Milliwatts requested_;
  std::optional<Milliwatts> external_ceiling_;
  double tick_;                                                        // s
  double per_tick_;                                                    // 1 / tick
  double power_scale_;                                                 // this board against the preset
  double inlet_;                                                       // °C
  double settle_decay_ = 0, overshoot_decay_ = 0, thermal_decay_ = 0;  // per tick
  double target_ = 0;                                                  // W, enforced
  double lag_ = 0;        // W, what the limit is still above (or below) its target
  double overshoot_ = 0;  // W
  double clock_ceiling_ = 1;
  std::optional<ClockRange> locked_;
  double thermal_ceiling_ = 1;
  bool brake_ = false, lost_ = false;
  Load load_;
  double temperature_, fan_ = 0.3;
  double clock_ = 1, rate_ = 1, busy_power_ = 0, wait_power_ = 0, idle_power_ = 0;
  bool limited_ = false;
  double tick_energy_ = 0, tick_busy_ = 0, tick_used_ = 0;
  double energy_ = 0, power_ = 0, busy_fraction_ = 0, utilisation_ = 0;
};

}  // namespace flyball::twin
