#include "evaluate/curve_plant.h"

#include <algorithm>
#include <cmath>

namespace flyball::evaluate {
namespace {

constexpr Seconds kBlock{10};
/// Tokens per second at the highest limit: large, so that whole tokens are exact enough to time by.
constexpr double kTokensPerSecond = 1e7;

}  // namespace

CurvePlant::CurvePlant(const curve::Curve& curve, const Noise& noise, std::uint64_t seed, const Clock& clock)
    : curve_(curve),
      noise_(noise),
      random_(seed),
      clock_(clock),
      id_(DeviceId::of("GPU-curve")),
      limit_(Milliwatts::from(curve.highest())),
      lowest_(Milliwatts::from(curve.lowest())),
      highest_(limit_),
      now_(clock.now()),
      block_end_(now_) {
  drift_ = noise_.drift * random_.normal();
  (void)set_power_limit(id_, limit_);
}

void CurvePlant::draw_block() {
  const double keep = std::exp(-(kBlock / noise_.drift_time));
  drift_ = keep * drift_ + noise_.drift * std::sqrt(1 - keep * keep) * random_.normal();
  speed_ = std::exp(drift_) * std::max(0.0, 1 + noise_.throughput * random_.normal());
  draw_ = std::max(0.0, 1 + noise_.power * random_.normal());
  block_end_ = block_end_ + kBlock;
}

void CurvePlant::follow_clock() {
  while (now_ < clock_.now()) {
    if (now_ >= block_end_) draw_block();
    const MonoTime next = std::min(block_end_, clock_.now());
    const double time = (next - now_).value();
    energy_ += power_ * draw_ * time;
    tokens_ += rate_ * speed_ * time;
    now_ = next;
  }
}

Result<> CurvePlant::check(const DeviceId& device) const {
  if (device == id_) return {};
  return fail(ErrorCode::input, "there is no such GPU", device.text());
}

Result<std::vector<DeviceInfo>> CurvePlant::devices() {
  DeviceInfo info;
  info.id = id_;
  info.name = "measured curve";
  return std::vector<DeviceInfo>{info};
}

Result<GpuReading> CurvePlant::read(const DeviceId& device) {
  FLYBALL_TRY(check(device));
  follow_clock();
  GpuReading reading;
  reading.device = id_;
  reading.taken = clock_.now();
  reading.wall = clock_.wall();
  reading.power_average = Watts(power_ * draw_);
  reading.energy = Joules(energy_);
  reading.utilisation_fraction = 1.0;
  reading.limit_requested = reading.limit_enforced = limit_;
  return reading;
}

Result<PowerLimits> CurvePlant::limits(const DeviceId& device) {
  FLYBALL_TRY(check(device));
  return PowerLimits{limit_, limit_, lowest_, highest_, highest_, true};
}

Result<Capabilities> CurvePlant::capabilities(const DeviceId& device) {
  FLYBALL_TRY(check(device));
  return Capabilities{Status::ok, Status::not_supported, Status::ok, Status::ok, Status::ok, Status::not_supported};
}

Result<> CurvePlant::set_power_limit(const DeviceId& device, Milliwatts limit) {
  FLYBALL_TRY(check(device));
  follow_clock();
  limit_ = limit;
  power_ = curve_.power(limit.watts()).value();
  rate_ = kTokensPerSecond * curve_.speed_fraction(limit.watts());
  return {};
}

Result<> CurvePlant::lock_clocks(const DeviceId&, ClockRange) {
  return fail(ErrorCode::unsupported, "a curve over power limits has no clocks");
}

Result<> CurvePlant::reset_clocks(const DeviceId&) {
  return fail(ErrorCode::unsupported, "a curve over power limits has no clocks");
}

Sample<WorkloadProgress> CurvePlant::progress() {
  follow_clock();
  return WorkloadProgress{now_, Phase::training, static_cast<std::uint64_t>(tokens_ / kTokensPerSecond),
                          static_cast<std::uint64_t>(tokens_)};
}

Joules CurvePlant::energy() {
  follow_clock();
  return Joules(energy_);
}

double CurvePlant::tokens() {
  follow_clock();
  return tokens_;
}

}  // namespace flyball::evaluate
