#include <gtest/gtest.h>

#include <cstdio>

#include "base/temp_dir.h"
#include "curve/clock_family.h"

namespace flyball::curve {
namespace {

using namespace literals;

constexpr Hertz kCut{1.125e9};

Result<ClockTable> read(const std::string& text) {
  const auto bytes = raw_bytes_in_memory(text);
  return read_clock_curves(*bytes, "clocks.csv");
}

TEST(ClockTable, AllOtherColumnsNameTheWork) {
  const auto table = read(
      "stage,instruction,frequency,time,energy\n"
      "0,forward,1410,0.05,24\n0,forward,1395,0.06,25\n0,forward,1395,0.08,27\n1,forward,1410,0.05,24\n"
      "0,forward,-3,0.05,24\n0,forward,1380,ERR!,24\n");
  ASSERT_TRUE(table) << table.error().message();
  ASSERT_EQ(table->curves.size(), 2u);
  EXPECT_EQ(table->curves[0].workload, "stage 0, instruction forward");
  ASSERT_EQ(table->curves[0].samples.size(), 2u);
  EXPECT_EQ(table->curves[0].samples[0].clock, Hertz(1.395e9));
  EXPECT_NEAR(table->curves[0].samples[0].time.value(), 0.07, 1e-12);
  EXPECT_EQ(table->skipped_count, 2u);
  EXPECT_FALSE(read("gpu,workload,power_limit_w,time_s,power_w\n"));
  EXPECT_FALSE(read(""));
}

ClockCurve made_by(const ClockFamily& family) {
  ClockCurve curve{"made", {}};
  for (int mhz = 855; mhz <= 1410; mhz += 15) {
    // Far below the ceiling the clock is the lock's.
    const double f = mhz / 1e3, v = std::max(1.0, 1 + family.voltage_slope * (f - family.voltage_floor.value() / 1e9));
    const Seconds time(0.01 + 0.05 / f);
    curve.samples.push_back({Hertz(mhz * 1e6), time, Watts(200 * (family.base + f * v * v)) * time});
  }
  return curve;
}

TEST(ClockFit, FindsWhatTheFamilyCanSay) {
  ClockFamily family = clock_family();
  family.sharpness = 80;
  ClockCurve curve = made_by(family);
  const std::span<const ClockSample> above(curve.samples.end() - 20, curve.samples.end());
  const auto fit = ClockFit::fit(above, family);
  ASSERT_TRUE(fit);
  for (const ClockSample& sample : curve.samples) {
    EXPECT_NEAR(fit->time(sample.clock) / sample.time, 1, 2e-3) << sample.clock.value();
    EXPECT_NEAR(fit->energy(sample.clock) / sample.energy, 1, 3e-3) << sample.clock.value();
  }
  EXPECT_FALSE(ClockFit::fit(above.first(3), family));
}

/// P4. What is pooled over pieces of work comes from the other network.
TEST(ClockBars, StagesAtClocksBelowThoseMeasured) {
  const std::string folder = shared_data_folder();
  if (folder.empty()) GTEST_SKIP() << "no measured data";
  std::vector<std::vector<ClockCurve>> networks;
  for (const char* name : {"bloom", "gpt3-175b"}) {
    const auto bytes = open_bytes(folder + "/large_model_training/a100_sxm_clock_stages_" + name + ".csv");
    ASSERT_TRUE(bytes);
    auto table = read_clock_curves(**bytes, name);
    ASSERT_TRUE(table);
    ASSERT_EQ(table->curves.size(), 16u);
    networks.push_back(std::move(table->curves));
  }
  for (const std::size_t test : {0U, 1U}) {
    const auto family = learn_clock_family(networks[1 - test], kCut, "the other one");
    ASSERT_TRUE(family);
    const auto error = held_out_below(networks[test], *family, kCut);
    ASSERT_TRUE(error);
    std::printf(
        "bar: P4 A100-SXM %s, clocks below 1,125 MHz: time / energy, median = %.2f / %.2f %% (95th: %.2f / %.2f)\n",
        test == 0 ? "BLOOM" : "GPT-3 175B", error->time.median_fraction * 100, error->energy.median_fraction * 100,
        error->time.p95_fraction * 100, error->energy.p95_fraction * 100);
    EXPECT_LE(error->time.median_fraction, 0.02);
    EXPECT_LE(error->energy.median_fraction, 0.025);
    if (test == 1) {
      EXPECT_EQ(family->sharpness, clock_family().sharpness);
      EXPECT_NEAR(family->base, clock_family().base, 1e-9);
      EXPECT_NEAR(family->voltage_floor.value(), clock_family().voltage_floor.value(), 1e5);
      EXPECT_NEAR(family->voltage_slope, clock_family().voltage_slope, 1e-9);
    }
  }
}

}  // namespace
}  // namespace flyball::curve
