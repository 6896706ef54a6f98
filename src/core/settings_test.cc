#include "core/settings.h"

#include <gtest/gtest.h>

namespace flyball {
namespace {

std::vector<std::string> faults(std::string_view file) {
  const auto settings = parse_settings(file, "f");
  std::vector<std::string> all;
  if (!settings) {
    for (const Error& error : settings.error()) all.push_back(error.message());
  }
  return all;
}

std::string fault(std::string_view file) {
  const auto all = faults(file);
  EXPECT_EQ(all.size(), 1U) << file;
  return all.empty() ? "none" : all.front();
}

TEST(Settings, DefaultsAreAConfiguration) {
  const Settings s = default_settings();
  EXPECT_EQ(s.run.interval, Seconds(10));
  EXPECT_EQ(s.run.sample, Seconds(0.5));
  EXPECT_EQ(s.run.objective.max_loss_fraction, 0.012);
  EXPECT_FALSE(s.run.objective.alpha);
  EXPECT_FALSE(s.run.budget);
  EXPECT_EQ(s.guard.lease, Seconds(10));
  EXPECT_EQ(s.guard.dead_band, Milliwatts(1000));
  EXPECT_FALSE(s.site.node_budget);
  EXPECT_EQ(s.rates.currency, "EUR");
}

TEST(Settings, EveryDefaultNamesItsSourceAndEveryKeyItsMeaning) {
  for (const ConfigKey& key : settings_keys()) {
    EXPECT_FALSE(key.help.empty()) << key.path;
    EXPECT_EQ(key.fallback.empty(), key.source.empty()) << key.path;
  }
}

TEST(Settings, AlphaReplacesTheDefaultLossAndExcludesAStatedOne) {
  const auto s = parse_settings("run.alpha = 2", "f");
  ASSERT_TRUE(s);
  EXPECT_EQ(s->run.objective.alpha, 2);
  EXPECT_FALSE(s->run.objective.max_loss_fraction);
  EXPECT_EQ(fault("run.alpha = 2\nrun.max_loss = 0.01"), "f:1: run.alpha: excludes run.max_loss; keep one of the two");
}

TEST(Settings, BareGpuIndicesAreRefused) {
  EXPECT_NE(fault("run.gpus = ['GPU-1', '0']").find("an index changes its meaning"), std::string::npos);
  const std::string in_section = fault("[site.gpu.0]\nmaximum = '300W'");
  EXPECT_NE(in_section.find("f:2: site.gpu.0: '0' is not a device"), std::string::npos) << in_section;
}

TEST(Settings, BoardsTakeFromEverywhereWhatTheyDoNotSet) {
  const auto s = parse_settings(
      "[site]\nminimum = '150W'\nmaximum = '400W'\nsafe_cap = '200W'\n[site.gpu.GPU-1]\nmaximum = '300W'\n", "f");
  ASSERT_TRUE(s);
  const BoardRange& board = s->site.range(DeviceId::of("GPU-1"));
  EXPECT_EQ(board.maximum, Milliwatts(300'000));
  EXPECT_EQ(board.minimum, Milliwatts(150'000));
  EXPECT_EQ(s->site.range(DeviceId::of("GPU-2")).maximum, Milliwatts(400'000));
}

TEST(Settings, RangesThatContradictThemselvesAreRefused) {
  EXPECT_NE(fault("[site]\nminimum = '300W'\nmaximum = '200W'").find("is above the maximum"), std::string::npos);
  EXPECT_NE(fault("[site]\nsafe_cap = '500W'\nmaximum = '200W'").find("is outside minimum and maximum"),
            std::string::npos);
  EXPECT_NE(fault("[site]\nminimum = '300W'\n[site.gpu.GPU-1]\nmaximum = '200W'").find("site.gpu.GPU-1.minimum"),
            std::string::npos);
}

TEST(Settings, ABudgetNeedsItsMeter) {
  EXPECT_NE(fault("run.budget = '2.4kW'").find("name it in run.budget_meter"), std::string::npos);
  EXPECT_NE(fault("run.budget_meter = 'node/ac'").find("there is no run.budget"), std::string::npos);
  const auto s = parse_settings("run.budget = '2.4kW'\nrun.budget_meter = 'node/ac'", "f");
  ASSERT_TRUE(s);
  EXPECT_EQ(s->run.budget->limit, Watts(2400));
  EXPECT_EQ(s->run.budget->meter, DeviceId::of("node/ac"));
  EXPECT_EQ(s->run.budget->window, Seconds(30));
}

TEST(Settings, ANodeBudgetNeedsWhatItsSumNeeds) {
  EXPECT_EQ(faults("site.node_limit = '10kW'").size(), 2U);
  EXPECT_NE(fault("[site]\nnode_limit = '2kW'\nnode_meter = 'm'\nnon_gpu_maximum = '2kW'").find("leaves nothing"),
            std::string::npos);
  const auto s = parse_settings("[site]\nnode_limit = '10kW'\nnode_meter = 'm'\nnon_gpu_maximum = '2kW'", "f");
  ASSERT_TRUE(s);
  EXPECT_EQ(s->site.node_budget->non_gpu_maximum, Watts(2000));
  EXPECT_EQ(s->site.node_budget->lowest_supply_efficiency, 0.9);
}

TEST(Settings, TimesThatCannotWorkTogetherAreRefused) {
  EXPECT_NE(fault("[run]\ninterval = '1s'\nsample = '0.9s'").find("at least two readings"), std::string::npos);
  EXPECT_NE(fault("[guard]\nverify_interval = '30s'").find("every board would be silent"), std::string::npos);
  EXPECT_NE(fault("[guard]\nretry_first = '50s'\nretry_longest = '5s'").find("is shorter"), std::string::npos);
  EXPECT_NE(fault("guard.socket = 'run/x'").find("not an absolute path"), std::string::npos);
  EXPECT_NE(fault("guard.socket = '/" + std::string(120, 'x') + "'").find("107"), std::string::npos);
}

TEST(Settings, FaultsOfSeveralSectionsAreToldAtOnce) {
  EXPECT_EQ(faults("[run]\ngpus = ['0']\nbudget = '5W'\n[guard]\nsocket = 'x'\n[rates]\ncurrency = ''").size(), 4U);
}

}  // namespace
}  // namespace flyball
