#pragma once
// The plainest plant there is: one board on a measured curve, whose speed is disturbed as that of real jobs is. For
// comparing policies over thousands of runs; what a curve does not have (steps, sensors, heat) the twin has.

#include <cstdint>

#include "base/clock.h"
#include "base/random.h"
#include "core/driver.h"
#include "curve/curve.h"
#include "evaluate/plant.h"
#include "loop/progress.h"

namespace flyball::evaluate {

struct Noise {
  double throughput = 0.003;  ///< of tokens per 10 s, white
  double drift = 0.005;       ///< slow change of throughput (Ornstein-Uhlenbeck), stationary sd
  Seconds drift_time{3600};
  double power = 0.003;  ///< of power per 10 s, white
};

/// Disturbances come in blocks of 10 s and are the same for one seed whatever the limits are, so that a run and its
/// counterfactual share them. Limits take hold at once. Tokens are reported at any time, without the grain of steps.
class CurvePlant final : public Plant, public Driver, public loop::ProgressSource {
 public:
  /// The curve and the clock outlive the plant.
  CurvePlant(const curve::Curve& curve, const Noise& noise, std::uint64_t seed, const Clock& clock);

  std::string name() const override { return "curve"; }
  Result<DriverEpoch> epoch() override { return DriverEpoch{"curve", "1", "1"}; }
  Result<std::vector<DeviceInfo>> devices() override;
  Result<GpuReading> read(const DeviceId& device) override;
  Result<PowerLimits> limits(const DeviceId& device) override;
  Result<Capabilities> capabilities(const DeviceId& device) override;
  Result<> set_power_limit(const DeviceId& device, Milliwatts limit) override;
  Result<> lock_clocks(const DeviceId&, ClockRange) override;
  Result<> reset_clocks(const DeviceId&) override;

  Sample<WorkloadProgress> progress() override;

  Driver& driver() override { return *this; }
  loop::ProgressSource& job() override { return *this; }
  Milliwatts limit() override { return limit_; }
  Joules energy() override;
  double tokens() override;

 private:
  void follow_clock();
  void draw_block();
  Result<> check(const DeviceId& device) const;

  const curve::Curve& curve_;
  Noise noise_;
  Random random_;
  const Clock& clock_;
  DeviceId id_;
  Milliwatts limit_, lowest_, highest_;
  MonoTime now_, block_end_;
  double drift_ = 0, speed_ = 1, draw_ = 1;
  double energy_ = 0, tokens_ = 0;
  double power_ = 0, rate_ = 0;  ///< of the curve at the limit
};

}  // namespace flyball::evaluate
