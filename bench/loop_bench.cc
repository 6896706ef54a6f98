// What a decision for eight GPUs costs, without the driver: taking in twenty polls of each, and asking the policy.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>

#include "base/random.h"
#include "base/stats.h"
#include "loop/gpu_meter.h"
#include "policy/policy.h"

namespace flyball {
namespace {

/// R7: a policy's decision alone: the observation of 8 GPUs goes in, a proposal comes out. The p99 is over single
/// decisions of a run of six simulated hours, what was asked for in force in the next one.
void decide_8_gpus(benchmark::State& state, const char* name) {
  Objective objective;
  objective.max_loss_fraction = 0.012;
  const auto policy = *policy::make(name, objective);
  policy->reset(1);
  Random random(1);
  Observation observation;
  observation.interval = Seconds(10);
  observation.phase = Phase::training;
  for (int i = 0; i < 8; ++i) {
    GpuObservation gpu;
    gpu.device = DeviceId::of("GPU-" + std::string(1, static_cast<char>('a' + i)));
    gpu.limit_enforced = Milliwatts(400'000);
    gpu.minimum = Milliwatts(100'000);
    gpu.maximum = Milliwatts(400'000);
    observation.gpus.push_back(gpu);
  }
  std::vector<double> times;
  for (auto _ : state) {
    observation.at = observation.at + observation.interval;
    observation.remaining = Seconds(std::max(10.0, 21'600 - std::fmod(observation.at.seconds(), 21'600)));
    const double limit = (*observation.gpus[0].limit_enforced).watts().value();
    observation.tokens_per_second = 1000 * std::pow(limit / 400, 0.2) * (1 + 0.003 * random.normal());
    for (GpuObservation& gpu : observation.gpus) gpu.energy = Joules(9.5 * limit);
    const auto begin = std::chrono::steady_clock::now();
    const Proposal proposal = policy->decide(observation);
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    for (std::size_t i = 0; i < proposal.gpus.size(); ++i)
      if (proposal.gpus[i].power_limit) observation.gpus[i].limit_enforced = *proposal.gpus[i].power_limit;
  }
  state.counters["p99_us"] = quantile(times, 0.99) * 1e6;
}
BENCHMARK_CAPTURE(decide_8_gpus, sweep, "sweep")->Iterations(20'000);
BENCHMARK_CAPTURE(decide_8_gpus, model, "model")->Iterations(20'000);

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
