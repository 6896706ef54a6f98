#include "series/clean.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "series/integrate.h"
#include "series/node_power_test_data.h"

namespace flyball::series {
namespace {

WallTime at(double s) { return WallTime(1'700'000'000'000'000'000) + Seconds(s); }
SeriesKey board() { return {DeviceId::of("GPU-1"), Signal::power_average, Scope::board, "test"}; }
SeriesKey node() { return {DeviceId::of("node-1"), Signal::power_average, Scope::node_dc, "test"}; }

// S4: each dirty kind at random places in a real-looking series; none reaches a total.
TEST(Clean, NoDirtyKindReachesATotal) {
  const std::vector<double> dirty{NAN,         INFINITY,     -INFINITY,
                                  -250,        65535,        65.535,
                                  6553.5,      32767,        4294967295.0,
                                  4294967.295, 2147483647.0, 18446744073709551615.0,
                                  250'000,     2.5e8,        0,
                                  0.25,        -1e300};
  std::uint64_t leaked = 0, planted = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    std::vector<Point> points;
    for (int i = 0; i < 500; ++i) points.push_back({at(i), random.uniform(200, 300)});
    const auto clean_energy = integrate_power(points).energy;
    for (int i = 5; i < 495; i += 7) {
      points[static_cast<std::size_t>(i)].value = dirty[random.below(dirty.size())];
      ++planted;
    }
    const CleanReport report = clean(points, board());
    for (const Point& p : points) leaked += p.status == Status::ok && (p.value < 200 || p.value > 300) ? 1 : 0;
    ASSERT_EQ(report.garbage(), 70u) << "seed " << seed;
    const Integral sum = integrate_power(points);
    ASSERT_NEAR(sum.energy / clean_energy, 1, 0.01) << "seed " << seed;
  }
  EXPECT_EQ(leaked, 0u);
  std::printf("S4: %llu of %llu planted samples reached a total\n", static_cast<unsigned long long>(leaked),
              static_cast<unsigned long long>(planted));
}

// But for the seven readings of 0 W DC in between thousands of watts that one node of the LoRA runs really logged.
TEST(Clean, RealRecordingsAreLeftAlone) {
  std::uint64_t zeros = 0;
  for (const char* name : {"64x_gpt3", "1x_llama2_70b_lora", "64x_llama2_70b_lora"}) {
    auto runs = test::node_power(name);
    if (runs.empty()) GTEST_SKIP() << "shared data not there";
    for (auto& [run_name, run] : runs)
      for (auto* nodes : {&run.ac, &run.dc})
        for (auto& [id, points] : *nodes) {
          const CleanReport report = clean(points, node());
          zeros += report.false_zeros;
          EXPECT_EQ(report.garbage(), report.false_zeros) << run_name << " " << id;
        }
  }
  EXPECT_EQ(zeros, 7u);
}

TEST(Clean, ABoardThatIdlesBurstsOrIsOffIsLeftAlone) {
  std::vector<Point> points;
  for (int i = 0; i < 100; ++i) points.push_back({at(i), i % 10 == 0 ? 700.0 : 62.0});
  for (int i = 100; i < 150; ++i) points.push_back({at(i), 0.0});
  EXPECT_EQ(clean(points, board()).garbage(), 0u);
}

TEST(Clean, ATrueReadingThatLooksLikeACodeStays) {
  std::vector<Point> points;
  for (int i = 0; i < 20; ++i) points.push_back({at(i), i == 10 ? 65.535 : 65.0});
  EXPECT_EQ(clean(points, board()).garbage(), 0u);
}

TEST(Clean, AWholeSeriesInMilliwattsIsNamed) {
  std::vector<Point> points;
  for (int i = 0; i < 20; ++i) points.push_back({at(i), 250'000.0 + i});
  const CleanReport report = clean(points, board());
  EXPECT_EQ(report.out_of_range, 20u);
  EXPECT_NE(report.unit_hint.find("milli"), std::string::npos) << report.unit_hint;
}

TEST(Clean, KnownDevicesHaveTheirOwnRange) {
  std::vector<Point> points{{at(0), 300}, {at(1), 450}, {at(2), 300}};
  EXPECT_EQ(clean(points, board(), {.range = Range{0, 400}}).out_of_range, 1u);
}

TEST(Clean, OtherSignalsHaveTheirRanges) {
  std::vector<Point> percent{{at(0), 0.37}, {at(1), 37}};
  EXPECT_EQ(clean(percent, {DeviceId::of("GPU-1"), Signal::utilisation, Scope::board, "t"}).out_of_range, 1u);
  std::vector<Point> hot{{at(0), 61}, {at(1), 511}};
  EXPECT_EQ(clean(hot, {DeviceId::of("GPU-1"), Signal::temperature, Scope::board, "t"}).out_of_range, 1u);
}

TEST(Clean, StaleIsByTimeOfMeasurement) {
  EXPECT_FALSE(is_stale(at(0), at(4), Seconds(1)));
  EXPECT_TRUE(is_stale(at(0), at(40), Seconds(1)));
  std::vector<Point> points{{at(0), 1}, {at(39), 1}};
  EXPECT_EQ(mark_stale(points, at(40), Seconds(1)), 1u);
  EXPECT_EQ(points[0].status, Status::stale);
  EXPECT_EQ(points[1].status, Status::ok);
}

}  // namespace
}  // namespace flyball::series
