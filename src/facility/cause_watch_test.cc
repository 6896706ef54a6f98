#include "facility/cause_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace flyball::facility {
namespace {

constexpr double kBlock = 600;
constexpr int kDay = 144;  // blocks

/// IT, a UPS and a plant whose chillers never run; `loss`: of the UPS.
SampleBlock block_at(int number, double loss = 0.04) {
  Random random(static_cast<std::uint64_t>(number) + 1);
  SampleBlock made;
  made.start = WallTime(0) + Seconds(kBlock * number);
  made.length = Seconds(kBlock);
  made.samples = 60;
  made.mean.fill(std::numeric_limits<double>::quiet_NaN());
  const auto set = [&](Quantity quantity, double value) { made.mean[static_cast<std::size_t>(quantity)] = value; };
  const double it = 500e3 + 20e3 * std::sin(number / 9.0) + 100 * random.normal();
  set(Quantity::it, it);
  set(Quantity::ups_out, 1.005 * it);
  set(Quantity::ups_in, (1.005 + loss) * it + 100 * random.normal());
  set(Quantity::chillers, 0);
  set(Quantity::chillers_on, 0);
  set(Quantity::wet_bulb, 8 + 3 * std::sin(number / 23.0));
  return made;
}
CauseWatch watch_of(int days) {
  CauseOptions options;
  options.reference_time = Seconds(2 * 86400.0);
  CauseWatch watch(options);
  for (int i = 0; i < days * kDay; ++i) watch.take(block_at(i));
  return watch;
}
bool has(const std::vector<Channel>& channels, Channel channel) {
  return std::find(channels.begin(), channels.end(), channel) != channels.end();
}

TEST(CauseWatch, WhatIsNotMeteredIsToldFromWhatTheReferenceHardlyShows) {
  const CauseWatch watch = watch_of(3);
  ASSERT_FALSE(watch.learning());
  EXPECT_TRUE(has(watch.unlearned(), Channel::chillers)) << "metered, but none ever ran";
  EXPECT_FALSE(has(watch.unmetered(), Channel::chillers));
  for (const Channel channel : {Channel::fan_speed, Channel::set_point, Channel::tokens, Channel::voltage}) {
    EXPECT_TRUE(has(watch.unmetered(), channel)) << info_of(channel).name;
    EXPECT_FALSE(has(watch.unlearned(), channel)) << info_of(channel).name;
  }
  EXPECT_FALSE(has(watch.unmetered(), Channel::ups_loss) || has(watch.unlearned(), Channel::ups_loss));
}

TEST(CauseWatch, WhileItLearnsItSaysNothingOfMeters) {
  const CauseWatch watch = watch_of(1);
  EXPECT_TRUE(watch.learning());
  EXPECT_TRUE(watch.unmetered().empty());
  EXPECT_TRUE(watch.unlearned().empty());
  EXPECT_TRUE(watch.findings().empty());
}

TEST(CauseWatch, OneThatComesAgainSoonIsOneFindingAndLaterAnotherOne) {
  const auto losing = [](int from, int to, int number) { return number >= from && number < to ? 0.06 : 0.04; };
  for (const int pause : {kDay, 6 * kDay}) {
    CauseWatch watch = watch_of(3);
    const int first = 3 * kDay, second = first + kDay / 2 + pause;
    for (int i = first; i < second + kDay; ++i)
      watch.take(block_at(i, std::max(losing(first, first + kDay / 2, i), losing(second, second + kDay / 2, i))));
    const auto findings = watch.findings();
    ASSERT_EQ(findings.size(), pause == kDay ? 1U : 2U) << pause;
    for (std::size_t i = 0; i < findings.size(); ++i) EXPECT_EQ(findings[i].number, i + 1);
    EXPECT_NEAR((findings[0].since - block_at(first).start).value(), 0, 3 * kBlock);
  }
}

TEST(CauseWatch, AGapBlamesNobody) {
  CauseWatch watch = watch_of(3);
  for (int i = 20 * kDay; i < 22 * kDay; ++i) watch.take(block_at(i));
  EXPECT_TRUE(watch.findings().empty());
}

}  // namespace
}  // namespace flyball::facility
