// What calibrate fit says of a building whose meters err: never a number that looks like one of a building.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "cli/program_test_support.h"
#include "report/json.h"

namespace flyball::cli {
namespace {

struct Row {
  double it = 0, utility = 0;
};

/// Two days at one minute; `meters` sees each row, from 0 on, before it is written.
std::string building(const std::function<void(int, Row&)>& meters = {}) {
  std::string text = "time,it_w,utility_w\n";
  Random random(5);
  double felt = 5e5;
  for (int i = 0; i < 2 * 1440; ++i) {
    const double it = (i / 200 % 2 == 0 ? 6e5 : 4e5) + 2e3 * random.normal();
    felt += (it - felt) * 0.2;
    Row row{it, 1.05 * it + 0.15 * felt + 2e4 + 1e3 * random.normal()};
    if (meters) meters(i, row);
    text += fmt::format("{},{:.0f},{:.0f}\n", 1'767'225'600 + 60 * i, row.it, row.utility);
  }
  return text;
}

class CalibrateMeters : public ProgramTest {
 protected:
  report::Json fit(const std::string& csv) {
    return report::Json::parse(text({"calibrate", "fit", put("b.csv", csv), "--json"}));
  }
};

TEST_F(CalibrateMeters, GoodOnesGiveAPueAndNoPhasesWhereNoneAreTold) {
  const report::Json made = fit(building());
  EXPECT_NEAR(made["pue"]["overall"]["value"].get<double>(), 1.24, 0.01) << made["pue"].dump(1);
  EXPECT_TRUE(made["non_compute"]["idle_j"].is_null());
  EXPECT_FALSE(made["relief"].empty());
  EXPECT_NE(text({"calibrate", "fit", put("b.csv", building())}).find("no phase of the job is told"),
            std::string::npos);
}

TEST_F(CalibrateMeters, ThatContradictEachOtherGiveNoReliefAndNoVersion) {
  const auto kilowatts = building([](int, Row& row) { row.it /= 1000; });
  const auto exchanged = building([](int, Row& row) { std::swap(row.it, row.utility); });
  for (const std::string& csv : {kilowatts, exchanged}) {
    const report::Json made = fit(csv);
    EXPECT_TRUE(made["pue"]["overall"].is_null()) << made["pue"].dump(1);
    EXPECT_TRUE(made["relief"].empty());
    EXPECT_NE(made["warnings"].dump().find("(scale)"), std::string::npos) << made["warnings"].dump(1);
    EXPECT_NE(refused({"calibrate", "fit", put("b.csv", csv), "--keep", "first"}).find("contradict"),
              std::string::npos);
  }
}

TEST_F(CalibrateMeters, ThatStandStillOrReadWhatCannotBeAreLeftOut) {
  const report::Json still =
      fit(building([](int i, Row& row) { row.utility = i > 1000 && i < 1400 ? 7e5 : row.utility; }));
  EXPECT_NE(still["warnings"].dump().find("stands still at 700.0 kW for 398 rows"), std::string::npos)
      << still["warnings"].dump(1);
  const report::Json negative = fit(building([](int i, Row& row) { row.it = i % 100 == 0 ? -row.it : row.it; }));
  EXPECT_NE(negative["warnings"].dump().find("29 values are impossible"), std::string::npos)
      << negative["warnings"].dump(1);
  const report::Json nothing = fit(building([](int i, Row& row) { row.it = i < 300 ? 0 : row.it; }));
  EXPECT_NE(nothing["warnings"].dump().find("300 rows have no power"), std::string::npos)
      << nothing["warnings"].dump(1);
  for (const report::Json& made : {still, negative, nothing})
    EXPECT_NEAR(made["pue"]["overall"]["value"].get<double>(), 1.24, 0.01) << made["warnings"].dump(1);
}

TEST_F(CalibrateMeters, ARowOfAWrongClockIsNoSampleAndIsTold) {
  const std::string right = building();
  const report::Json known = fit(right);
  for (const char* wrong : {"2062-01-01T00:00:00Z,500000,620000\n", "2001-01-01T00:00:00Z,500000,620000\n"}) {
    std::string text = right;
    const report::Json made = fit(text.insert(text.find('\n', text.size() / 2) + 1, wrong));
    EXPECT_NE(made["warnings"].dump().find("1 rows are more than a day from all others"), std::string::npos)
        << made["warnings"].dump(1);
    EXPECT_NE(made["warnings"].dump().find(std::string(wrong, 20)), std::string::npos);
    for (const char* same : {"all", "pue", "lags", "relief"}) EXPECT_EQ(made[same], known[same]) << same;
  }
}

TEST_F(CalibrateMeters, WhatCannotBeToldIsRefused) {
  const std::string file = put("b.csv", building());
  EXPECT_NE(refused({"calibrate", "fit", file, "--delay", "6d"}).find("--delay"), std::string::npos);
  EXPECT_NE(refused({"calibrate", "fit", file, "--feed-rating", "0W"}).find("--feed-rating"), std::string::npos);
  EXPECT_NE(text({"calibrate", "fit", file, "--feed-rating", "900MW", "--json"}).find("head-room is not told"),
            std::string::npos);
  EXPECT_NE(text({"calibrate", "fit", file, "--feed-rating", "10kW", "--json"}).find("without any IT"),
            std::string::npos);
}

}  // namespace
}  // namespace flyball::cli
