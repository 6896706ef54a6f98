#include "twin/node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/filesystem.h"
#include "base/presets.h"
#include "base/stats.h"
#include "series/node_power_test_data.h"
#include "twin/node_statistics.h"
#include "twin/scenario.h"

namespace flyball::twin {
namespace {

using namespace flyball::literals;

constexpr WallTime kStart(1'767'225'600'000'000'000);

void print(const char* what, bool dc, const NodeStatistics& s) {
  std::printf("P6 %s %s: %zu nodes, mean %.0f kW, sd of block means at 2, 5, 10, 30 s", what, dc ? "DC" : "AC", s.nodes,
              s.blocks[0].mean_w / 1000);
  for (const auto& b : s.blocks) std::printf(" %.1f", b.sd_w / 1000);
  std::printf(" kW, pairwise correlation %.3f, step %.2f s\n", s.correlation, s.step_period.value());
}

/// The stated figures of the recorded job.
struct Stated {
  double mean;   // kW
  double sd[4];  // kW
  double correlation;
};
constexpr Stated kDc{434, {18.7, 12.4, 4.9, 3.9}, 0.27};
constexpr Stated kAc{442, {15.1, 10.0, 2.2, 1.6}, 0.66};

void expect_stated(const NodeStatistics& s, const Stated& stated) {
  ASSERT_EQ(s.blocks.size(), 4U);
  EXPECT_NEAR(s.blocks[0].mean_w / 1000 / stated.mean, 1, 0.15);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(s.blocks[i].sd_w / 1000 / stated.sd[i], 1, 0.15) << s.blocks[i].width.value() << " s";
  }
  EXPECT_NEAR(s.correlation / stated.correlation, 1, 0.15);
  EXPECT_NEAR(s.step_period.value() / 10.76, 1, 0.02) << "autocorrelation peaks at the step";
}

// P6: one plant seen by two sensor models.
TEST(GptNodes, TheTwinMovesAsTheRecordedJobDid) {
  const auto folder = presets_folder();
  ASSERT_TRUE(folder) << folder.error().message();
  const auto scenario = load_scenario(system_filesystem(), *folder, "gpt3-64nodes");
  ASSERT_TRUE(scenario) << scenario.error().message();
  auto machine = scenario->build();
  ASSERT_TRUE(machine) << machine.error().message();
  const auto recording = record_nodes(*machine, Seconds(3412), kStart, "gpt3");
  const auto evaluations = std::count_if(recording.events.begin(), recording.events.end(),
                                         [](const series::Event& e) { return e.kind == "eval_start"; });
  EXPECT_EQ(evaluations, 24);
  const NodeStatistics dc = node_statistics(recording, Scope::node_dc);
  const NodeStatistics ac = node_statistics(recording, Scope::node_ac);
  print("twin", true, dc);
  print("twin", false, ac);
  expect_stated(dc, kDc);
  expect_stated(ac, kAc);
}

// 30 of the 64 logs of each run are copies of another node's, stamps included. That lifts the pairwise correlation a
// little and lets the sum move more than 64 meters of their own would.
TEST(GptNodes, TheRecordedFiguresAreTheStatedOnesAndDistinctNodesAgree) {
  const auto runs = series::test::node_power("64x_gpt3");
  if (runs.empty()) GTEST_SKIP() << "shared data not there";
  for (const auto& [name, run] : runs) {
    for (const bool is_dc : {true, false}) {
      std::vector<std::span<const series::Point>> all, distinct;
      for (const auto& [node, points] : is_dc ? run.dc : run.ac) {
        all.emplace_back(points);
        const bool copy = std::any_of(distinct.begin(), distinct.end(), [&](const auto& other) {
          return std::equal(points.begin(), points.end(), other.begin(), other.end(),
                            [](const auto& a, const auto& b) { return a.value == b.value; });
        });
        if (!copy) distinct.emplace_back(points);
      }
      EXPECT_EQ(distinct.size(), 34U);
      const NodeStatistics with = node_statistics(all, run.events);
      const NodeStatistics without = node_statistics(distinct, run.events);
      print("recorded", is_dc, with);
      print("recorded, distinct nodes", is_dc, without);
      const Stated& stated = is_dc ? kDc : kAc;
      EXPECT_NEAR(with.correlation / stated.correlation, 1, 0.1);
      EXPECT_NEAR(without.correlation / stated.correlation, 1, 0.1);
      EXPECT_LT(without.correlation, with.correlation);
    }
  }
}

MachineParameters quiet_node() {
  MachineParameters p;
  p.gpus = 16;
  p.gpu.full_power = 350_W;
  p.gpu.board_power_sd = 0;
  p.job.throughput_noise_sd = 0;
  p.job.drift_sd = 0;
  p.job.exposed_wait_fraction = 0;
  p.node.other_power_sd = 0;
  p.node.sample_jitter = 0_s;
  return p;
}

TEST(NodeMeters, ReadTheGpusOfTheNodeAndWhatIsAroundThem) {
  auto machine = Machine::create(quiet_node());
  const auto recording = record_nodes(*machine, 120_s, kStart, "r");
  ASSERT_EQ(recording.series.size(), 4U) << "two nodes, two meters";
  EXPECT_EQ(recording.series[2].key.device.text(), "r/node-2");
  EXPECT_EQ(recording.series[0].key.scope, Scope::node_ac);
  const double node = 8 * machine->gpus()[0].truth().power.value() + 1500;
  for (const auto& each : recording.series) {
    EXPECT_NEAR(static_cast<double>(each.points.size()), 120 / 2.00524, 1.5);
    EXPECT_NEAR(each.points.back().value, node, 1.5);
  }
  EXPECT_EQ(recording.events.front().kind, "run_start");
  EXPECT_EQ(recording.events.back().kind, "run_stop");
}

TEST(NodeMeters, TheRippleMovesTheDcMeterAndNoMean) {
  MachineParameters p = quiet_node();
  p.node.ripple_power = 1000_W;
  p.node.ripple_period = Seconds(0.2437);  // no ratio to the sampling
  auto machine = Machine::create(p);
  const auto recording = record_nodes(*machine, 3600_s, kStart, "r");
  RunningStats ac, dc;
  for (std::size_t i = 50; i < recording.series[0].points.size(); ++i) {
    ac.add(recording.series[0].points[i].value);
    dc.add(recording.series[1].points[i].value);
  }
  EXPECT_LT(ac.sd(), 10);
  EXPECT_NEAR(dc.sd(), 364, 15) << "of ((1 - cos) / 2)²";
  EXPECT_NEAR(dc.mean(), ac.mean(), 25);
}

TEST(NodeMeters, TheAcMeterFollowsWithItsLag) {
  MachineParameters p = quiet_node();
  p.job.startup_time = 60_s;
  p.node.ac_lag = 5_s;
  p.node.ac_age = 0_s;
  p.node.sample_period = Seconds(0.5);
  auto machine = Machine::create(p);
  const auto recording = record_nodes(*machine, 120_s, kStart, "r");
  const auto at = [&](std::size_t series, double seconds) {
    const auto& points = recording.series[series].points;
    return std::find_if(points.begin(), points.end(),
                        [&](const auto& point) { return (point.at - kStart).value() >= seconds; })
        ->value;
  };
  const double low = at(1, 59), high = at(1, 110);
  EXPECT_NEAR(at(1, 61), high, 30) << "the DC meter is there at once";
  EXPECT_NEAR((at(0, 65) - low) / (high - low), 1 - std::exp(-1), 0.05);
}

TEST(NodeMeters, SameSeedSameRecordingAnotherSeedAnother) {
  const auto values = [](std::uint64_t seed) {
    MachineParameters p = quiet_node();
    p.seed = seed;
    p.node.other_power_sd = 0.03;
    p.node.wander_power = 50_W;
    auto machine = Machine::create(p);
    std::vector<double> all;
    for (const auto& each : record_nodes(*machine, 60_s, kStart, "r").series) {
      for (const auto& point : each.points) all.push_back(point.value);
    }
    return all;
  };
  EXPECT_EQ(values(3), values(3));
  EXPECT_NE(values(3), values(4));
}

}  // namespace
}  // namespace flyball::twin
