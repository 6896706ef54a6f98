#include "twin/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/memory_filesystem.h"
#include "base/presets.h"

namespace flyball::twin {
namespace {

using namespace literals;

MemoryFilesystem with(const std::string& text) {
  MemoryFilesystem files;
  files.content("p/curves/c.csv") =
      "# source: s\n# licence: l\n# method: m\ngpu,workload,power_limit_w,time_s,power_w\n"
      "V100,w,100,2,95\nV100,w,200,1,180\n";
  files.content("p/scenarios/s.conf") = text;
  return files;
}

TEST(Scenario, ACurveSetsTheBoardsRange) {
  auto files = with("# a comment\nsummary = One GPU\nboard = v100-pcie-16gb\ncurve = c\njob.step_time = 500 ms\n");
  const auto scenario = load_scenario(files, "p", "s");
  ASSERT_TRUE(scenario) << scenario.error().message();
  EXPECT_EQ(scenario->summary, "One GPU");
  EXPECT_EQ(scenario->parameters.gpu.maximum_limit, 200_W);
  EXPECT_EQ(scenario->parameters.job.step_time, Seconds(0.5));
  EXPECT_EQ(scenario->plant(), "twin s (preset c)");
  EXPECT_TRUE(scenario->build());
}

TEST(Scenario, ErrorsNameTheLineOrWhatIsThere) {
  const auto why = [](const std::string& text) {
    auto files = with(text);
    return load_scenario(files, "p", "s").error().message();
  };
  EXPECT_NE(why("summary = x\nno equals sign\n").find("s.conf:2"), std::string::npos);
  EXPECT_NE(why("\njob.step_tim = 1 s\n").find("s.conf:2"), std::string::npos);
  EXPECT_NE(why("curve = absent\n").find("absent"), std::string::npos);
  EXPECT_NE(why("board = tpu\n").find("tpu"), std::string::npos);
  auto files = with("");
  EXPECT_NE(load_scenario(files, "p", "t").error().message().find("there are s"), std::string::npos);
  EXPECT_FALSE(load_scenario(files, "p", "../scenarios/s"));
}

TEST(Scenario, OverridesAreChecked) {
  auto files = with("curve = c\n");
  auto scenario = load_scenario(files, "p", "s");
  ASSERT_TRUE(scenario);
  EXPECT_TRUE(override_parameters(*scenario, {"job.throughput_noise_sd=0.01"}));
  EXPECT_EQ(scenario->parameters.job.throughput_noise_sd, 0.01);
  EXPECT_FALSE(override_parameters(*scenario, {"job.throughput_noise_sd"}));
  EXPECT_FALSE(override_parameters(*scenario, {"nothing=1"}));
  EXPECT_FALSE(override_parameters(*scenario, {"gpu.idle_power=-5W"}));
}

TEST(Scenario, WhatIsSetIsCheckedTogether) {
  auto scenario = load_scenario(system_filesystem(), *presets_folder(), "pretrain-8");
  ASSERT_TRUE(scenario);
  EXPECT_TRUE(override_parameters(*scenario, {"gpu.default_limit=700W", "gpu.maximum_limit=700W"}));
  EXPECT_TRUE(override_parameters(*scenario, {"pipeline_stages=16", "gpus=16"}));
  EXPECT_FALSE(override_parameters(*scenario, {"pipeline_stages=32"}));
}

TEST(Scenario, TheHashIsThatOfAllButTheSeed) {
  auto files = with("curve = c\njob.step_time = 2 s  # measured by hand\n");
  auto scenario = load_scenario(files, "p", "s");
  ASSERT_TRUE(scenario);
  const std::string hash = scenario->hash();
  EXPECT_EQ(hash.size(), 64U);
  scenario->parameters.seed = 7;
  EXPECT_EQ(scenario->hash(), hash);
  ASSERT_TRUE(override_parameters(*scenario, {"absorbable_wait_fraction=0.05"}));
  EXPECT_NE(scenario->hash(), hash);
  ASSERT_TRUE(override_parameters(*scenario, {"job.absorbable_wait_fraction=0"}));
  EXPECT_EQ(scenario->hash(), hash) << "the value counts, not how it came about";
  EXPECT_NE(scenario->canonical_text().find("\nlimit 100000 mW: 2 s 95 W\n"), std::string::npos);
  for (const ParameterInfo& info : list_parameters(scenario->parameters)) {
    if (info.key == "job.step_time") {
      EXPECT_EQ(scenario->source(info), "measured by hand");
    }
    if (info.key == "job.absorbable_wait_fraction") {
      EXPECT_EQ(scenario->source(info), "--set");
    }
    if (info.key == "gpu.full_power") {
      EXPECT_EQ(scenario->source(info), "sosp24");
    }
  }
  EXPECT_FALSE(override_parameters(*scenario, {"preset=a100-sxm-bloom"})) << "it has a curve already";
}

TEST(Scenario, ThoseThatComeWithTheProgramRunAndSayWhereTheirNumbersAreFrom) {
  const auto folder = presets_folder();
  ASSERT_TRUE(folder);
  const auto names = scenario_names(system_filesystem(), *folder);
  ASSERT_TRUE(names);
  for (const char* needed : {"pretrain-1", "pretrain-8", "pretrain-64", "gpt3-64nodes"}) {
    EXPECT_NE(std::find(names->begin(), names->end(), needed), names->end()) << needed;
  }
  for (const std::string& name : *names) {
    const auto scenario = load_scenario(system_filesystem(), *folder, name);
    ASSERT_TRUE(scenario) << scenario.error().message();
    EXPECT_FALSE(scenario->summary.empty()) << name;
    auto machine = scenario->build();
    ASSERT_TRUE(machine) << machine.error().message();
    machine->advance(20_s);
    EXPECT_GT(machine->job().exact_tokens(), 0) << name;
  }
}

}  // namespace
}  // namespace flyball::twin
