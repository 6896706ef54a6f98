// The twin's building: a step of 10 s of 1,000 GPUs, and thirty days as a whole.
#include <benchmark/benchmark.h>

#include "twin/facility.h"

namespace {

using namespace flyball;

void facility_step(benchmark::State& state) {
  auto facility = twin::Facility::make({});
  if (!facility) {
    state.SkipWithError(facility.error().message().c_str());
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(facility->step());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(facility_step);

void facility_30_days(benchmark::State& state) {
  for (auto _ : state) {
    auto facility = twin::Facility::make({});
    if (!facility) {
      state.SkipWithError(facility.error().message().c_str());
      return;
    }
    for (std::uint64_t i = 0; i < facility->steps(); ++i) benchmark::DoNotOptimize(facility->step());
  }
}
BENCHMARK(facility_30_days)->Unit(benchmark::kSecond);

}  // namespace
