#include "facility/attribution.h"

#include <gtest/gtest.h>

#include <cmath>

namespace flyball::facility {
namespace {

/// All channels are known and where they should be, in units of their own sd.
AttributionInput quiet() {
  AttributionInput made;
  for (ChannelShift& shift : made.shifts) shift = {true, 0, 1, 0};
  return made;
}
void move(AttributionInput& input, Channel channel, double z) {
  input.shifts[static_cast<std::size_t>(channel)] = {true, z, 1, z};
}
AttributionInput moved(Channel channel, double z) {
  AttributionInput made = quiet();
  made.trigger = channel;
  move(made, channel, z);
  return made;
}
Cause first_of(const AttributionInput& input) {
  const auto candidates = attribute(input);
  return candidates.empty() ? Cause::not_identifiable : candidates.front().cause;
}

TEST(Attribution, WithoutDataOrWithoutAShiftNobodyIsBlamed) {
  EXPECT_TRUE(attribute({}).empty());
  AttributionInput still = quiet();
  still.trigger = Channel::set_point;
  EXPECT_TRUE(attribute(still).empty());
}

TEST(Attribution, ASingleChannelIsEnough) {
  const auto candidates = attribute(moved(Channel::set_point, 10));
  ASSERT_EQ(candidates.size(), 1U);
  EXPECT_EQ(candidates[0].cause, Cause::set_point);
  EXPECT_DOUBLE_EQ(candidates[0].probability, 1);
}

TEST(Attribution, AWayThatNoCauseGoesIsNotExplained) {
  EXPECT_EQ(first_of(moved(Channel::voltage, -10)), Cause::voltage_sag);
  EXPECT_TRUE(attribute(moved(Channel::voltage, 10)).empty());
}

TEST(Attribution, WhatFollowsDoesNotTakeOver) {
  AttributionInput input = moved(Channel::set_point, 10);
  for (const Channel channel : {Channel::chillers, Channel::chillers_on, Channel::fans}) move(input, channel, 8);
  EXPECT_EQ(first_of(input), Cause::set_point);
  // Also where a consequence rings before its cause.
  input.trigger = Channel::chillers_on;
  EXPECT_EQ(first_of(input), Cause::set_point);
}

TEST(Attribution, MetersMoveTheirRelationsInProportion) {
  AttributionInput input = moved(Channel::balance, -20);
  move(input, Channel::ups_loss, 20);
  ASSERT_FALSE(attribute(input).empty());
  EXPECT_EQ(attribute(input).front().form, "ups_in_w");
  // What is lost for sure is in the balance as well, and leaves it.
  EXPECT_EQ(first_of(moved(Channel::ups_loss, 20)), Cause::ups_mode);
  EXPECT_EQ(attribute(moved(Channel::balance, 20)).front().form, "utility_w");
}

TEST(Attribution, AMeterThatIsNotThereContradictsNobody) {
  AttributionInput input = moved(Channel::pumps, 10);
  move(input, Channel::balance, -10);
  EXPECT_EQ(first_of(input), Cause::meter_fault);
  input.shifts[static_cast<std::size_t>(Channel::balance)] = {};
  EXPECT_EQ(first_of(input), Cause::fan_or_pump);
}

TEST(Attribution, WhatAnotherFindingExplainsDoesNotCount) {
  AttributionInput input = moved(Channel::pumps, 10);
  move(input, Channel::balance, -10);
  input.ignored[static_cast<std::size_t>(Channel::balance)] = true;
  EXPECT_EQ(first_of(input), Cause::fan_or_pump);
}

TEST(Attribution, FirmwareIsBlamedWithANewLabelOnly) {
  AttributionInput input = moved(Channel::gpu_power, 10);
  EXPECT_EQ(first_of(input), Cause::gpu_ageing);
  input.software_step = 0;
  EXPECT_EQ(first_of(input), Cause::firmware);
  input.software_step = -40;  // what moved did not move then
  EXPECT_EQ(first_of(input), Cause::gpu_ageing);
}

TEST(Attribution, NoiseOfOneMeterIsThatMeters) {
  EXPECT_EQ(attribute(moved(Channel::fans_jitter, 10)).front().form, "fans_w");
  EXPECT_EQ(attribute(moved(Channel::chillers_jitter, 10)).front().form, "chillers_w");
}

TEST(Attribution, ProbabilitiesAreInOrderAndSumToOne) {
  AttributionInput input = moved(Channel::fans, 10);
  move(input, Channel::fan_speed, 10);
  input.fans_follow = input.pumps_follow = std::nan("");  // the heat asked for no change
  const auto candidates = attribute(input);
  ASSERT_FALSE(candidates.empty());
  double sum = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_TRUE(std::isfinite(candidates[i].score));
    if (i > 0) {
      EXPECT_LE(candidates[i].probability, candidates[i - 1].probability);
    }
    sum += candidates[i].probability;
  }
  EXPECT_NEAR(sum, 1, 1e-12);
}

TEST(Attribution, ADriveThatNoLongerFollowsIsTheDrivesAndOneThatDoesIsTheFilters) {
  AttributionInput input = moved(Channel::fan_speed, 10);
  move(input, Channel::fans, 10);
  input.fans_follow = 0;
  EXPECT_EQ(first_of(input), Cause::fan_or_pump);
  input.fans_follow = 1;
  EXPECT_EQ(first_of(input), Cause::fouling);
}

TEST(Attribution, ContradictingEvidenceCountsAgainstIt) {
  const auto clear = attribute(moved(Channel::ups_loss, 20));
  AttributionInput input = moved(Channel::ups_loss, 20);
  move(input, Channel::balance, -4);  // far from a meter's proportion
  const auto mixed = attribute(input);
  ASSERT_FALSE(clear.empty());
  ASSERT_FALSE(mixed.empty());
  EXPECT_EQ(mixed.front().cause, Cause::ups_mode);
  EXPECT_LT(mixed.front().score, clear.front().score);
}

}  // namespace
}  // namespace flyball::facility
