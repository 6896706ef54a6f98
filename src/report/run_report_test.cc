#include "report/run_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/golden.h"
#include "base/random.h"
#include "base/version.h"

namespace flyball::report {
namespace {

constexpr std::int64_t kStart = 1'767'225'600'000'000'000;  // 2026-01-01T00:00:00Z

WallTime at(double seconds) { return WallTime(kStart) + Seconds(seconds); }

Account account(double joules) {
  Account a;
  a.energy = Joules(joules);
  a.duration = Seconds(3600);
  a.tokens = 4'320'000;
  a.coverage_fraction = 0.997;
  a.scope = Scope::board;
  a.method = "counter";
  a.cost = joules / kJoulesPerKilowattHour * 0.25;
  a.carbon_g = joules / kJoulesPerKilowattHour * 380;
  return a;
}

series::Series power_series(const DeviceId& device, std::uint64_t seed) {
  Random random(seed);
  series::Series s;
  s.key = {device, Signal::power_average, Scope::board, "twin"};
  for (int i = 0; i < 7200; ++i) {
    const double t = i * 0.5;
    const bool checkpoint = std::fmod(t, 900) > 840;
    const double cap = t > 1200 ? 330 : 400;
    const double power = checkpoint ? 140 + 6 * random.normal() : std::min(cap, 365 + 9 * random.normal());
    const bool lost = t > 2200 && t < 2320;
    s.points.push_back({at(t), power, lost ? Status::failed : Status::ok});
  }
  return s;
}

series::Series limit_series(const DeviceId& device) {
  series::Series s;
  s.key = {device, Signal::limit_enforced, Scope::board, "twin"};
  for (int t = 0; t < 3600; t += 10) s.points.push_back({at(t), t > 1200 ? 330.0 : 400.0, Status::ok});
  return s;
}

RunReport sample() {
  RunReport report;
  RunResult& r = report.result;
  r.plant = "twin pretrain-1 (preset v100-gpt)";
  r.policy = "model";
  r.seed = 42;
  r.started = at(0);
  r.account = account(1.26e6);
  r.counterfactual = account(1.31e6);
  r.saved_fraction = Estimate{0.0382, 0.0341, 0.0423, 0.95};
  r.loss_fraction = Estimate{0.0031, -0.0004, 0.0066, 0.95};
  r.saved_basis = "switchback blocks, 9 pairs";
  r.writes = 12;
  r.restored = true;
  Finding finding;
  finding.severity = Severity::warning;
  finding.code = "telemetry.gap";
  finding.device = DeviceId::of("GPU-0f6a2c11");
  finding.what = "power could not be read for 120 s";
  finding.remedy = "see `flyball doctor`";
  finding.since = at(2200);
  r.findings = {finding};
  for (const char* name : {"GPU-0f6a2c11", "GPU-77b1e0d4"}) {
    const DeviceId device = DeviceId::of(name);
    report.series.push_back(power_series(device, report.series.size() + 1));
    report.series.push_back(limit_series(device));
  }
  for (int i = 0; i < 4; ++i) {
    report.phases.push_back({Phase::checkpoint, at(840 + 900 * i), at(900 + 900 * i), false, 1});
  }
  report.rates = {.price_per_kwh = 0.25,
                  .carbon_g_per_kwh = 380,
                  .gpu_hour_price = 2,
                  .other_power_per_gpu = Watts(187.5),
                  .currency = "EUR"};
  const auto around = [](double x) { return Estimate{x, x * 0.9, x * 1.1, 0.95}; };
  r.worth = Worth{around(0.041), around(0.023), around(0.024), around(0.0139), Estimate{-0.003, -0.011, 0.003, 0.95},
                  around(5.28)};
  for (const char* name : {"GPU-0f6a2c11", "GPU-77b1e0d4"}) {
    GpuControl gpu;
    gpu.device = DeviceId::of(name);
    gpu.found = Milliwatts(400'000);
    gpu.mean = Milliwatts(353'300);
    gpu.lowest = Milliwatts(330'000);
    gpu.writes = 6;
    gpu.after = "as found";
    r.gpus.push_back(gpu);
  }
  return report;
}

TEST(RunReport, JsonIsGolden) { EXPECT_EQ(golden_difference("report/run.json", dump(run_json(sample()))), ""); }

TEST(RunReport, TextIsGolden) { EXPECT_EQ(golden_difference("report/run.txt", run_text(sample())), ""); }

TEST(RunReport, PageIsGolden) {
  std::string html = run_html(sample());
  const auto footer = html.rfind(version());
  ASSERT_NE(footer, std::string::npos);
  html.replace(footer, version().size(), "VERSION");
  EXPECT_LT(html.size(), 120'000U);
  EXPECT_EQ(golden_difference("report/run.html", html), "");
}

TEST(RunReport, KeysThatScriptsRelyOn) {
  const Json json = run_json(sample());
  EXPECT_EQ(json.begin().key(), "schema");
  EXPECT_EQ(json["schema"], "flyball.run/1");
  EXPECT_EQ(json["energy_j"], 1.26e6);
  EXPECT_EQ(json["tokens"], 4'320'000.0);
  EXPECT_EQ(json["saved_fraction"]["value"], 0.0382);
  EXPECT_EQ(json["loss_fraction"]["low"], -0.0004);
  EXPECT_EQ(json["started"], "2026-01-01T00:00:00.000Z");
}

TEST(RunReport, WhatIsUnknownIsNull) {
  RunReport report;
  const Json json = run_json(report);
  EXPECT_TRUE(json["saved_fraction"].is_null());
  EXPECT_TRUE(json["counterfactual"].is_null());
  EXPECT_TRUE(json["budget"].is_null());
  EXPECT_TRUE(json["started"].is_null());
  EXPECT_NE(run_text(report).find("not known"), std::string::npos);
  EXPECT_NE(run_html(report).find("no values"), std::string::npos);
}

TEST(RunReport, ASavingThatIncludesZeroIsSaidToBeOpen) {
  RunReport report = sample();
  report.result.saved_fraction = Estimate{0.001, -0.002, 0.004, 0.95};
  EXPECT_NE(run_text(report).find("0.10 % (-0.20 to 0.40 at 95 %), not told apart from 0"), std::string::npos);
}

TEST(RunReport, AFailedRestoreIsSeen) {
  RunReport report = sample();
  report.result.restored = false;
  EXPECT_NE(run_text(report).find("NOT all are back"), std::string::npos);
  EXPECT_NE(run_html(report).find("NOT restored"), std::string::npos);
  EXPECT_EQ(run_json(report)["restored"], false);
}

TEST(RunReport, ManyDevicesAreDrawnInPartAndThatIsSaid) {
  RunReport report = sample();
  report.series.clear();
  for (int i = 0; i < 64; ++i) report.series.push_back(power_series(DeviceId::of("GPU-x" + std::to_string(i)), 1));
  const std::string html = run_html(report);
  EXPECT_NE(html.find("Power and limits (8 of 64 devices)"), std::string::npos);
  EXPECT_LT(html.size(), 400'000U);
}

TEST(RunReport, NamesFromOutsideStayText) {
  RunReport report = sample();
  report.result.policy = "</title><script>alert(1)</script>\x1b[2J";
  EXPECT_EQ(run_html(report).find("<script"), std::string::npos);
  EXPECT_EQ(run_text(report).find('\x1b'), std::string::npos);
  EXPECT_TRUE(Json::accept(dump(run_json(report))));
}

SwitchbackResult switchback(bool noisy) {
  SwitchbackResult s;
  s.verdict = noisy ? "too_noisy" : "saves";
  s.reason = noisy ? "the interval is ± 2.30 %, wider than ± 1.00 %" : "less energy per token under control";
  s.half_width_fraction = noisy ? 0.023 : 0.004;
  s.p_value = 0.0005;
  s.block = Seconds(40);
  s.blocks_control = 162, s.blocks_original = 18;
  s.control_fraction = 0.9, s.discarded_fraction = 0.05;
  if (noisy) {
    s.needed = Seconds(38'000);
    return s;
  }
  s.saved_fraction = Estimate{0.1, 0.096, 0.104, 0.95};
  s.loss_fraction = Estimate{0.011, 0.01, 0.012, 0.95};
  s.saved_run_fraction = Estimate{0.09, 0.0864, 0.0936, 0.95};
  s.loss_run_fraction = Estimate{0.0099, 0.009, 0.0108, 0.95};
  return s;
}

TEST(RunReport, ASwitchbackIsShownWithItsInterval) {
  RunReport report = sample();
  report.result.switchback = switchback(false);
  const Json made = run_json(report);
  EXPECT_EQ(made["switchback"]["verdict"], "saves");
  EXPECT_DOUBLE_EQ(made["switchback"]["saved_fraction"]["low"].get<double>(), 0.096);
  EXPECT_DOUBLE_EQ(made["switchback"]["saved_run_fraction"]["value"].get<double>(), 0.09);
  EXPECT_EQ(made["switchback"]["blocks_original"], 18);
  EXPECT_TRUE(made["switchback"]["needed_s"].is_null());
  EXPECT_NE(run_text(report).find("saves: 10.00 %"), std::string::npos) << run_text(report);
  EXPECT_NE(run_html(report).find("Switchback"), std::string::npos);
}

TEST(RunReport, TooNoisyShowsNoNumber) {
  RunReport report = sample();
  report.result.switchback = switchback(true);
  const Json made = run_json(report);
  EXPECT_EQ(made["switchback"]["verdict"], "too_noisy");
  EXPECT_TRUE(made["switchback"]["saved_fraction"].is_null());
  EXPECT_TRUE(made["switchback"]["loss_run_fraction"].is_null());
  EXPECT_DOUBLE_EQ(made["switchback"]["needed_s"].get<double>(), 38'000);
  EXPECT_NE(run_text(report).find("too noisy"), std::string::npos);
  EXPECT_NE(run_html(report).find("about "), std::string::npos) << "how long it would take";
}

}  // namespace
}  // namespace flyball::report
