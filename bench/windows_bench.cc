// S3: violations of 64 nodes × 57 min × 8 windows, every 2 s as the recordings have it and every 0.5 s.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/random.h"
#include "series/windows.h"

namespace {

using namespace flyball;

std::vector<series::Samples> nodes(double period) {
  constexpr int kNodes = 64;
  constexpr double kLength = 57 * 60;
  std::vector<series::Samples> out;
  for (std::uint64_t node = 1; node <= kNodes; ++node) {
    Random random(node);
    std::vector<series::Point> points;
    for (double t = 0; t < kLength; t += period * random.uniform(0.9, 1.1))
      points.push_back({WallTime(1'700'000'000'000'000'000) + Seconds(t), 6800 + 300 * random.normal()});
    out.push_back(series::usable_samples(points));
  }
  return out;
}

void windows_of_64_nodes(benchmark::State& state) {
  const auto all = nodes(static_cast<double>(state.range(0)) / 1000);
  const auto windows = series::default_windows();
  const std::vector<Watts> budgets{Watts(7000)};
  for (auto _ : state)
    for (const auto& node : all) benchmark::DoNotOptimize(series::exceedance(node, windows, budgets));
}
BENCHMARK(windows_of_64_nodes)->Arg(2000)->Arg(500)->Unit(benchmark::kMillisecond);

}  // namespace
