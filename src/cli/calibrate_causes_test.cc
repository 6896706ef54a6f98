// calibrate explain and watch as a person meets them.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "cli/program_test_support.h"
#include "report/json.h"

namespace flyball::cli {
namespace {

class CalibrateCauses : public ProgramTest {
 protected:
  /// Of what needs the presets, which are on the real file system; standard output goes nowhere.
  int run_on_disk(std::vector<std::string> words) {
    words.insert(words.begin(), "flyball");
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = run_program(static_cast<int>(argv.size()), argv.data(), system_filesystem(), clock_);
    errors_ = testing::internal::GetCapturedStderr();
    testing::internal::GetCapturedStdout();
    return code;
  }
};

/// A small building: after ten days and a half the UPS lose half as much again. Where the utility and the cooling are
/// metered too, that is no fault of a UPS meter.
std::string samples(int days, double fault_day, bool all_metered = true) {
  std::string text = "time,it_w,ups_out_w,ups_in_w";
  text += all_metered ? ",utility_w,chillers_w,pumps_w,fans_w,set_point_c\n" : "\n";
  Random random(3);
  const auto read = [&](double watts) { return fmt::format(",{:.0f}", watts + 100 * random.normal()); };
  constexpr int kStep = 120, kDay = 86400 / kStep;
  for (int i = 0; i < days * kDay; ++i) {
    const double it = 500e3 + 20e3 * std::sin(kStep * i / 9000.0) + 300 * random.normal();
    const double in = 1.005 * it + (i >= fault_day * kDay ? 0.06 : 0.04) * it;
    text += std::to_string(1'767'225'600 + kStep * i) + read(it) + read(1.005 * it) + read(in);
    if (all_metered) text += read(in + 0.15 * it + 60e3) + read(0.15 * it) + read(10e3) + read(30e3) + ",17";
    text += '\n';
  }
  return text;
}

TEST_F(CalibrateCauses, ExplainsAFile) {
  const std::string file = put("b.csv", samples(14, 10.5));
  const auto json = report::Json::parse(text({"calibrate", "explain", file, "--json", "--report", "/page.html"}));
  EXPECT_EQ(json["schema"], "flyball.explain/1");
  ASSERT_EQ(json["findings"].size(), 1U) << json.dump(1);
  const auto& finding = json["findings"][0];
  EXPECT_EQ(finding["cause"], "ups_mode");
  EXPECT_EQ(finding["layer"], "hardware");
  EXPECT_TRUE(finding["until"].is_null());
  EXPECT_NEAR(finding["evidence"][0]["shift"]["value"].get<double>(), 10e3, 1500);
  EXPECT_EQ(finding["since"].get<std::string>().substr(0, 10), "2026-01-11");
  EXPECT_FALSE(json["missing"].empty());
  EXPECT_TRUE(json["not_learned"].is_array());
  const std::string page = files_.read("/page.html", 1 << 24).value_or("");
  EXPECT_NE(page.find("ups_mode"), std::string::npos);
  EXPECT_NE(page.find("<svg"), std::string::npos);
  const std::string shown = text({"calibrate", "explain", file});
  EXPECT_NE(shown.find("known by ups_loss"), std::string::npos) << shown;
  EXPECT_NE(shown.find("Not seen here"), std::string::npos) << shown;
}

TEST_F(CalibrateCauses, AFileWithTheNewestRowsFirstIsExplainedAsItsOtherWayRound) {
  const std::string ordered = samples(14, 10.5);
  const std::size_t header = ordered.find('\n') + 1;
  std::string reversed;
  for (std::size_t end = ordered.size(); end > header;) {
    const std::size_t begin = ordered.rfind('\n', end - 2) + 1;
    reversed += ordered.substr(begin, end - begin);
    end = begin;
  }
  auto told = report::Json::parse(text({"calibrate", "explain", put("a.csv", ordered), "--json"}));
  auto again =
      report::Json::parse(text({"calibrate", "explain", put("b.csv", ordered.substr(0, header) + reversed), "--json"}));
  EXPECT_NE(errors_.find("10079 rows are not later than one before them and were sorted"), std::string::npos)
      << errors_;
  EXPECT_FALSE(told["findings"].empty());
  EXPECT_EQ(told["findings"], again["findings"]);
}

TEST_F(CalibrateCauses, WhatNoMeterTellsApartIsBoth) {
  const std::string file = put("b.csv", samples(14, 10.5, false));
  const auto json = report::Json::parse(text({"calibrate", "explain", file, "--json"}));
  ASSERT_EQ(json["findings"].size(), 1U) << json.dump(1);
  const auto& finding = json["findings"][0];
  EXPECT_LT(finding["confidence_fraction"].get<double>(), 0.6);
  const std::string both = finding["cause"].get<std::string>() + finding["alternatives"].dump();
  EXPECT_NE(both.find("meter_fault"), std::string::npos) << both;
  EXPECT_NE(both.find("ups_mode"), std::string::npos) << both;
}

TEST_F(CalibrateCauses, NothingIsFoundWhereNothingIs) {
  const std::string file = put("b.csv", samples(20, 99));
  EXPECT_NE(text({"calibrate", "explain", file}).find("channels could be judged, and go together"), std::string::npos);
  const std::string shorter = put("c.csv", samples(5, 99));
  EXPECT_NE(text({"calibrate", "explain", shorter}).find("Nothing is said yet"), std::string::npos);
}

TEST_F(CalibrateCauses, MetersThatContradictEachOtherAreSaid) {
  std::string exchanged = samples(11, 99);
  exchanged.replace(exchanged.find("it_w"), 4, "else").replace(exchanged.find("utility_w"), 9, "it_w");
  exchanged.replace(exchanged.find("else"), 4, "utility_w");
  text({"calibrate", "explain", put("b.csv", exchanged)});
  EXPECT_NE(errors_.find("less comes in than the IT draws"), std::string::npos) << errors_;
}

TEST_F(CalibrateCauses, AMapNamesColumnsAndUnits) {
  const std::string file = put("b.csv", "stamp;IT\n2026-01-01 00:00:00;500\n2026-01-01 00:05:00;501\n");
  EXPECT_TRUE(
      files_.write_atomically("/map.toml", "columns.time = \"stamp\"\ncolumns.it_w = \"IT\"\nunits.it_w = \"kW\"\n"));
  EXPECT_NE(text({"calibrate", "explain", file, "--map", "/map.toml"}).find("2 samples"), std::string::npos);
  EXPECT_TRUE(files_.write_atomically("/bad.toml", "columns.time = \"stamp\"\ncolumns.it = \"IT\"\n"));
  EXPECT_NE(refused({"calibrate", "explain", file, "--map", "/bad.toml"}).find("'it' is no column"), std::string::npos);
}

TEST_F(CalibrateCauses, DecimalCommasAreReadBetweenSemicolonsAndElsewhereTheRemedyIsNamed) {
  std::string commas = samples(14, 10.5), points = commas;
  for (char& c : commas) c = c == ',' ? ';' : c;
  for (std::size_t at = commas.find(";17\n"); at != commas.npos; at = commas.find(";17\n", at))
    commas.replace(at, 3, ";17,25");
  for (std::size_t at = points.find(",17\n"); at != points.npos; at = points.find(",17\n", at))
    points.replace(at, 3, ",17.25");
  const auto told = report::Json::parse(text({"calibrate", "explain", put("a.csv", points), "--json"}));
  const auto again = report::Json::parse(text({"calibrate", "explain", put("b.csv", commas), "--json"}));
  EXPECT_EQ(errors_.find("left out"), std::string::npos) << errors_;
  EXPECT_FALSE(told["findings"].empty());
  EXPECT_EQ(told["findings"], again["findings"]);
  for (const char* row : {"2026-01-01T00:00:00Z,\"512345,5\"\n", "2026-01-01T00:00:00Z,512345,5\n"}) {
    const std::string error = refused({"calibrate", "explain", put("c.csv", std::string("time,it_w\n") + row)});
    EXPECT_NE(error.find("c.csv:2"), std::string::npos) << error;
    EXPECT_NE(error.find("separate the cells by semicolons"), std::string::npos) << error;
  }
}

TEST_F(CalibrateCauses, SamplesTooFarApartAreSaid) {
  const std::string file = put("b.csv", "time,it_w\n2026-01-01T00:00:00Z,5e5\n2026-01-01T00:05:00Z,5e5\n");
  EXPECT_NE(text({"calibrate", "explain", file}).find("Nothing is said yet"), std::string::npos) << out();
  EXPECT_NE(errors_.find("at most 200 s apart"), std::string::npos) << errors_;
}

TEST_F(CalibrateCauses, ErrorsNameFileLineValueAndRemedy) {
  const std::string bad = put("b.csv", "time,it_w\n2026-01-01T00:00:00Z,5\n2026-01-01T00:00:10Z,five\n");
  const std::string error = refused({"calibrate", "explain", bad});
  EXPECT_NE(error.find("b.csv:3: column 'it_w' is 'five'"), std::string::npos) << error;
  EXPECT_NE(error.find("write a number"), std::string::npos) << error;
  EXPECT_NE(refused({"calibrate", "explain", put("c.csv", "\x01\x02,\n")}).find("there is no column 'time'"),
            std::string::npos);
  refused({"calibrate", "explain", put("d.csv", "")});
  refused({"calibrate", "explain", "/no/such.csv"});
  EXPECT_NE(refused({"calibrate", "explain"}).find("--scenario"), std::string::npos);
  EXPECT_NE(refused({"calibrate", "explain", bad, "--fault", "sag"}).find("simulated"), std::string::npos);
  EXPECT_EQ(run_on_disk({"calibrate", "explain", "--scenario", "facility-1000", "--fault", "rust"}), 2);
  EXPECT_NE(errors_.find("ups_eco"), std::string::npos) << errors_;
}

TEST_F(CalibrateCauses, ARecordedBuildingIsExplained) {
  const std::string file = dir_.file("building.csv");
  ASSERT_EQ(run_on_disk({"record", "--scenario", "facility-1000", "--fault", "set_point", "--fault-at", "11d",
                         "--duration", "13d", "--output", file}),
            0)
      << errors_;
  const auto json = report::Json::parse(text({"calibrate", "explain", file, "--json"}));
  ASSERT_FALSE(json["findings"].empty());
  EXPECT_EQ(json["findings"][0]["cause"], "set_point") << json["findings"].dump(1);
}

TEST_F(CalibrateCauses, AWatchTellsOnceAndWritesMetrics) {
  const std::string file = put("b.csv", samples(14, 10.5));
  const std::vector<std::string> words = {"calibrate", "watch",   file,          "--once", "--json",
                                          "--metrics", "/m.prom", "--state-dir", "/state"};
  const std::string told = text(words);
  EXPECT_NE(told.find("\"schema\":\"flyball.finding/1\""), std::string::npos) << told;
  EXPECT_NE(told.find("\"cause\":\"ups_mode\""), std::string::npos) << told;
  const std::string metrics = files_.read("/m.prom", 1 << 20).value_or("");
  EXPECT_NE(metrics.find("flyball_facility_findings{cause=\"ups_mode\",layer=\"hardware\"} 1"), std::string::npos);
  EXPECT_NE(metrics.find("flyball_facility_expected_watts{channel=\"ups_loss\"}"), std::string::npos) << metrics;
  EXPECT_EQ(text(words), "");
}

TEST_F(CalibrateCauses, AWatchIsTheSameHoweverItsFileIsSpelled) {
  const std::string file = put("b.csv", samples(14, 10.5));
  const std::filesystem::path path(file), here = std::filesystem::current_path();
  std::filesystem::create_symlink(path.parent_path(), dir_.file("link"));
  const auto watch = [&](const std::string& spelled) {
    return text({"calibrate", "watch", spelled, "--once", "--state-dir", "/state"});
  };
  EXPECT_NE(watch(file), "");
  const std::filesystem::path folder = path.parent_path();
  for (const std::string& other : {(folder / "." / "b.csv").string(), (folder / "link" / "b.csv").string(),
                                   std::filesystem::relative(path, here).string(),
                                   (folder / "link" / ".." / folder.filename() / "b.csv").string()})
    EXPECT_EQ(watch(other), "") << other;
  std::filesystem::current_path(folder);
  for (const char* other : {"b.csv", "./b.csv"}) EXPECT_EQ(watch(other), "") << other;
  std::filesystem::current_path(here);
  // A link that is set anew is how some rotate: it is another file than what it shows now.
  std::filesystem::create_symlink(path, dir_.file("now.csv"));
  EXPECT_NE(watch(dir_.file("now.csv")), "");
  EXPECT_NE(refused({"calibrate", "watch", "/no/such/b.csv", "--once", "--state-dir", "/state"}).find("/no/such/b.csv"),
            std::string::npos);
}

TEST_F(CalibrateCauses, AWatchRefusesBeforeItsWorkAndNamesTheOption) {
  const std::string file = put("b.csv", samples(14, 0.1));
  const std::string folder =
      refused({"calibrate", "watch", file, "--once", "--metrics", "/no/such/m.prom", "--state-dir", "/state"});
  EXPECT_NE(folder.find("--metrics /no/such/m.prom: there is no folder /no/such"), std::string::npos) << folder;
  EXPECT_TRUE(files_.list("/state").value_or(std::vector<std::string>{}).empty()) << "before anything was read";
  for (const char* option : {"--reference", "--interval"}) {
    const std::string error = refused({"calibrate", "watch", file, "--once", option, "0d"});
    EXPECT_NE(error.find(std::string(option) + ": '0d' is not above 0"), std::string::npos) << error;
  }
  EXPECT_NE(refused({"calibrate", "explain", file, "--reference", "0d"}).find("--reference: '0d'"), std::string::npos);
}

}  // namespace
}  // namespace flyball::cli
