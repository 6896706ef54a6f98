// What a decision for eight GPUs costs, without the driver: taking in twenty polls of each, and asking the policy.
#include <benchmark/benchmark.h>

#include "loop/gpu_meter.h"
#include "policy/policy.h"

namespace flyball {
namespace {

/// A policy's decision alone: the observation of 8 GPUs goes in, a proposal comes out.
void sweep_decision_8_gpus(benchmark::State& state) {
  Objective objective;
  objective.max_loss_fraction = 0.012;
  const auto policy = *policy::make("sweep", objective);
  policy->reset(1);
  Observation observation;
  observation.interval = Seconds(10);
  observation.tokens_per_second = 1000.0;
  observation.phase = Phase::training;
  for (int i = 0; i < 8; ++i) {
    GpuObservation gpu;
    gpu.device = DeviceId::of("GPU-" + std::string(1, static_cast<char>('a' + i)));
    gpu.power = Watts(300);
    gpu.energy = Joules(3000);
    gpu.limit_enforced = Milliwatts(400'000);
    gpu.minimum = Milliwatts(100'000);
    gpu.maximum = Milliwatts(400'000);
    observation.gpus.push_back(gpu);
  }
  for (auto _ : state) benchmark::DoNotOptimize(policy->decide(observation));
}
BENCHMARK(sweep_decision_8_gpus);

/// The decision tick without the driver: 20 polls of 8 GPUs are metered, then 8 observations are taken.
void meter_interval_8_gpus(benchmark::State& state) {
  std::vector<loop::GpuMeter> meters;
  std::vector<GpuReading> readings;
  for (int i = 0; i < 8; ++i) {
    GpuReading reading;
    reading.device = DeviceId::of("GPU-" + std::string(1, static_cast<char>('a' + i)));
    reading.power_average = Watts(300);
    reading.utilisation_fraction = 0.99;
    reading.temperature = Celsius(60);
    reading.sm_clock = Hertz(1.4e9);
    reading.limit_enforced = Milliwatts(400'000);
    reading.throttle = ThrottleReasons{};
    readings.push_back(reading);
    meters.emplace_back(reading.device, loop::GpuMeter::Options{});
  }
  MonoTime now;
  for (auto _ : state) {
    for (int poll = 0; poll < 20; ++poll) {
      now = now + Seconds(0.5);
      for (std::size_t i = 0; i < meters.size(); ++i) {
        readings[i].taken = now;
        readings[i].energy = Joules(300 * now.seconds());
        meters[i].add(readings[i], now);
      }
    }
    for (loop::GpuMeter& meter : meters) benchmark::DoNotOptimize(meter.take(now, Seconds(10)));
  }
}
BENCHMARK(meter_interval_8_gpus);

}  // namespace
}  // namespace flyball
