#include "facility/losses.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace flyball::facility {
namespace {

std::vector<StageSample> stage(const StageLoss& loss, double low, double high, double noise, std::uint64_t seed) {
  Random random(seed);
  std::vector<StageSample> made;
  for (int i = 0; i < 500; ++i) {
    const Watts out = loss.rating * random.uniform(low, high);
    made.push_back({(out + loss.of(out)) * (1 + noise * random.normal()), out, false});
  }
  return made;
}

TEST(Losses, AreFoundAcrossTheLoad) {
  const StageLoss truth{Watts(500'000), Watts(6'000), 0.01, 0.02};
  const StageFit made = fit_stage(stage(truth, 0.1, 0.9, 0.001, 1), truth.rating).value();
  for (const double share : {0.1, 0.4, 0.9})
    EXPECT_NEAR(made.loss.of(truth.rating * share) / truth.of(truth.rating * share), 1, 0.03) << share;
  EXPECT_TRUE(made.note.empty());
}

TEST(LossesProperty, NeverLeavePhysics) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const StageLoss truth{Watts(1e5), Watts(1e5 * random.uniform(0, 0.02)), random.uniform(0, 0.03),
                          random.uniform(0, 0.03)};
    const auto made = fit_stage(stage(truth, 0.3, 0.5, 0.02, seed), truth.rating);
    if (!made) continue;  // noise may look like a fault of the meters
    EXPECT_GE(made->loss.idle, Watts(0)) << seed;
    EXPECT_GE(made->loss.proportional_fraction, 0) << seed;
    EXPECT_GE(made->loss.square_fraction, 0) << seed;
    for (const double share : {0.01, 0.5, 1.0}) EXPECT_LE(made->loss.efficiency(Watts(1e5 * share)), 1) << seed;
  }
}

TEST(Losses, OnBatteryIsLeftOutAndFaultsOfMetersAreRefused) {
  const StageLoss truth{Watts(1e5), Watts(2'000), 0.01, 0.01};
  auto samples = stage(truth, 0.2, 0.8, 0.001, 3);
  for (std::size_t i = 0; i < 100; ++i) samples[i] = {Watts(100), samples[i].output, true};
  const StageFit made = fit_stage(samples, truth.rating).value();
  EXPECT_EQ(made.on_battery, 100u);
  EXPECT_NEAR(made.loss.of(Watts(5e4)) / truth.of(Watts(5e4)), 1, 0.05);
  for (StageSample& sample : samples) sample.on_battery = false;
  EXPECT_FALSE(fit_stage(samples, truth.rating));
  auto swapped = stage(truth, 0.2, 0.8, 0, 4);
  for (StageSample& sample : swapped) std::swap(sample.input, sample.output);
  EXPECT_FALSE(fit_stage(swapped, truth.rating));
  EXPECT_FALSE(fit_stage(std::span(samples).first(3), truth.rating));
  EXPECT_FALSE(fit_stage(samples, Watts(0)));
  EXPECT_FALSE(fit_stage(stage(truth, 0.50, 0.52, 0.001, 5), truth.rating).value().note.empty());
}

}  // namespace
}  // namespace flyball::facility
