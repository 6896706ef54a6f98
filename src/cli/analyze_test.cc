#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/program_test_support.h"

namespace flyball::cli {
namespace {

class Analyze : public ProgramTest {
 protected:
  nlohmann::json json(std::vector<std::string> words) {
    words.emplace_back("--json");
    return nlohmann::json::parse(text(std::move(words)), nullptr, false);
  }
};

constexpr long kStart = 1'715'960'300'000;

// Two runs of two nodes: 1,000 W and 2,000 W AC for 100 s, 10 % less DC; the second run twice as much.
std::string node_power() {
  std::string text = "run,node,time_ms,ac_w,dc_w\n";
  for (int run = 1; run <= 2; ++run)
    for (int node = 1; node <= 2; ++node)
      for (int t = 0; t <= 100; t += 2)
        text += fmt::format("r-{},{},{},{},{}\n", run, node, kStart + 1000 * t, 1000 * node * run, 900 * node * run);
  return text;
}

std::string events() {
  std::string text = "system,benchmark,run,time_ms,event,value,step_or_samples\n";
  for (int run = 1; run <= 2; ++run)
    text += fmt::format(
        "2x,gpt3,r-{0},{1},run_start,,\n2x,gpt3,r-{0},{2},run_stop,,\n2x,gpt3,r-{0},{2},train_samples,5000,\n", run,
        kStart + 10'000, kStart + 60'000);
  return text;
}

TEST_F(Analyze, EnergyIsBetweenTheEventsWithWhatWasDeclared) {
  const auto made = json({"analyze", "energy", put("p.csv", node_power()), "--events", put("e.csv", events()),
                          "--meter", "ac", "--extra", "100W", "--price", "0.36"});
  EXPECT_EQ(made["schema"], "flyball.analyze_energy/1");
  ASSERT_EQ(made["runs"].size(), 2u);
  EXPECT_EQ(made["runs"][0]["run"], "r-1");
  EXPECT_NEAR(made["runs"][0]["energy_j"].get<double>(), 50 * (3000 + 100), 1e-6);
  EXPECT_NEAR(made["runs"][1]["energy_j"].get<double>(), 50 * (6000 + 100), 1e-6);
  EXPECT_NEAR(made["mean_energy_j"].get<double>(), 50 * 4600, 1e-6);
  EXPECT_NEAR(made["runs"][0]["cost"].get<double>(), 50 * 3100 / 1e7, 1e-9);
  EXPECT_EQ(made["runs"][0]["tokens"], 5000);
  EXPECT_EQ(made["runs"][0]["coverage_fraction"], 1);
}

TEST_F(Analyze, SeveralScopesNeedAChoiceAndAWrongOneIsRefused) {
  const std::string file = put("p.csv", node_power());
  EXPECT_EQ(run({"analyze", "energy", file}), 2);
  EXPECT_EQ(run({"analyze", "energy", file, "--meter", "rack"}), 2);
  EXPECT_EQ(run({"analyze", "energy", file, "--meter", "nonsense"}), 2);
  EXPECT_EQ(run({"analyze", "windows", file, "--meter", "ac", "--budget", "450000"}), 2);
  EXPECT_EQ(run({"analyze", "windows", file, "--meter", "ac", "--budget", "2kW", "--window", "0s"}), 2);
  EXPECT_NE(run({"analyze", "energy", dir_.file("absent.csv")}), 0);
}

TEST_F(Analyze, WindowsCountTheShareOfTimeOverTheBudget) {
  std::string text = "time,gpu,power_w\n";
  for (int i = 0; i < 100; ++i)
    text += fmt::format("{},GPU-a,{}\n", static_cast<double>(kStart) / 1000 + 0.5 * i, i % 4 == 0 ? 400 : 300);
  const auto made = json({"analyze", "windows", put("g.csv", text), "--budget", "350W", "--window", "0.5s", "--window",
                          "2s", "--report", "/page.html"});
  const auto& windows = made["runs"][0]["windows"];
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_EQ(windows[0]["window_s"], 0.5);
  EXPECT_NEAR(windows[0]["violation_fraction"].get<double>(), 0.25, 1e-9);
  EXPECT_EQ(windows[1]["violation_fraction"], 0);
  EXPECT_EQ(windows[0]["sliding"]["violations"], 25);
  EXPECT_NE(files_.read("/page.html", 1 << 24).value().find("<svg"), std::string::npos);
}

TEST_F(Analyze, PhasesAndRampsOfAJobWithEvaluations) {
  std::string text = "time,gpu,power_w\n";
  for (int i = 0; i < 1800; ++i) {
    const bool evaluation = i % 200 >= 180;
    const double power = evaluation ? 520 : i % 8 < 5 ? 600 : 420;
    text += fmt::format("{},GPU-a,{}\n", static_cast<double>(kStart) / 1000 + i, power + (i * 7919) % 5);
  }
  const std::string file = put("g.csv", text);
  const auto made = json({"analyze", "phases", file});
  int evaluations = 0;
  for (const auto& phase : made["runs"][0]["phases"]) evaluations += phase["label"] == "evaluation" ? 1 : 0;
  EXPECT_EQ(evaluations, 9);
  EXPECT_NEAR(made["runs"][0]["step_period_s"].get<double>(), 8, 0.1);
  EXPECT_TRUE(made["runs"][0]["told"].is_null());
  const auto ramps = json({"analyze", "ramps", file});
  EXPECT_NEAR(ramps["runs"][0]["ramps"][0]["max_up_w_per_s"].get<double>(), 180, 5);
  EXPECT_NEAR(ramps["runs"][0]["spectrum"]["lines"][0]["frequency_hz"].get<double>(), 0.125, 0.005);
}

TEST_F(Analyze, RowsSetAsideAreCountedAndShownWithTheirLines) {
  std::string text = "timestamp, uuid, power.draw [W]\n";
  for (int i = 0; i < 60; ++i) text += fmt::format("2024/05/17 15:00:{:02}.000, GPU-a, 250.00 W\n", i);
  text += "2024/05/17 15:01:00.000, GPU-a\n2024/05/17 15:01:01.000, GPU-a, [N/A]\n";
  text += "2024/05/17 15:00:30.000, GPU-a, 9999.00 W\n2024/05/17 15:01:02.000, GPU-a, 0.25 W\n";
  text += "2024/05/17 15:01:03.000, GPU-a, 250,00 W\n2024/05/17 15:01:04.000, GPU-a, 1,234 W\n";
  const auto made = json({"analyze", "energy", put("d.csv", text)});
  EXPECT_EQ(made["rows_set_aside"], 2) << made["set_aside"];
  EXPECT_NE(made["set_aside"][0].get<std::string>().find("line 62: it has 2 cells"), std::string::npos);
  EXPECT_NE(made["set_aside"][1].get<std::string>().find("line 64: the stamp runs backwards"), std::string::npos);
  // One second between 59 and 63 is all that is known there: the rest is none, garbage, or out of order.
  EXPECT_NEAR(made["runs"][0]["energy_j"].get<double>(), 59 * 250, 1e-6);
}

TEST_F(Analyze, WhereThereIsNoPowerTheReasonsAreSaid) {
  const auto told = [&](const std::string& text) { return refused({"analyze", "energy", put("x.csv", text)}); };
  std::string negative = "time,gpu,power_w\n", dates = negative, commas = "time,0,1\n";
  for (int i = 0; i < 60; ++i) {
    negative += fmt::format("{},GPU-a,-{}\n", 1715960300 + i, 250 + i);
    dates += fmt::format("05/17/2024 15:38:{:02},GPU-a,250\n", i);
    commas += fmt::format("{},250,12,250,13\n", 1715960300 + i);
  }
  EXPECT_NE(told(negative).find("60 values from line 2 on ('-250'): it is below zero"), std::string::npos);
  const std::string odd = told(dates);
  EXPECT_NE(odd.find("60 rows were set aside"), std::string::npos) << odd;
  EXPECT_NE(odd.find("line 2: the stamp's day and month cannot be told apart"), std::string::npos) << odd;
  EXPECT_NE(odd.find("'05/17/2024 15:38:00'"), std::string::npos) << odd;
  EXPECT_NE(told(commas).find("line 2: it has 5 cells where the header has 3 (with decimal commas"), std::string::npos);
  EXPECT_EQ(run({"analyze", "energy", put("p.csv", node_power()), "--meter", "ac", "--price", dir_.file("absent")}), 2);
}

TEST_F(Analyze, ARateSeriesIsTakenFromItsOwnColumnsOnly) {
  const std::string rows = "2020-01-01T00:00:00Z,380\n2021-01-01T00:00:00Z,380\n";
  const auto priced = [&](const std::string& header) {
    EXPECT_TRUE(files_.write_atomically("/r.csv", header + "\n" + rows));
    return std::vector<std::string>{"analyze", "energy", put("p.csv", node_power()), "--meter", "ac",
                                    "--price", "/r.csv"};
  };
  const std::string error = refused(priced("time,temperature_c"));
  for (const char* part : {"r.csv:1", "'time,temperature_c'", "'time,per_kwh'"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  run(priced("\xEF\xBB\xBFtime, per_kwh\r"));
  EXPECT_EQ(errors_.find("columns are"), std::string::npos) << errors_;
}

// 400 W and 600 W in turn, looked at only when it is 400: a counter knows better.
TEST_F(Analyze, TheEnergyCounterCountsAndIntegratedPowerStandsBesideIt) {
  std::string text = "time,uuid,power_w,energy_j\n";
  for (int i = 0; i <= 600; ++i) text += fmt::format("{},GPU-a,400,{}\n", 1715960300 + i, 1000 + 500 * i);
  const auto made = json({"analyze", "energy", put("c.csv", text)});
  const auto& one = made["runs"][0];
  EXPECT_NEAR(one["energy_j"].get<double>(), 600 * 500, 1e-6);
  EXPECT_EQ(one["method"], "counter");
  EXPECT_EQ(one["meters_by_counter"], 1);
  EXPECT_NEAR(one["counter_energy_j"].get<double>(), 600 * 500, 1e-6);
  EXPECT_NEAR(one["integrated_energy_j"].get<double>(), 600 * 400, 1e-6);
  EXPECT_NE(made["warnings"].dump().find("differ by 25.00 %"), std::string::npos) << made["warnings"];
  ASSERT_EQ(run({"analyze", "energy", dir_.file("c.csv")}), 0);
  EXPECT_NE(files_.read("/out", 1 << 20)->find("+25.00 %"), std::string::npos);

  // A counter that stands still does not count, and one in another unit is refused with the diagnosis.
  std::string stuck = "time,uuid,power_w,energy_j\n", other = stuck;
  for (int i = 0; i <= 600; ++i) {
    stuck += fmt::format("{},GPU-a,400,1000\n", 1715960300 + i);
    other += fmt::format("{},GPU-a,400,{}\n", 1715960300 + i, 0.4 * i);
  }
  const auto still = json({"analyze", "energy", put("s.csv", stuck)});
  EXPECT_NEAR(still["runs"][0]["energy_j"].get<double>(), 600 * 400, 1e-6);
  EXPECT_EQ(still["runs"][0]["method"], "trapezoid of power_average");
  EXPECT_NE(still["warnings"].dump().find("stood still"), std::string::npos) << still["warnings"];
  EXPECT_EQ(run({"analyze", "energy", put("u.csv", other)}), 2);
}

TEST_F(Analyze, ACounterThatMissesTimeIsFilledWithPower) {
  std::string text = "time,uuid,power_w,energy_j\n";
  for (int i = 0; i <= 600; ++i)
    text += fmt::format("{},GPU-a,400,{}\n", 1715960300 + i,
                        i >= 100 && i < 150 ? "" : std::to_string(i < 100 ? 400 * i : 400 * (i - 150)));
  const auto made = json({"analyze", "energy", put("c.csv", text)});
  // The counter began anew while it was not read: 51 s between its last read and the first of the next life.
  EXPECT_NEAR(made["runs"][0]["energy_j"].get<double>(), 600 * 400, 1e-6);
  EXPECT_EQ(made["runs"][0]["method"], "counter, power where it says nothing");
  EXPECT_NEAR(made["runs"][0]["coverage_fraction"].get<double>(), 1, 1e-9);
}

// Long enough for three chapters, with one hole that is longer than a chapter.
TEST_F(Analyze, AHoleAcrossTheSeamsOfChaptersIsCountedOnce) {
  std::string text = "time,gpu,power_w\n";
  constexpr int kPoints = 450'000;
  constexpr double kPeriod = 0.2, kHole = 80'000;
  for (int i = 0; i < kPoints; ++i)
    text += fmt::format("{:.1f},GPU-a,{}\n", 1715960300 + kPeriod * i + (i < kPoints / 2 ? 0 : kHole), 300 + i % 2);
  const auto made = json({"analyze", "energy", put("long.csv", text)});
  const auto& one = made["runs"][0];
  EXPECT_EQ(one["holes"], 1);
  EXPECT_NEAR(one["coverage_fraction"].get<double>(), 90'000.0 / 170'000, 1e-4);
  EXPECT_NEAR(one["mean_power_w"].get<double>(), 300.5, 1e-3);
  const auto bridged = json({"analyze", "energy", dir_.file("long.csv"), "--bridge"});
  EXPECT_EQ(bridged["runs"][0]["holes"], 1);
  EXPECT_NEAR(bridged["runs"][0]["bridged_meter_s"].get<double>(), kHole + kPeriod, 1e-3);
  EXPECT_NEAR(bridged["runs"][0]["mean_power_w"].get<double>(), 300.5, 1e-3) << "over all that has an energy";
  ASSERT_EQ(run({"analyze", "energy", dir_.file("long.csv"), "--bridge"}), 0);
  EXPECT_NE(files_.read("/out", 1 << 20)->find("Bridged, of all meters  "), std::string::npos);
}

TEST_F(Analyze, PhasesSayHowMuchOfTheirTimeWasMeasured) {
  std::string text = "time,gpu,power_w\n";
  for (int i = 0; i < 1800; ++i) {
    if (i >= 400 && i < 850) continue;
    text +=
        fmt::format("{},GPU-a,{}\n", static_cast<double>(kStart) / 1000 + i, (i % 8 < 5 ? 600 : 420) + (i * 7919) % 5);
  }
  const auto made = json({"analyze", "phases", put("h.csv", text)});
  double time = 0, measured = 0, energy = 0;
  for (const auto& phase : made["runs"][0]["phases"]) {
    const double lasted = phase["duration_s"].get<double>();
    time += lasted;
    measured += lasted * phase["coverage_fraction"].get<double>();
    energy += phase["mean_power_w"].get<double>() * lasted * phase["coverage_fraction"].get<double>();
    EXPECT_NEAR(phase["energy_j"].get<double>(),
                phase["mean_power_w"].get<double>() * lasted * phase["coverage_fraction"].get<double>(), 1);
  }
  EXPECT_NEAR(measured, 1350, 15);
  EXPECT_GT(energy, 0);
  EXPECT_GE(time, measured);
  ASSERT_EQ(run({"analyze", "phases", dir_.file("h.csv")}), 0);
  EXPECT_NE(files_.read("/out", 1 << 20)->find("energy measured"), std::string::npos);
}

}  // namespace
}  // namespace flyball::cli
