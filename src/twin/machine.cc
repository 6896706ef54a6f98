#include "twin/machine.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace flyball::twin {

namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

}  // namespace

DeviceId board_id(std::uint64_t seed, std::size_t index) {
  Random random(seed * 1'000'003 + index);
  const std::uint64_t a = random.bits();
  const std::uint64_t b = random.bits();
  // The form of a random UUID (RFC 4122, version 4).
  return DeviceId::of(fmt::format("GPU-{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", a >> 32, (a >> 16) & 0xffff, a & 0xfff,
                                  0x8000 | (b >> 50), b & 0xffff'ffff'ffff));
}

Machine::Machine(const MachineParameters& parameters, std::unique_ptr<PowerCurve> curve)
    : parameters_(parameters),
      curve_(std::move(curve)),
      job_(parameters.job, parameters.gpus, Random(parameters.seed).fork(0)),
      tick_ns_(std::llround(parameters.tick.value() * static_cast<double>(kNanosecondsPerSecond))) {
  gpus_.reserve(parameters.gpus);
  for (std::size_t i = 0; i < parameters.gpus; ++i) {
    // A stream by board, not by order of construction: one more board changes no other.
    gpus_.emplace_back(parameters.gpu, *curve_, board_id(parameters.seed, i), parameters.tick, parameters.speed,
                       Random(parameters.seed).fork(i + 1));
  }
}

Result<Machine> Machine::create(const MachineParameters& parameters) {
  FLYBALL_TRY(check(parameters));
  FLYBALL_ASSIGN(const ClockPreset preset, clock_preset(parameters.preset));
  return Machine(
      parameters,
      std::make_unique<PowerCurve>(
          preset.points.empty() ? PowerCurve::parametric(parameters.gpu)
                                : PowerCurve::clocked(preset.points, parameters.job.compute_share, parameters.gpu)));
}

Result<Machine> Machine::create(const MachineParameters& parameters, const curve::Curve& curve) {
  FLYBALL_TRY(check(parameters));
  return Machine(parameters, std::make_unique<PowerCurve>(
                                 PowerCurve::measured(curve, parameters.job.compute_share, parameters.gpu)));
}

void Machine::advance(Seconds time) {
  carry_ns_ += std::llround(time.value() * static_cast<double>(kNanosecondsPerSecond));
  while (carry_ns_ >= tick_ns_) {
    carry_ns_ -= tick_ns_;
    step();
  }
}

void Machine::advance_to(MonoTime t) {
  carry_ns_ = 0;
  while (now().nanoseconds() + tick_ns_ <= t.nanoseconds()) step();
}

void Machine::step() {
  job_.advance(gpus_, now(), parameters_.tick, parameters_.speed);
  ++ticks_;
}

Gpu* Machine::find(const DeviceId& id) {
  for (Gpu& gpu : gpus_) {
    if (gpu.id() == id) return &gpu;
  }
  return nullptr;
}

WorkloadProgress Machine::progress() const { return {now(), job_.phase(), job_.steps(), job_.tokens()}; }

void Machine::set_speed(double speed) {
  parameters_.speed = speed;
  for (Gpu& gpu : gpus_) gpu.set_speed(speed);
}

Joules Machine::energy() const {
  Joules sum;
  for (const Gpu& gpu : gpus_) sum += gpu.truth().energy;
  return sum;
}

Watts Machine::power() const {
  Watts sum;
  for (const Gpu& gpu : gpus_) sum += gpu.truth().power;
  return sum;
}

void follow_curve(MachineParameters& parameters, const curve::Curve& curve) {
  parameters.gpu.minimum_limit = curve.lowest();
  parameters.gpu.maximum_limit = curve.highest();
  parameters.gpu.default_limit = curve.highest();
  parameters.gpu.leakage_per_kelvin = 0;
  parameters.gpu.board_power_sd = 0;
  parameters.job.activity_fraction = 1;
  parameters.job.exposed_wait_fraction = 0;
  parameters.job.absorbable_wait_fraction = 0;
  parameters.job.rank_work_sd = 0;
}

}  // namespace flyball::twin
