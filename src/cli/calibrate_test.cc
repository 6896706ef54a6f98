#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "base/golden.h"
#include "base/random.h"
#include "cli/program_test_support.h"
#include "cli/run.h"
#include "ledger/sqlite.h"
#include "report/json.h"

namespace flyball::cli {
namespace {

class Calibrate : public ProgramTest {
 protected:
  report::Json json(std::vector<std::string> words) {
    words.emplace_back("--json");
    return report::Json::parse(text(std::move(words)), nullptr, false);
  }
};

// A chiller plant of known physics, in the columns of the shipped format.
std::string plant(int first_day, int days, const char* header = "Time,RT,kW_Tot,CH1,CH2") {
  std::string text = std::string(header) + "\n";
  Random random(static_cast<std::uint64_t>(first_day) + 1);
  for (int i = first_day * 144; i < (first_day + days) * 144; ++i) {
    const double day = 2 * std::numbers::pi * i / 144;
    const double load = 300 - 150 * std::cos(day) + 5 * random.normal();
    const double power = 75 + 0.5 * load + 4 * std::sin(day) + random.normal();
    text += fmt::format("2024-01-{:02}T{:02}:{:02}:00,{:.1f},{:.1f},1,0\n", 1 + i / 144, i % 144 / 6, i % 6 * 10, load,
                        power);
  }
  return text;
}
std::string weather(int days) {
  std::string text =
      "\xEF\xBB\xBF"
      "DateTime,RH [%],Temperature [\xC2\xB0"
      "C],WBT_C\n";
  for (int i = 0; i < days * 48; ++i)
    text += fmt::format("2024-01-{:02} {:02}:{:02}:07.000,60,30,{:.1f}\n", 1 + i / 48, i % 48 / 2, i % 2 * 30,
                        25 + 2 * std::sin(2 * std::numbers::pi * i / 48));
  return text;
}

/// Numbers as far as every machine's mathematics agrees.
void round_numbers(report::Json& json) {
  if (json.is_number_float()) json = std::stod(fmt::format("{:.4g}", json.get<double>()));
  if (json.is_structured())
    for (auto& part : json) round_numbers(part);
}

TEST_F(Calibrate, ForetellsAPlantAndSaysHowWell) {
  const std::string train = put("train.csv", plant(0, 14)), later = put("later.csv", plant(14, 2)),
                    air = put("air.csv", weather(16));
  auto made = json({"calibrate", "fit", train, "--evaluate", later, "--weather", air});
  EXPECT_EQ(made["schema"], "flyball.calibrate/1");
  EXPECT_LT(made["hourly_mape_fraction"].get<double>(), 0.01);
  EXPECT_LT(std::abs(made["nmbe_fraction"].get<double>()), 0.01);
  EXPECT_EQ(made["intervals"].size(), 48u);
  EXPECT_EQ(made["updated"]["hours"], 48);
  EXPECT_TRUE(made["frozen"].contains("hourly_mape_fraction"));
  made["train"] = "train.csv";
  made["evaluate"][0] = "later.csv";
  made["intervals"].erase(made["intervals"].begin() + 2, made["intervals"].end());
  round_numbers(made);
  EXPECT_EQ(golden_difference("cli/calibrate_plant.json", report::dump(made)), "");
  EXPECT_NE(text({"calibrate", "fit", train, "--evaluate", later, "--weather", air}).find("updated, 1.00 d late"),
            std::string::npos);
}

TEST_F(Calibrate, AMapNamesTheColumnsOfAnyFile) {
  std::string semicolons = plant(0, 14, "when,it,mains,a,b");
  for (char& c : semicolons) c = c == ',' ? ';' : c;
  const std::string mine = put("mine.csv", semicolons);
  const std::string air = put("air.csv", weather(14));
  const auto known = json({"calibrate", "fit", put("same.csv", plant(0, 14)), "--weather", air});
  EXPECT_TRUE(files_.write_atomically("/map.toml",
                                      "plant.time = \"when\"\nplant.load = \"it\"\nplant.load_unit = \"RT\"\n"
                                      "plant.power = \"#3\"\nplant.units = [\"a\", \"b\"]\nplant.least_load = 30\n"
                                      "weather.time = \"DateTime\"\nweather.wet_bulb = \"#4\"\n"));
  const auto mapped = json({"calibrate", "fit", mine, "--weather", air, "--map", "/map.toml"});
  EXPECT_EQ(mapped["hourly_mape_fraction"], known["hourly_mape_fraction"]);
  EXPECT_EQ(mapped["held_out"], "second half of the training");
  for (char& c : semicolons) c = c == '.' ? ',' : c;
  const auto commas = json({"calibrate", "fit", put("commas.csv", semicolons), "--weather", air, "--map", "/map.toml"});
  EXPECT_EQ(commas["hourly_mape_fraction"], known["hourly_mape_fraction"]);
}

TEST_F(Calibrate, ErrorsNameLineColumnValueAndRemedy) {
  const std::string air = put("air.csv", weather(14));
  std::string damaged = plant(0, 14);
  damaged.replace(damaged.find("T00:10:00,") + 10, 5, "12a.3");
  const std::string error = refused({"calibrate", "fit", put("d.csv", damaged), "--weather", air});
  for (const char* part : {"d.csv:3", "'RT'", "'12a.3'", "decimal point"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  EXPECT_NE(refused({"calibrate", "fit", put("x.csv", "a,b\n1,2\n"), "--weather", air}).find("--map"),
            std::string::npos);
  EXPECT_NE(refused({"calibrate", "fit", put("s.csv", "Time,RT,kW_Tot\nyesterday,1,2\n"), "--weather", air})
                .find("'yesterday'"),
            std::string::npos);
  EXPECT_NE(refused({"calibrate", "fit", put("ok.csv", plant(0, 14))}).find("--weather"), std::string::npos);
  EXPECT_NE(refused({"calibrate", "fit", put("ok.csv", plant(0, 14)), "--weather", put("one.csv", weather(1)),
                     "--evaluate", put("late.csv", plant(20, 2))})
                .find("no hour"),
            std::string::npos);
  EXPECT_NE(
      refused({"calibrate", "fit", put("ok.csv", plant(0, 14)), "--weather", air, "--delay", "soon"}).find("--delay"),
      std::string::npos);
  EXPECT_NE(refused({"calibrate", "fit", dir_.file("absent.csv")}).find("absent.csv"), std::string::npos);
  EXPECT_NE(refused({"calibrate", "fit", put("e.csv", ""), "--weather", air}).find("empty"), std::string::npos);
  EXPECT_NE(refused({"calibrate", "fit", put("short.csv", plant(0, 2)), "--weather", air}).find("two days"),
            std::string::npos);
  EXPECT_TRUE(files_.write_atomically("/map.toml", "plant.time = \"Time\"\nplant.lod = \"RT\"\n"));
  EXPECT_NE(refused({"calibrate", "fit", "ok.csv", "--map", "/map.toml"}).find("/map.toml:2"), std::string::npos);
}

TEST_F(Calibrate, CellsWithoutAValueTakeTheirRowOutAndAreCounted) {
  std::string holes = plant(0, 14);
  holes.replace(holes.find("T00:10:00,") + 10, 5, "[N/A]");
  holes += "2024-01-14T23:50:00,300,9.9e12,1,0\n2024-01-01T00:00:00,1,2,1,0\n";
  const auto made = json({"calibrate", "fit", put("h.csv", holes), "--weather", put("air.csv", weather(14))});
  const std::string warnings = made["warnings"].dump();
  EXPECT_NE(warnings.find("3 rows are left out: 1 without a value, 1 with an impossible one, 1 with a time"),
            std::string::npos)
      << warnings;
  EXPECT_NE(warnings.find("h.csv:3: column 'RT' is '[N/A]'"), std::string::npos) << warnings;
}

TEST_F(Calibrate, AKeptVersionIsMadeAgainByItsHash) {
  const std::string train = put("train.csv", plant(0, 14)), other = put("other.csv", plant(1, 14)),
                    air = put("air.csv", weather(16)), state = dir_.path();
  const auto fit = [&](const std::string& file, const char* flag, const std::string& word) {
    return std::vector<std::string>{"calibrate", "fit", file, "--weather", air, "--state-dir", state, flag, word};
  };
  const auto first = json(fit(train, "--keep", "first"))["version"];
  EXPECT_TRUE(first["parent"].is_null());
  const auto second = json(fit(other, "--keep", "a fortnight later"))["version"];
  EXPECT_EQ(second["parent"], first["hash"]);
  const auto again = json(fit(train, "--reproduce", first["hash"].get<std::string>().substr(0, 10)))["version"];
  EXPECT_EQ(again["hash"], first["hash"]);
  EXPECT_EQ(again["reproduced"], true);
  EXPECT_EQ(run(fit(other, "--reproduce", first["hash"].get<std::string>())), 1);
  EXPECT_NE(errors_.find("the inputs are others"), std::string::npos) << errors_;
  EXPECT_NE(refused(fit(train, "--reproduce", "ffffffffffffffff")).find("no baseline"), std::string::npos);
}

TEST_F(Calibrate, AVersionIsFoundInAnyCaseAndADifferingOptionIsNamed) {
  std::vector<std::string> fit = {"calibrate",
                                  "fit",
                                  put("train.csv", plant(0, 14)),
                                  "--weather",
                                  put("air.csv", weather(14)),
                                  "--state-dir",
                                  dir_.path(),
                                  "--keep",
                                  "first"};
  std::vector<std::string> dry = fit;
  dry.emplace_back("--dry-run");
  EXPECT_NE(text(dry).find("Would be kept: version "), std::string::npos) << out();
  EXPECT_EQ(json(dry)["version"]["kept"], false);
  std::string hash = json(fit)["version"]["hash"];
  for (char& c : hash) c = static_cast<char>(c >= 'a' && c <= 'f' ? c - 'a' + 'A' : c);
  fit[7] = "--reproduce";
  fit[8] = hash;
  EXPECT_NE(text(fit).find("Made again: version "), std::string::npos);
  std::vector<std::string> later = fit;
  for (const char* word : {"--delay", "12h"}) later.emplace_back(word);
  EXPECT_EQ(run(later), 1);
  EXPECT_NE(errors_.find("--delay differs: it was 1.00 d, this is 12.00 h"), std::string::npos) << errors_;
  for (const char* flag : {"--reproduce", "--keep", "--report"}) {
    std::vector<std::string> empty(fit.begin(), fit.begin() + 7);
    for (const char* word : {flag, ""}) empty.emplace_back(word);
    EXPECT_NE(refused(empty).find(flag), std::string::npos) << errors_;
  }
  for (const char* flag : {"--facility", "--relief", "--wet-bulb"})
    EXPECT_NE(refused({"run", flag, ""}).find(flag), std::string::npos) << errors_;
}

TEST_F(Calibrate, AChangedVersionIsNotUsed) {
  const std::string train = put("train.csv", plant(0, 14)), air = put("air.csv", weather(14)), state = dir_.path();
  std::vector<std::string> fit = {"calibrate", "fit", train, "--weather", air, "--state-dir", state, "--keep", "first"};
  const std::string hash = json(fit)["version"]["hash"];
  const std::string path = ledger_path_of(state);
  auto database = ledger::Database::open(path, ledger::Database::Mode::read_write).value();
  for (const char* sql : {"UPDATE baselines SET content = content || 'relief 1 - 0.5 0.4 0.6 0.9'",
                          "UPDATE baselines SET content = substr(content, 1, 40)"}) {
    ASSERT_TRUE(database.execute(sql));
    EXPECT_EQ(run({"run", "--duration", "1min", "--state-dir", state, "--facility", hash}), 1);
    for (const std::string& part : {path, hash, std::string("backup")})
      EXPECT_NE(errors_.find(part), std::string::npos) << errors_;
    fit[7] = "--reproduce";
    fit[8] = hash;
    EXPECT_EQ(run(fit), 1);
    EXPECT_NE(errors_.find("was changed"), std::string::npos) << errors_;
  }
}

/// Bar H1 on the measured plant.
TEST_F(Calibrate, CoolingPlantByTheHourADayAhead) {
  const std::string folder = shared_data_folder();
  if (folder.empty()) GTEST_SKIP() << "the measured data are not here (FLYBALL_SHARED)";
  const std::string plant = folder + "/cooling_plant/";
  const auto made =
      json({"calibrate", "fit", plant + "plant_TableData23_12.csv", "--evaluate", plant + "plant_TableData24_03.csv",
            "--weather", plant + "temperature_data23_12.csv", "--weather", plant + "temperature_data24_03.csv"});
  const auto figures = [](const report::Json& of) {
    return fmt::format("{:.2f} / {:+.2f} / {:.1f} %, {:.1f} % inside 90 %",
                       100 * of["hourly_mape_fraction"].get<double>(), 100 * of["nmbe_fraction"].get<double>(),
                       100 * of["hourly_p95_fraction"].get<double>(), 100 * of["coverage_fraction"].get<double>());
  };
  std::printf("bar: H1 December to March, updated: MAPE / NMBE / p95 = %s\n", figures(made["updated"]).c_str());
  std::printf("bar: H1 the same, frozen = %s\n", figures(made["frozen"]).c_str());
  EXPECT_LE(made["hourly_mape_fraction"].get<double>(), 0.029);
  EXPECT_LE(std::abs(made["nmbe_fraction"].get<double>()), 0.005);
  EXPECT_LE(made["hourly_p95_fraction"].get<double>(), 0.09);
  EXPECT_GE(made["updated"]["hours"].get<int>(), 740);
}

/// Bar H6 on meters whose saving of 10 % is known.
TEST_F(Calibrate, BuildingMetersSaveWhatIsKnown) {
  const std::string folder = shared_data_folder();
  if (folder.empty()) GTEST_SKIP() << "the measured data are not here (FLYBALL_SHARED)";
  const std::string meters = folder + "/building_meters/";
  for (const char* period : {"daily", "hourly"}) {
    const auto made = json({"calibrate", "fit", fmt::format("{}il-electricity-cdd-hdd-{}.csv.gz", meters, period),
                            "--weather", meters + "il-tempF.csv.gz"});
    const auto& saved = made["saved_fraction"];
    const double low = saved["low"], high = saved["high"];
    std::printf("bar: H6 %s meter, 10 %% saved in truth = %.2f %% (%.2f to %.2f at %.0f %%), half-width %.2f points\n",
                period, 100 * saved["value"].get<double>(), 100 * low, 100 * high, 100 * saved["level"].get<double>(),
                50 * (high - low));
    EXPECT_LE(low, 0.1);
    EXPECT_GE(high, 0.1);
    EXPECT_LE((high - low) / 2, 0.03);
    EXPECT_EQ(made["may_be_claimed"], true) << made["disqualified"];
    // The balance points are found, not told: 60 and 65 °F.
    EXPECT_NEAR(made["model"]["heating_balance_celsius"].get<double>(), 15.6, 1.5);
    EXPECT_NEAR(made["model"]["cooling_balance_celsius"].get<double>(), 18.3, 1.5);
  }
}

TEST_F(Calibrate, AMeterNeedsTheDaysOfItsChange) {
  std::string meter = "start,value\n", air = "dt,tempF\n";
  for (int d = 0; d < 20; ++d) meter += fmt::format("2024-01-{:02}T00:00:00Z,{}\n", 1 + d, 30 + d % 3);
  for (int h = 0; h < 21 * 24; ++h)
    air += fmt::format("2024-01-{:02}T{:02}:00:00Z,{}\n", 1 + h / 24, h % 24, 30 + h % 24);
  const std::string file = put("m.csv", meter), weather = put("w.csv", air);
  EXPECT_NE(refused({"calibrate", "fit", file, "--weather", weather}).find("--change-from"), std::string::npos);
  EXPECT_NE(refused({"calibrate", "fit", file, "--weather", weather, "--change-from", "soon"}).find("'soon'"),
            std::string::npos);
  EXPECT_NE(refused({"calibrate", "fit", file, "--change-from", "2024-01-15"}).find("--weather"), std::string::npos);
  EXPECT_NE(refused({"calibrate", "fit", file, "--weather", weather, "--change-from", "2024-01-15"}).find("14 days"),
            std::string::npos);
}

/// A year of a meter by the day, each with what `use` says, and the air of its hours.
template <typename Use>
std::string meter_year(const Use& use) {
  std::string text = "start,value\n";
  for (int d = 0; d < 366; ++d) text += fmt::format("{},{}\n", 1'704'067'200 + 86'400 * d, use(d));
  return text;
}
std::string air_year(int days = 366) {
  std::string text = "dt,tempF\n";
  for (int h = 0; h < days * 24; ++h)
    text += fmt::format("{},{:.1f}\n", 1'704'067'200 + 3'600 * h,
                        50 - 25 * std::cos(2 * std::numbers::pi * h / 8766) + 8 * std::sin(h % 24 * 0.26));
  return text;
}
double usual_use(int d) { return 60 + 20 * std::cos(2 * std::numbers::pi * d / 366) + 0.37 * (d * 7 % 11); }

TEST_F(Calibrate, ABrokenMeterIsNoClaim) {
  const std::string air = put("w.csv", air_year());
  const auto fit = [&](const std::string& meter) {
    return std::vector<std::string>{"calibrate", "fit",           put("m.csv", meter), "--weather",
                                    air,         "--change-from", "2024-10-01"};
  };
  const auto from = [](int first, double value) {
    return meter_year([&](int d) { return d >= first ? value : usual_use(d); });
  };
  const std::string dead = text(fit(from(274, 0)));
  EXPECT_NE(dead.find("Not to be claimed (meter_reads_zero): "), std::string::npos) << dead;
  EXPECT_NE(text(fit(from(350, 0))).find("meter_reads_zero"), std::string::npos);
  EXPECT_NE(text(fit(from(274, 60))).find("meter_stands_still"), std::string::npos);
  EXPECT_EQ(text(fit(from(400, 0))).find("(meter_"), std::string::npos);
  EXPECT_NE(text(fit(from(350, -5))).find("negative_energy"), std::string::npos);
  EXPECT_NE(errors_.find("m.csv: 16 rows are below zero and left out, the first in line 352: -5"), std::string::npos)
      << errors_;
  const std::string backwards = refused(fit(from(0, -5)));
  EXPECT_NE(backwards.find("0 days of baseline and 0 of reporting; 366 intervals are below zero"), std::string::npos)
      << backwards;
}

TEST_F(Calibrate, WeatherThatDoesNotMatchIsNamedWithWhatItCovers) {
  const std::string train = put("train.csv", plant(0, 14));
  const std::string error = refused({"calibrate", "fit", train, "--weather", put("day.csv", weather(1))});
  for (const char* part : {"312 of 336 hours (93 %) have no weather",
                           "day.csv covers 2024-01-01T00:00:07.000Z to 2024-01-01T23:30:07.000Z", "--weather"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
  const auto most = json({"calibrate", "fit", train, "--weather", put("ten.csv", weather(10))});
  EXPECT_NE(most["warnings"].dump().find("training: 96 of 336 hours (29 %) have no weather"), std::string::npos)
      << most["warnings"];
  std::vector<std::string> fit = {"calibrate",  "fit",       put("m.csv", meter_year(usual_use)), "--change-from",
                                  "2024-08-01", "--weather", put("some.csv", air_year(250))};
  const auto meter = json(fit);
  EXPECT_NE(meter["warnings"].dump().find("116 of 366 days (32 %) have no weather: "), std::string::npos)
      << meter["warnings"];
  fit.back() = put("few.csv", air_year(5));
  EXPECT_NE(refused(fit).find("5 days of baseline and 0 of reporting; 361 days have no weather ("), std::string::npos)
      << errors_;
}

TEST_F(Calibrate, ADelayAsLongAsTheTrainingIsRefused) {
  const std::string error = refused(
      {"calibrate", "fit", put("train.csv", plant(0, 14)), "--weather", put("air.csv", weather(14)), "--delay", "8d"});
  for (const char* part : {"8.00 d", "7.00 d", "first half", "--delay"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
}

}  // namespace
}  // namespace flyball::cli
