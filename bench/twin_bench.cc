// P7: simulated GPU-seconds per second of one core, at steps of 0.1 s.
#include <benchmark/benchmark.h>

#include "base/filesystem.h"
#include "base/presets.h"
#include "twin/machine.h"
#include "twin/scenario.h"

namespace {

using namespace flyball;

void run(benchmark::State& state, const twin::MachineParameters& parameters) {
  auto machine = twin::Machine::create(parameters);
  if (!machine) {
    state.SkipWithError(machine.error().message().c_str());
    return;
  }
  constexpr double kSlice = 10.0;  // s
  std::int64_t limit = 0;
  for (auto _ : state) {
    // A controller's pace: limits change every slice.
    for (twin::Gpu& gpu : machine->gpus()) gpu.set_limit(Milliwatts(250'000 + 10'000 * (limit++ % 10)));
    machine->advance(Seconds(kSlice));
    benchmark::DoNotOptimize(machine->energy());
  }
  state.counters["gpu_seconds_per_s"] =
      benchmark::Counter(kSlice * static_cast<double>(parameters.gpus) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

void twin_machine(benchmark::State& state) {
  twin::MachineParameters parameters;
  parameters.gpus = static_cast<std::uint64_t>(state.range(0));
  run(state, parameters);
}
BENCHMARK(twin_machine)->Arg(1)->Arg(8)->Arg(64);

void twin_machine_with_phases(benchmark::State& state) {
  twin::MachineParameters parameters;
  parameters.gpus = 8;
  parameters.job.rank_work_sd = 0.05;
  parameters.job.absorbable_wait_fraction = 0.1;
  parameters.job.evaluation_every = 50;
  parameters.job.checkpoint_every = 200;
  run(state, parameters);
}
BENCHMARK(twin_machine_with_phases);

/// A scenario as it comes with the program, pipeline, jitter and checkpoints included.
void twin_scenario(benchmark::State& state, const char* name) {
  const auto scenario = twin::load_scenario(system_filesystem(), presets_folder().value_or(""), name);
  if (!scenario) {
    state.SkipWithError(scenario.error().message().c_str());
    return;
  }
  run(state, scenario->parameters);
}
BENCHMARK_CAPTURE(twin_scenario, pretrain_1, "pretrain-1");
BENCHMARK_CAPTURE(twin_scenario, pretrain_8, "pretrain-8");
BENCHMARK_CAPTURE(twin_scenario, pretrain_64, "pretrain-64");
BENCHMARK_CAPTURE(twin_scenario, gpt3_64nodes, "gpt3-64nodes");

}  // namespace
