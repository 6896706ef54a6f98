#include "twin/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flyball::twin {
namespace {

using testing::HasSubstr;

TEST(Parameters, EveryKeyTakesTheValueThatItShows) {
  const MachineParameters original;
  MachineParameters copy;
  for (const ParameterInfo& info : list_parameters(original)) {
    const auto set = set_parameter(copy, info.key, info.value);
    EXPECT_TRUE(set) << info.key << "=" << info.value << ": " << (set ? "" : set.error().message());
  }
  const auto a = list_parameters(original);
  const auto b = list_parameters(copy);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].value, b[i].value) << a[i].key;
}

TEST(Parameters, UnknownKeyNamesTheKnownOnes) {
  MachineParameters p;
  const auto set = set_parameter(p, "gpu.idle", "60W");
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message(), HasSubstr("gpu.idle_power"));
  EXPECT_THAT(set.error().message(), HasSubstr("job.step_time"));
}

TEST(Parameters, ValuesCarryTheirUnits) {
  MachineParameters p;
  EXPECT_TRUE(set_parameter(p, "gpu.maximum_limit", "0.5kW"));
  EXPECT_EQ(p.gpu.maximum_limit, Watts(500));
  EXPECT_TRUE(set_parameter(p, "gpu.inlet_temperature", "35 °C"));
  EXPECT_EQ(p.gpu.inlet_temperature, Celsius(35));
  EXPECT_TRUE(set_parameter(p, "job.exposed_wait_fraction", "7%"));
  EXPECT_DOUBLE_EQ(p.job.exposed_wait_fraction, 0.07);
  for (const char* bad : {"400000", "", "W", "4e99999W", "-"}) {
    EXPECT_FALSE(set_parameter(p, "gpu.maximum_limit", bad)) << bad;
  }
  EXPECT_FALSE(set_parameter(p, "gpus", "-1"));
  EXPECT_FALSE(set_parameter(p, "gpu.has_fan", "yes"));
  EXPECT_FALSE(set_parameter(p, "gpu.name", ""));
}

TEST(Parameters, WhatHasNoPhysicsIsRefusedAndAllOfItNamed) {
  MachineParameters p;
  EXPECT_TRUE(check(p));
  p.gpu.minimum_limit = Watts(500);
  p.job.step_time = Seconds(0);
  const auto checked = check(p);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::input);
  EXPECT_THAT(checked.error().what, HasSubstr("gpu.minimum_limit"));
  EXPECT_THAT(checked.error().what, HasSubstr("job.step_time"));
}

TEST(Parameters, PresetsAreSound) {
  for (const std::string& name : gpu_preset_names()) {
    const auto preset = gpu_preset(name);
    ASSERT_TRUE(preset) << name;
    MachineParameters p;
    p.gpu = *preset;
    EXPECT_TRUE(check(p)) << name;
  }
  EXPECT_FALSE(gpu_preset("a100"));
}

}  // namespace
}  // namespace flyball::twin
