#include "twin/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

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

TEST(Parameters, ShortNamesAreTheSameKeys) {
  MachineParameters p;
  for (const auto& [name, value, key] : {std::tuple{"absorbable_wait_fraction", "0.07", "job.absorbable_wait_fraction"},
                                         {"wait_power_fraction", "30%", "job.wait_power_fraction"},
                                         {"step_s", "1.5", "job.step_time"},
                                         {"checkpoint_every_s", "600", "job.checkpoint_interval"},
                                         {"noise_fraction", "0.01", "job.throughput_noise_sd"},
                                         {"drift_fraction", "0.002", "job.drift_sd"},
                                         {"idle_power", "70W", "gpu.idle_power"},
                                         {"gpus", "4", "gpus"}}) {
    EXPECT_TRUE(set_parameter(p, name, value)) << name;
    EXPECT_EQ(parameter_key(name).value_or(""), key);
  }
  EXPECT_DOUBLE_EQ(p.job.absorbable_wait_fraction, 0.07);
  EXPECT_DOUBLE_EQ(p.job.wait_power_fraction, 0.3);
  EXPECT_EQ(p.job.step_time, Seconds(1.5));
  EXPECT_EQ(p.job.checkpoint_interval, Seconds(600));
  EXPECT_TRUE(set_parameter(p, "step_s", "250 ms")) << "a unit of its own counts";
  EXPECT_EQ(p.job.step_time, Seconds(0.25));
  EXPECT_EQ(p.gpus, 4U);
  EXPECT_EQ(p.node.gpus, NodeParameters{}.gpus);
}

TEST(Parameters, EachHasASource) {
  for (const ParameterInfo& info : list_parameters({})) EXPECT_FALSE(info.source.empty()) << info.key;
}

TEST(Parameters, ARefusalNamesKeyValueRangeAndRemedy) {
  MachineParameters p;
  ASSERT_TRUE(set_parameter(p, "absorbable_wait_fraction", "2"));
  const Error error = check(p).error();
  EXPECT_THAT(error.message(), HasSubstr("job.absorbable_wait_fraction is 2, allowed is 0 to 0.9"));
  EXPECT_FALSE(error.remedy.empty());
  p = {};
  p.preset = "a100";
  EXPECT_THAT(check(p).error().message(), HasSubstr("a100-sxm-bloom"));
  p = {};
  p.job.pipeline_stages = 2;
  EXPECT_THAT(check(p).error().message(), HasSubstr("job.pipeline_stages is 2, allowed is 1 to 1"));
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
