// What every reading and every decision passes through in room base.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "base/checksum.h"
#include "base/random.h"
#include "base/stats.h"
#include "base/text.h"

namespace {

constexpr std::size_t kValues = 1000;

std::vector<double> noisy_ramp() {
  flyball::Random random(1);
  std::vector<double> values(kValues);
  for (std::size_t i = 0; i < kValues; ++i) {
    values[i] = 200 + 0.1 * static_cast<double>(i) + 5 * random.normal();
  }
  return values;
}

void parse_double(benchmark::State& state) {
  std::vector<std::string> texts;
  for (const double value : noisy_ramp()) {
    texts.push_back(flyball::format_exact(value));
  }
  for (auto _ : state) {
    for (const auto& text : texts) {
      benchmark::DoNotOptimize(flyball::parse_double(text));
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kValues));
}
BENCHMARK(parse_double);

void isotonic(benchmark::State& state) {
  const auto values = noisy_ramp();
  for (auto _ : state) {
    benchmark::DoNotOptimize(flyball::isotonic_non_decreasing(values));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kValues));
}
BENCHMARK(isotonic);

void crc32_of_a_record(benchmark::State& state) {
  const std::string record(256, 'x');  // the order of size of one journal record
  for (auto _ : state) {
    benchmark::DoNotOptimize(flyball::crc32(record));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(record.size()));
}
BENCHMARK(crc32_of_a_record);

}  // namespace
