#include "facility/sample_block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/random.h"

namespace flyball::facility {
namespace {

/// A block of ten minutes, a sample each ten seconds; `fans`: watts at each of them.
SampleBlock block_of(const std::function<std::optional<Watts>(int)>& fans) {
  BlockBuilder blocks;
  for (int i = 0; i < 60; ++i) {
    FacilitySample sample;
    sample.at = WallTime(0) + Seconds(10.0 * i);
    sample.it = Watts(500e3);
    sample.fans = fans(i);
    EXPECT_FALSE(blocks.take(sample));
  }
  auto made = blocks.finish();
  EXPECT_TRUE(made);
  return made.value_or(SampleBlock{});
}

TEST(SampleBlock, TheNoiseOfAMeterIsNotWhatItMeasures) {
  Random random(4);
  const auto noisy = [&](int) { return Watts(9000 + 90 * random.normal()); };
  // Of x - 2 y + z over two the sd is √6 / 2 of a reading's, the middle of its size 0.6745 of that.
  EXPECT_NEAR(block_of(noisy).at(Quantity::fans_jitter), 90 * 0.6745 * std::sqrt(1.5), 25);
  const auto rising = [](int i) { return Watts(5000 + 100.0 * i); };
  EXPECT_NEAR(block_of(rising).at(Quantity::fans_jitter), 0, 1e-9);
  const auto step = [](int i) { return Watts(i < 30 ? 5000 : 9000); };
  EXPECT_EQ(block_of(step).at(Quantity::fans_jitter), 0);
}

TEST(SampleBlock, NoiseOfAMeterThatIsNotThereIsNotKnown) {
  EXPECT_TRUE(std::isnan(block_of([](int) { return std::nullopt; }).at(Quantity::fans_jitter)));
  // Every third reading is missing: no three follow each other.
  const auto holes = [](int i) { return i % 3 == 0 ? std::nullopt : std::optional(Watts(9000.0 + i * i)); };
  EXPECT_TRUE(std::isnan(block_of(holes).at(Quantity::fans_jitter)));
}

TEST(SampleBlock, ALineHoldsTheSameBits) {
  Random random(5);
  const SampleBlock block = block_of([&](int) { return Watts(9000 + 90 * random.normal()); });
  const auto back = block_from_line(to_line(block));
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(to_line(*back), to_line(block));
  EXPECT_EQ(back->at(Quantity::fans_jitter), block.at(Quantity::fans_jitter));
}

}  // namespace
}  // namespace flyball::facility
