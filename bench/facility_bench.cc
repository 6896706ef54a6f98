// The twin's building of 1,000 GPUs: an hour in steps of 10 s, and thirty days with all that is around them.
#include <benchmark/benchmark.h>

#include "twin/facility.h"

namespace {

using namespace flyball;

void facility_hour(benchmark::State& state) {
  auto facility = twin::Facility::make({});
  if (!facility) {
    state.SkipWithError(facility.error().message().c_str());
    return;
  }
  constexpr int kSteps = 360;
  for (auto _ : state) {
    for (int i = 0; i < kSteps; ++i) benchmark::DoNotOptimize(facility->step());
  }
  state.SetItemsProcessed(kSteps * state.iterations());
}
BENCHMARK(facility_hour);

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
