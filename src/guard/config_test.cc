#include "guard/config.h"

#include <gtest/gtest.h>

namespace flyball::guard {
namespace {

using namespace literals;

EngineConfig parsed(const std::string& text) {
  const auto settings = parse_settings(text, "test");
  EXPECT_TRUE(settings) << (settings ? "" : settings.error().front().message());
  return settings ? EngineConfig(*settings) : EngineConfig();
}

TEST(EngineConfig, EveryKeyReachesItsField) {
  const EngineConfig config = parsed(R"([guard]
journal = "/j"
lease = "11s"
verify_interval = "3s"
dwell = "4s"
stale_after = "12s"
dead_band = "2W"
rounding = "3W"
largest_step_down = "101W"
largest_step_up = "102W"
drift_rewrites = 7
drift_quiet = "2h"
drift_budget_pause = "20min"
retry_first = "5s"
retry_longest = "50s"
)");
  EXPECT_EQ(config.journal_path, "/j");
  EXPECT_EQ(config.longest_lease, 11_s);
  EXPECT_EQ(config.verify_period, 3_s);
  EXPECT_EQ(config.minimum_dwell, 4_s);
  EXPECT_EQ(config.stale_after, 12_s);
  EXPECT_EQ(config.dead_band, 2000_mW);
  EXPECT_EQ(config.rounding, 3000_mW);
  EXPECT_EQ(config.largest_step_down, 101'000_mW);
  EXPECT_EQ(config.largest_step_up, 102'000_mW);
  EXPECT_EQ(config.drift_rewrites, 7);
  EXPECT_EQ(config.drift_quiet, 7200_s);
  EXPECT_EQ(config.drift_budget_pause, 1200_s);
  EXPECT_EQ(config.retry_first, 5_s);
  EXPECT_EQ(config.retry_longest, 50_s);
}

TEST(EngineConfig, TheSiteReachesBoardsAndBudget) {
  const EngineConfig config = parsed(R"([site]
minimum = "250W"
maximum = "600W"
safe_cap = "400W"
clocks_unlocked = true
node_meter = "node-1/ac"
node_limit = "8kW"
non_gpu_maximum = "2kW"
lowest_supply_efficiency = 0.88
highest_supply_efficiency = 0.95
overshoot = 0.04
meter_accuracy = 0.01
[site.gpu.GPU-a]
safe_cap = "300W"
)");
  EXPECT_EQ(config.everywhere.floor, 250'000_mW);
  EXPECT_EQ(config.everywhere.ceiling, 600'000_mW);
  EXPECT_EQ(config.everywhere.safe_cap, 400'000_mW);
  EXPECT_TRUE(config.everywhere.clocks_unlocked);
  EXPECT_EQ(config.policy(DeviceId::of("GPU-a")).safe_cap, 300'000_mW);
  EXPECT_EQ(config.policy(DeviceId::of("GPU-a")).floor, 250'000_mW);
  ASSERT_TRUE(config.node_budget);
  EXPECT_EQ(config.node_budget->meter, DeviceId::of("node-1/ac"));
  EXPECT_EQ(config.node_budget->limit, 8000_W);
  EXPECT_EQ(config.node_budget->worst_non_gpu, 2000_W);
  EXPECT_EQ(config.node_budget->lowest_supply_efficiency, 0.88);
  EXPECT_EQ(config.node_budget->highest_supply_efficiency, 0.95);
  EXPECT_EQ(config.node_budget->overshoot_fraction, 0.04);
  EXPECT_EQ(config.node_budget->meter_accuracy_fraction, 0.01);
}

TEST(EngineConfig, DefaultsAreThoseOfTheKeys) {
  EXPECT_EQ(EngineConfig().journal_path, default_settings().guard.journal);
  EXPECT_EQ(EngineConfig().longest_lease, 10_s) << "doc/safety.md promises it";
  EXPECT_FALSE(EngineConfig().node_budget);
  const EngineConfig budget = parsed("[site]\nnode_meter = \"m\"\nnode_limit = \"8kW\"\nnon_gpu_maximum = \"2kW\"\n");
  ASSERT_TRUE(budget.node_budget);
  const NodeBudgetConfig bare;
  EXPECT_EQ(budget.node_budget->lowest_supply_efficiency, bare.lowest_supply_efficiency);
  EXPECT_EQ(budget.node_budget->highest_supply_efficiency, bare.highest_supply_efficiency);
  EXPECT_EQ(budget.node_budget->overshoot_fraction, bare.overshoot_fraction);
  EXPECT_EQ(budget.node_budget->meter_accuracy_fraction, bare.meter_accuracy_fraction);
}

}  // namespace
}  // namespace flyball::guard
