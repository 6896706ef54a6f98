#include "twin/scenario.h"

#include <gtest/gtest.h>

#include "base/memory_filesystem.h"

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
  EXPECT_TRUE(override_parameter(*scenario, "job.throughput_noise_sd=0.01"));
  EXPECT_EQ(scenario->parameters.job.throughput_noise_sd, 0.01);
  EXPECT_FALSE(override_parameter(*scenario, "job.throughput_noise_sd"));
  EXPECT_FALSE(override_parameter(*scenario, "nothing=1"));
  EXPECT_FALSE(override_parameter(*scenario, "gpu.idle_power=-5W"));
}

}  // namespace
}  // namespace flyball::twin
