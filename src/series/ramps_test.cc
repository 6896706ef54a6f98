#include "series/ramps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/random.h"
#include "base/stats.h"
#include "series/spectrum.h"
#include "series/step_period.h"

namespace flyball::series {
namespace {

WallTime at(double s) { return WallTime(1'700'000'000'000'000'000) + Seconds(s); }

Samples wave(double dt, double length, double frequency, double amplitude, double noise = 0, double offset = 1000) {
  Random random(3);
  std::vector<Point> points;
  for (double t = 0; t < length; t += dt)
    points.push_back(
        {at(t), offset + amplitude * std::sin(2 * std::numbers::pi * frequency * t) + noise * random.normal()});
  return usable_samples(points);
}

TEST(Ramps, AStepIsFoundWithItsHeightOverEachSpan) {
  std::vector<Point> points;
  for (int i = 0; i <= 200; ++i) points.push_back({at(0.5 * i), i < 100 ? 100.0 : 700.0});
  for (int i = 201; i <= 400; ++i) points.push_back({at(0.5 * i), i < 300 ? 700.0 : 400.0});
  const auto spans = default_ramp_spans();
  const auto r = ramps(usable_samples(points), spans);
  ASSERT_EQ(r.size(), 3u);
  EXPECT_DOUBLE_EQ(r[0].max_up_w_per_s, 600);
  EXPECT_DOUBLE_EQ(r[0].max_down_w_per_s, 300);
  EXPECT_EQ(r[0].up_at, at(50));
  EXPECT_DOUBLE_EQ(r[1].max_up_w_per_s, 60);
  EXPECT_DOUBLE_EQ(r[2].max_up_w_per_s, 10);
  EXPECT_DOUBLE_EQ(r[2].max_down_w_per_s, 5);
  EXPECT_DOUBLE_EQ(r[0].p50_w_per_s, 0);
}

TEST(Ramps, NothingIsComparedAcrossAHole) {
  std::vector<Point> points;
  for (int i = 0; i < 20; ++i) points.push_back({at(i), 100});
  for (int i = 50; i < 70; ++i) points.push_back({at(i), 900});
  const std::vector<Seconds> spans{Seconds(1), Seconds(10), Seconds(60)};
  const auto r = ramps(usable_samples(points), spans);
  EXPECT_EQ(r[0].max_up_w_per_s, 0);
  EXPECT_EQ(r[1].max_up_w_per_s, 0);
  EXPECT_EQ(r[1].pairs, 20u);
  EXPECT_EQ(r[2].pairs, 0u);
}

TEST(Ramps, ASpanBelowTheSamplingIsALowerBound) {
  const auto r = ramps(wave(2, 100, 0.05, 10), std::vector<Seconds>{Seconds(1), Seconds(2)});
  EXPECT_FALSE(r[0].resolved);
  EXPECT_TRUE(r[1].resolved);
}

TEST(Spectrum, TotalPowerIsTheVarianceAndALineIsWhereItBelongs) {
  const Samples s = wave(0.05, 600, 1.37, 40, 5);
  const Spectrum spectrum = power_spectrum(s);
  EXPECT_NEAR(spectrum.nyquist.value(), 10, 1e-6);
  ASSERT_FALSE(spectrum.lines.empty());
  EXPECT_NEAR(spectrum.lines[0].frequency.value(), 1.37, 0.01);
  EXPECT_NEAR(spectrum.lines[0].amplitude_w, 40, 2);
  RunningStats stats;
  for (double v : s.value) stats.add(v);
  EXPECT_NEAR(spectrum.band_power(Hertz(0.0), Hertz(100)) / stats.variance(), 1, 0.03);
  EXPECT_NEAR(spectrum.band_power(Hertz(1.2), Hertz(1.6)), 800, 40);
}

TEST(Spectrum, WhiteNoiseHasNoLines) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    std::vector<Point> points;
    for (int i = 0; i < 4096; ++i) points.push_back({at(0.1 * i), 500 + 10 * random.normal()});
    EXPECT_TRUE(power_spectrum(usable_samples(points)).lines.empty()) << seed;
  }
}

TEST(Spectrum, SegmentsDoNotCrossHolesAndTooLittleIsSaidSo) {
  std::vector<Point> points;
  for (int k = 0; k < 4; ++k)
    for (int i = 0; i < 300; ++i) points.push_back({at(k * 1000 + i), 100.0 + 1000 * k});
  const Spectrum spectrum = power_spectrum(usable_samples(points));
  EXPECT_GT(spectrum.segments, 3u);
  EXPECT_NEAR(spectrum.band_power(Hertz(0), Hertz(1)), 0, 1e-9) << "jumps in the holes are not power";
  EXPECT_TRUE(power_spectrum(Samples{}).density.empty());
  EXPECT_FALSE(power_spectrum(Samples{}).note.empty());
}

TEST(StepPeriod, IsFoundInNoiseAndNotInNoiseAlone) {
  for (double period : {4.7, 10.62, 33.3}) {
    std::vector<Point> points;
    Random random(9);
    for (double t = 0; t < 2000; t += 1)
      points.push_back({at(t), (std::fmod(t, period) < 0.3 * period ? 300.0 : 600.0) + 60 * random.normal()});
    const StepPeriod p = find_step_period(usable_samples(points));
    ASSERT_TRUE(p.found) << period << " " << p.note;
    EXPECT_NEAR(p.period.value(), period, 0.02 * period);
  }
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    std::vector<Point> points;
    for (int i = 0; i < 1000; ++i) points.push_back({at(i), 500 + 10 * random.normal()});
    EXPECT_FALSE(find_step_period(usable_samples(points)).found) << seed;
  }
}

}  // namespace
}  // namespace flyball::series
