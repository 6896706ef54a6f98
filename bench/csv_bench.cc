// S5: CSV telemetry read, one core: bytes of text to points in a sink, in MB/s. The tables are made here.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "base/csv.h"
#include "base/random.h"
#include "series/reader.h"

namespace {

using namespace flyball;

constexpr std::size_t kTextBytes = 16 << 20;

/// Uses the points and keeps none, as a total over a file larger than memory does.
class SummingSink final : public series::Sink {
 public:
  std::uint32_t begin_series(const series::SeriesKey&) override { return count_++; }
  void point(std::uint32_t, const series::Point& point) override { sum += point.value; }
  void event(const series::Event&) override {}
  void quarantine(const series::Quarantined&) override {}
  double sum = 0;

 private:
  std::uint32_t count_ = 0;
};

std::string node_power_text() {
  std::string text = "run,node,time_ms,ac_w,dc_w\n";
  Random random(1);
  for (int node = 1; text.size() < kTextBytes; ++node) {
    for (int i = 0; i < 2000; ++i) {
      text += fmt::format("5848-240517221859825376616_2,{},{},{},{}\n", node, 1'715'960'308'411 + i * 2005,
                          4000 + random.below(4000), 4000 + random.below(4000));
    }
  }
  return text;
}

std::string nvidia_smi_text() {
  std::string text =
      "timestamp, uuid, power.draw [W], enforced.power.limit [W], utilization.gpu [%], temperature.gpu\n";
  Random random(2);
  for (int i = 0; text.size() < kTextBytes; ++i) {
    for (int gpu = 0; gpu < 8; ++gpu) {
      text += fmt::format(
          "2024/05/17 {:02}:{:02}:{:02}.{:03}, GPU-5f1c0a3e-8d6b-4b6f-9a1e-00000000000{}, {}.{:02} W, 700.00 W, {} %, "
          "{}\n",
          i / 7200 % 24, i / 120 % 60, i / 2 % 60, i % 2 * 500 + 11, gpu, 60 + random.below(640), random.below(100),
          random.below(101), 30 + random.below(50));
    }
  }
  return text;
}

std::string zeus_text() {
  std::string text = "time,0,1,2,3\n";
  Random random(3);
  for (int i = 0; text.size() < kTextBytes; ++i) {
    text += fmt::format("{}.{:06}", 1'715'960'308 + i / 10, i % 10 * 100'000 + static_cast<int>(random.below(1000)));
    for (int gpu = 0; gpu < 4; ++gpu) text += fmt::format(",{}.{:03}", 60 + random.below(340), random.below(1000));
    text += '\n';
  }
  return text;
}

void read_text(benchmark::State& state, const std::string& text) {
  for (auto _ : state) {
    SummingSink sink;
    const auto summary = series::read_bytes(raw_bytes_in_memory(text), "bench", {}, sink);
    if (!summary || summary->quarantined != 0 || sink.sum <= 0) state.SkipWithError("the text was not read");
    benchmark::DoNotOptimize(sink.sum);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}

void csv_telemetry_node_power(benchmark::State& state) { read_text(state, node_power_text()); }
void csv_telemetry_nvidia_smi(benchmark::State& state) { read_text(state, nvidia_smi_text()); }
void csv_telemetry_zeus(benchmark::State& state) { read_text(state, zeus_text()); }

void csv_rows_only(benchmark::State& state) {
  const std::string text = node_power_text();
  for (auto _ : state) {
    const auto bytes = raw_bytes_in_memory(text);
    CsvReader reader(*bytes);
    CsvRow row;
    std::size_t cells = 0;
    while (*reader.next(row)) cells += row.cells.size();
    benchmark::DoNotOptimize(cells);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}

BENCHMARK(csv_rows_only)->Unit(benchmark::kMillisecond);
BENCHMARK(csv_telemetry_node_power)->Unit(benchmark::kMillisecond);
BENCHMARK(csv_telemetry_nvidia_smi)->Unit(benchmark::kMillisecond);
BENCHMARK(csv_telemetry_zeus)->Unit(benchmark::kMillisecond);

}  // namespace
