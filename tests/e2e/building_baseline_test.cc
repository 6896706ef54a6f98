// ctest: needs flyball
// The baseline of a simulated building, as a person would ask for it: `record` of a simulated one, then `calibrate
// fit`.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "../shell.h"
#include "base/filesystem.h"
#include "base/temp_dir.h"
#include "twin/facility.h"

namespace flyball {
namespace {

using Json = nlohmann::json;

bool campaign() { return std::getenv("FLYBALL_CAMPAIGN") != nullptr; }

class BuildingBaseline : public ::testing::Test {
 protected:
  std::string flyball(const std::string& words) {
    const std::string program = (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "flyball").string();
    return shell(fmt::format("{} --state-dir {} {}", program, dir_.file("state"), words));
  }
  std::string simulate(const std::string& building, std::uint64_t seed, const std::string& length) {
    std::string path = dir_.file(fmt::format("{}-{}.csv", building, seed));
    const std::string done =
        flyball(fmt::format("record --scenario {} --seed {} --duration {} --output {}", building, seed, length, path));
    EXPECT_TRUE(done.ends_with("exit 0")) << done;
    return path;
  }
  Json fit(const std::string& words) {
    const std::string result = dir_.file("fit.json");
    const std::string done = flyball(fmt::format("calibrate fit {} --json --output {}", words, result));
    EXPECT_TRUE(done.ends_with("exit 0")) << done;
    return Json::parse(system_filesystem().read(result, 64 << 20).value_or("{}"), nullptr, false);
  }
  TempDir dir_;
};

double fraction(const Json& row, const char* key) { return row[key].is_number() ? row[key].get<double>() : 0; }

void expect_bars(const std::string& what, const Json& made) {
  const Json& all = made["all"];
  fmt::print("bar: H2 {}, all phases, 95th percentile (static PUE {:.1f} %) = {:.2f} %\n", what,
             100 * fraction(all, "static_pue_p95_fraction"), 100 * fraction(all, "p95_fraction"));
  fmt::print("bar: H3 {}, inside 90 % intervals, all phases = {:.1f} %\n", what,
             100 * fraction(all, "coverage_fraction"));
  EXPECT_LE(fraction(all, "p95_fraction"), 0.032) << what;
  EXPECT_GT(fraction(all, "static_pue_p95_fraction"), 1.5 * fraction(all, "p95_fraction")) << what;
  EXPECT_NEAR(fraction(all, "coverage_fraction"), 0.9, 0.06) << what;
  constexpr int kTold = 3000;  // fewer points of a phase are a handful of independent ones
  for (const Json& row : made["phases"]) {
    if (row["points"].get<int>() < kTold) continue;
    const std::string phase = row["job_type"].get<std::string>() + " " + row["phase"].get<std::string>();
    fmt::print("bar: H2 {}, {}, 95th percentile = {:.2f} %\n", what, phase, 100 * fraction(row, "p95_fraction"));
    fmt::print("bar: H3 {}, {}, inside = {:.1f} %\n", what, phase, 100 * fraction(row, "coverage_fraction"));
    // Idle nights were seen for hours only before they are foretold: there the bar is missed (doc/benchmarks.md).
    EXPECT_LE(fraction(row, "p95_fraction"), std::max(0.032, 0.5 * fraction(row, "static_pue_p95_fraction")))
        << what << ", " << phase;
  }
}

TEST_F(BuildingBaseline, IsForetoldByPhaseWhereOnePueIsNot) {
  const std::string length = campaign() ? "30d" : "12d";
  const std::string month = simulate("facility-1000", 2, length);
  const std::string page = dir_.file("page.html");
  const Json made = fit(month + " --report " + page + " --feed-rating 1.6MW --carbon 380 --keep first");
  ASSERT_TRUE(made.contains("all")) << made.dump().substr(0, 400);
  expect_bars("facility-1000, seed 2, " + length, made);
  EXPECT_TRUE(made["lags"]["identifiable"].get<bool>()) << made["lags"].dump();
  EXPECT_GT(made["carbon_g"].get<double>(), 0);
  EXPECT_EQ(made["head_room"]["limited_by"], "feed");
  EXPECT_GT(made["pue"]["overall"]["value"].get<double>(), 1.05);
  EXPECT_NE(system_filesystem().read(page, 8 << 20).value_or("").find("<svg"), std::string::npos);
  const std::string hash = made["version"]["hash"];
  EXPECT_TRUE(fit(month + " --reproduce " + hash)["version"]["reproduced"].get<bool>());
  const std::string run = flyball("run --duration 1h --quiet --facility " + hash);
  EXPECT_NE(run.find("Cooling and delivery"), std::string::npos) << run;
  struct rusage used = {};
  getrusage(RUSAGE_CHILDREN, &used);
  fmt::print("bar: H7 {} at 10 s, most memory of one program = {} MiB\n", length, used.ru_maxrss / 1024);
  EXPECT_LT(used.ru_maxrss, 2 * 1024 * 1024);
}

TEST_F(BuildingBaseline, ReliefIsWhatPairedRunsSaveAgain) {
  const double days = campaign() ? 30 : 12;
  const auto totals = [&](double scale) {
    twin::FacilitySetup setup;
    setup.seed = 2;
    setup.length = Seconds(days * 86400);
    setup.parameters.it.gpu_power_scale = scale;
    twin::Facility facility = twin::Facility::make(setup).value();
    double it = 0, total = 0;
    for (std::uint64_t i = 0; i < facility.steps(); ++i) {
      facility.step();
      it += facility.truth().it.value();
      total += facility.truth().total().value();
    }
    return std::pair{it, total};
  };
  const auto [it, total] = totals(1);
  const auto [less_it, less_total] = totals(0.9);
  const double truth = (total - less_total) / (it - less_it) - 1;
  const Json made = fit(simulate("facility-1000", 2, fmt::format("{}d", days)));
  const Json& relief = made["relief"][0]["saved_again_fraction"];
  fmt::print(
      "bar: C10 a watt of IT saves again, paired runs {:.1f} %, told {:.1f} % ({:.1f} to {:.1f}), off by = {:.1f} "
      "points\n",
      100 * truth, 100 * fraction(relief, "value"), 100 * fraction(relief, "low"), 100 * fraction(relief, "high"),
      100 * std::abs(fraction(relief, "value") - truth));
  // Told too low by up to six points as yet (doc/benchmarks.md): better than nothing, and no claim.
  EXPECT_NEAR(fraction(relief, "value"), truth, 0.04);
  EXPECT_LT(fraction(relief, "low"), truth);
  EXPECT_GT(fraction(relief, "high"), truth);
  EXPECT_GT(fraction(relief, "low"), 0);
}

TEST_F(BuildingBaseline, AMapNamesAnyonesColumnsAndPhases) {
  // A building of other equations: direct expansion whose COP falls with the air, values at their stamp, a minute
  // apart.
  std::string power = "when;it kW;mains MW-ish kW\n", phases = "start,stop,label\n", air = "t,wb\n";
  double felt = 400;
  for (int i = 0; i < 6 * 1440; ++i) {
    const int in_hour = i % 60, hour = i / 60;
    const bool writes = in_hour < 5;
    const double it = writes ? 260 : 600 + 20 * std::sin(i / 97.0), wet = 12 + 5 * std::sin(i / 229.2);
    felt += (it - felt) * (1 - std::exp(-60 / 240.0));
    power += fmt::format("{};{:.2f};{:.2f}\n", 1'767'225'600 + 60 * i, it, it * 1.05 + 30 + felt / (5 - 0.1 * wet));
    if (in_hour == 0) {
      air += fmt::format("{},{:.2f}\n", 1'767'225'600 + 60 * i, wet);
      phases += fmt::format("{0},{1},save\n{1},{2},training\n", 1'767'225'600 + 3600 * hour,
                            1'767'225'600 + 3600 * hour + 300, 1'767'225'600 + 3600 * (hour + 1));
    }
  }
  auto& files = system_filesystem();
  ASSERT_TRUE(files.write_atomically(dir_.file("p.csv"), power));
  ASSERT_TRUE(files.write_atomically(dir_.file("phases.csv"), phases));
  ASSERT_TRUE(files.write_atomically(dir_.file("air.csv"), air));
  ASSERT_TRUE(files.write_atomically(
      dir_.file("map.toml"),
      "name = \"south\"\njob = \"pretrain\"\nmeans = false\ncolumns.time = \"when\"\ncolumns.it_w = \"it kW\"\n"
      "units.it_w = \"kW\"\ncolumns.utility_w = \"#3\"\nunits.utility_w = \"kW\"\nweather.time = \"t\"\n"
      "weather.wet_bulb = \"wb\"\n"));
  const Json made = fit(fmt::format("{} --map {} --phases {} --weather {}", dir_.file("p.csv"), dir_.file("map.toml"),
                                    dir_.file("phases.csv"), dir_.file("air.csv")));
  ASSERT_TRUE(made.contains("all")) << made.dump().substr(0, 400);
  EXPECT_LT(fraction(made["all"], "p95_fraction"), 0.032);
  EXPECT_GT(fraction(made["all"], "static_pue_p95_fraction"), 0.05);
  ASSERT_EQ(made["phases"].size(), 2U);
  EXPECT_EQ(made["phases"][1]["phase"], "training");
  EXPECT_EQ(made["phases"][1]["job_type"], "pretrain");
  EXPECT_NE(made["warnings"].dump().find("'save'"), std::string::npos) << "a word that is no phase is told";
  EXPECT_EQ(made["ups"], nullptr);
}

TEST_F(BuildingBaseline, OtherBuildingsAndSeeds) {
  if (!campaign()) GTEST_SKIP() << "the long version: FLYBALL_CAMPAIGN=1";
  for (const char* building : {"facility-1000", "facility-1000-air", "facility-1000-liquid"})
    for (const std::uint64_t seed : {11U, 12U})
      expect_bars(fmt::format("{}, seed {}, 30 d", building, seed), fit(simulate(building, seed, "30d")));
}

}  // namespace
}  // namespace flyball
