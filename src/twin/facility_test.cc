#include "twin/facility.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/filesystem.h"
#include "base/presets.h"
#include "base/stats.h"
#include "core/facility_columns.h"
#include "twin/facility_scenario.h"
#include "twin/facility_test_support.h"

namespace flyball::twin {
namespace {

TEST(Facility, EnergyBalanceCloses) {
  FacilitySetup setup;
  setup.length = Seconds(5 * kDay);
  setup.harmless = {event(setup, HarmlessKind::ups_test, 3, 900), event(setup, HarmlessKind::weather_front, 4, 86400)};
  setup.harmless[1].size = 8;
  for (const std::uint64_t seed : {1, 2}) {
    setup.seed = seed;
    Facility facility = make(setup);
    double heat = 0, rejected = 0, stored = 0;
    for (std::uint64_t i = 0; i < facility.steps(); ++i) {
      facility.step();
      const FacilityTruth& t = facility.truth();
      const Watts inside = t.it + t.ups_loss + t.pdu_loss + t.chillers + t.pumps + t.fans - t.tower_fans;
      heat += inside.value() * 10;
      rejected += t.rejected.value() * 10;
      stored = t.stored.value();
      ASSERT_NEAR(heat - rejected, stored, 1e-9 * heat + 1) << "seed " << seed << " step " << i;
      const Watts parts = t.ups_in + t.chillers + t.pumps + t.fans + t.other + t.transformer_loss;
      ASSERT_NEAR(t.utility.value(), parts.value(), 1e-6);
      ASSERT_NEAR((t.ups_in + t.discharged).value(), (t.ups_out + t.ups_loss).value(), 1e-6);
      ASSERT_NEAR(t.ups_out.value(), (t.it + t.pdu_loss).value(), 1e-6);
      ASSERT_GT(t.pue(), 1.05);
      ASSERT_NEAR((t.heat_air + t.heat_liquid).value(), t.it.value(), 1e-6);
    }
  }
}

TEST(Facility, SameSeedSameSamples) {
  FacilitySetup setup = steady(2, 14);
  const auto one = columns_of(setup), two = columns_of(setup);
  EXPECT_EQ(one, two);
  setup.seed = 2;
  EXPECT_NE(one, columns_of(setup));
}

TEST(Facility, NodesDrawWhatWasMeasured) {
  // MLPerf Training v4.0: 6.9 kW AC and 6.78 kW DC a node of eight in training.
  const FacilitySetup setup = steady(0.5, 10);
  Facility facility = make(setup);
  double ac = 0, loss = 0;
  int n = 0;
  for (std::uint64_t i = 0; i < facility.steps(); ++i) {
    const FacilitySample& sample = facility.step();
    if (sample.jobs.empty() || sample.jobs[0].phase != Phase::training) continue;
    ac += (facility.truth().it - setup.parameters.it.network_power).value() / 125;
    loss += facility.truth().supply_loss.value() / 125;
    ++n;
  }
  EXPECT_NEAR(ac / n, 6900, 0.03 * 6900);
  EXPECT_NEAR(ac / (ac - loss), 1.018, 0.006);
}

TEST(Facility, DeliveryLosesAsItsStagesDo) {
  FacilitySetup setup = steady(0.3, 10);
  const auto efficiency = [&setup] {
    const FacilityTruth t = after(setup, setup.length);
    return t.ups_out / t.ups_in;
  };
  EXPECT_NEAR(efficiency(), 0.953, 0.008) << "two strings, 40 % each";
  const double two = efficiency();
  setup.parameters.delivery.ups_strings = 1;
  EXPECT_GT(efficiency(), two) << "one string at 80 % loses less than two at 40 %";
  setup.parameters.delivery.ups_strings = 2;
  setup.parameters.delivery.ups_eco = true;
  EXPECT_NEAR(efficiency(), 0.989, 0.004);
  const FacilityTruth t = after(setup, setup.length);
  EXPECT_NEAR(t.transformer_loss / t.utility, 0.007, 0.003);
}

TEST(Facility, MoreWetBulbMoreChillerPower) {
  double last = 0;
  for (const double wet : {14.0, 16.0, 18.0, 20.0, 22.0, 24.0, 26.0}) {
    const FacilityTruth t = after(steady(0.5, wet), Seconds(0.5 * kDay));
    EXPECT_GT(t.chillers.value(), last) << wet;
    last = t.chillers.value();
  }
  EXPECT_EQ(after(steady(0.5, 5), Seconds(0.5 * kDay)).chillers.value(), 0) << "free cooling";
}

TEST(Facility, HeatIsAnsweredAfterTheDeadTimeWithLags) {
  FacilitySetup setup = steady(0.6, 12);
  setup.parameters.it.liquid_racks_fraction = 0;  // the liquid way is quick
  setup.parameters.meters.missing_fraction = 0;
  setup.schedule = single_job("batch-inference", setup.length);
  setup.schedule[0].start = Seconds(6 * 3600);
  Facility facility = make(setup);
  std::vector<double> it, rejected, fans;
  for (std::uint64_t i = 0; i < facility.steps(); ++i) {
    facility.step();
    it.push_back(facility.truth().it.value());
    rejected.push_back(facility.truth().rejected.value());
    fans.push_back((facility.truth().fans - facility.truth().tower_fans).value());
  }
  const std::size_t step = 6 * 360 + 12;  // after the startup
  const double before = rejected[6 * 360 - 1], settled = rejected.back();
  const auto share = [&](std::size_t after_s) { return (rejected[step + after_s / 10] - before) / (settled - before); };
  EXPECT_GT(it[step + 2] - it[step - 20], 200e3) << "IT goes at once";
  EXPECT_LT(share(150), 0.05) << "dead time of 150 s";
  EXPECT_LT(share(400), 0.45);
  EXPECT_GT(share(3600), 0.95) << "air and water are through within the hour";
  std::size_t half = 0;
  while (share(half) < 0.5) half += 10;
  EXPECT_GT(half, 400U);
  EXPECT_LT(half, 1200U);
  EXPECT_LT(fans[step], 0.5 * fans.back()) << "drives take their time too";
}

TEST(Facility, TheEconomiserChangesOverWithHysteresis) {
  FacilitySetup setup = steady(4, 5);
  setup.weather = {air_at(setup, 0, 5), air_at(setup, 2 * kDay, 24), air_at(setup, 4 * kDay, 5)};
  Facility facility = make(setup);
  double closed_at = 0, opened_at = 0, last = 1;
  int changes = 0;
  for (std::uint64_t i = 0; i < facility.steps(); ++i) {
    facility.step();
    const FacilityTruth& t = facility.truth();
    if (last > 0 && t.economiser_fraction == 0) closed_at = t.wet_bulb.value(), ++changes;
    if (last == 0 && t.economiser_fraction > 0) opened_at = t.wet_bulb.value(), ++changes;
    last = t.economiser_fraction;
    if (t.economiser_fraction == 1) {
      EXPECT_LT(t.wet_bulb.value(), 15);
    }
  }
  EXPECT_EQ(changes, 2) << "once each way";
  EXPECT_GT(closed_at, opened_at + 0.5) << "hysteresis";
  EXPECT_GT(opened_at, 10);
  EXPECT_LT(closed_at, 22);
}

TEST(Facility, ChillersRunAndRestAsLongAsTheyMust) {
  FacilitySetup setup;
  setup.length = Seconds(6 * kDay);
  setup.start = WallTime(1'783'296'000'000'000'000);  // July
  const CoolingParameters& cooling = setup.parameters.cooling;
  for (const std::uint64_t seed : {4, 5}) {
    setup.seed = seed;
    Facility facility = make(setup);
    facility.step();
    std::uint32_t last = facility.truth().chillers_on;
    Seconds since{1e9};
    int changes = 0;
    for (std::uint64_t i = 1; i < facility.steps(); ++i) {
      facility.step();
      const std::uint32_t on = facility.truth().chillers_on;
      ASSERT_LE(on, cooling.chillers);
      if (on != last) {
        ASSERT_EQ(std::abs(static_cast<int>(on) - static_cast<int>(last)), 1);
        ASSERT_GE(since, on > last ? cooling.minimum_rest : cooling.minimum_run) << "seed " << seed << " step " << i;
        since = Seconds(0);
        ++changes;
      }
      since += Seconds(10);
      last = on;
    }
    EXPECT_GT(changes, 4) << "loads that change take chillers along";
    EXPECT_LT(changes, 300);
  }
}

TEST(Facility, InletsRiseWithLoadAndRecirculation) {
  FacilitySetup setup = steady(0.4, 10);
  setup.parameters.it.liquid_racks_fraction = 0;
  setup.parameters.cooling.air_rating = Watts(1.2e6);
  const auto inlet = [](const FacilitySetup& s) {
    Facility facility = make(s);
    double sum = 0;
    for (std::uint64_t i = 0; i < facility.steps(); ++i) {
      const FacilitySample& sample = facility.step();
      if (i >= facility.steps() / 2) sum += sample.racks[3].inlet.value_or(Celsius(22)).value();
    }
    return sum / static_cast<double>(facility.steps() / 2);
  };
  const double usual = inlet(setup);
  EXPECT_GT(usual, 21);
  EXPECT_LT(usual, 24) << "within ASHRAE's recommended range";
  FacilitySetup mixing = setup;
  mixing.parameters.cooling.recirculation_fraction = 0.3;
  EXPECT_GT(inlet(mixing), usual + 1.5);
  FacilitySetup warmer = setup;
  warmer.parameters.cooling.set_point = Celsius(20);
  EXPECT_NEAR(inlet(warmer), usual + 3, 0.2);
}

TEST(Facility, ServersSpeedUpTheirFansWhereAirIsWarm) {
  FacilitySetup setup = steady(0.4, 5);
  const double cool = after(setup, setup.length).it.value();
  setup.parameters.cooling.set_point = Celsius(26);
  EXPECT_GT(after(setup, setup.length).it.value(), 1.005 * cool);
}

TEST(Facility, AStaticPueIsWrongByWhatPhysicsSays) {
  Facility facility = make({});
  std::vector<double> it, total;
  std::vector<std::string> phases;
  for (std::uint64_t i = 0; i < facility.steps(); ++i) {
    const FacilitySample& sample = facility.step();
    it.push_back(facility.truth().it.value());
    total.push_back(facility.truth().total().value());
    phases.emplace_back(sample.jobs.empty() ? "idle" : to_string(sample.jobs[0].phase));
  }
  const double pue = std::accumulate(total.begin(), total.end(), 0.0) / std::accumulate(it.begin(), it.end(), 0.0);
  EXPECT_GT(pue, 1.1);
  EXPECT_LT(pue, 1.4);
  std::map<std::string, std::vector<double>> errors;
  for (std::size_t i = 0; i < it.size(); ++i) errors[phases[i]].push_back(std::abs(pue * it[i] / total[i] - 1));
  std::printf("bar: H2 a static PUE (%.3f) on the twin's facility, 95th percentile of the error at 10 s =", pue);
  for (const auto& [phase, error] : errors) std::printf(" %s %.1f %%", phase.c_str(), 100 * quantile(error, 0.95));
  std::printf("\n");
  EXPECT_GT(quantile(errors["checkpoint"], 0.95), 2 * quantile(errors["training"], 0.95))
      << "cooling goes on while the racks pause";
}

TEST(Facility, WhatAGpuSavesIsSavedAgain) {
  double last = 1;
  for (const double wet_bulb : {24.0, 18.0, 2.0}) {
    const auto relief = cooling_relief(steady(1, wet_bulb), 0.8);
    ASSERT_TRUE(relief) << relief.error().message();
    EXPECT_GT(relief->gpus.value(), 0);
    EXPECT_NEAR(relief->delivery_fraction, 0.09, 0.05) << "supplies, PDU, UPS, transformer";
    EXPECT_LT(relief->cooling_fraction, last) << "less where air cools for free";
    EXPECT_GT(relief->cooling_fraction, 0.01);
    last = relief->cooling_fraction;
    std::printf(
        "bar: C10 of a watt that the twin's GPUs save, saved again at %.0f C wet bulb: delivery = %.1f %%, cooling = "
        "%.1f %%\n",
        wet_bulb, 100 * relief->delivery_fraction, 100 * relief->cooling_fraction);
  }
  EXPECT_FALSE(cooling_relief(steady(0.1, 2), 1.0));
}

TEST(Facility, ParametersHaveKeysRangesAndSources) {
  FacilityParameters parameters;
  EXPECT_GT(list_parameters(parameters).size(), 90U);
  ASSERT_TRUE(set_parameter(parameters, "facility.cooling.set_point", "15.5C"));
  ASSERT_TRUE(set_parameter(parameters, "delivery.ups_eco", "true"));
  ASSERT_TRUE(set_parameter(parameters, "it.gpus", "512"));
  EXPECT_EQ(parameters.cooling.set_point, Celsius(15.5));
  EXPECT_TRUE(parameters.delivery.ups_eco);
  EXPECT_EQ(parameters.racks(), 16U);
  ASSERT_TRUE(check(parameters));
  const auto unknown = set_parameter(parameters, "facility.cooling.magic", "1");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().remedy.find("facility.cooling.set_point"), std::string::npos);
  EXPECT_FALSE(set_parameter(parameters, "facility.cooling.set_point", "15.5"));
  parameters.cooling.set_point = Celsius(80);
  parameters.cooling.stage_down_fraction = 0.95;
  const auto bad = check(parameters);
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().what.find("facility.cooling.set_point"), std::string::npos);
  EXPECT_NE(bad.error().what.find("stage_down_fraction"), std::string::npos);
}

TEST(Facility, ScenariosAreSound) {
  const std::string folder = *presets_folder();
  const auto names = facility_names(system_filesystem(), folder);
  ASSERT_TRUE(names);
  EXPECT_EQ(names->size(), 3U);
  for (const std::string& name : *names) {
    auto scenario = load_facility(system_filesystem(), folder, name);
    ASSERT_TRUE(scenario) << scenario.error().message();
    EXPECT_FALSE(scenario->summary.empty());
    scenario->setup.length = Seconds(4 * kDay);
    Facility facility = make(scenario->setup);
    double it = 0, total = 0, warmest = 0;
    for (std::uint64_t i = 0; i < facility.steps(); ++i) {
      facility.step();
      it += facility.truth().it.value();
      total += facility.truth().total().value();
      warmest = std::max(warmest, facility.truth().room_supply.value());
    }
    EXPECT_GT(total / it, 1.03) << name;
    EXPECT_LT(total / it, 1.6) << name;
    EXPECT_LT(warmest, 29) << name << ": its cooling carries it";
  }
  auto scenario = *load_facility(system_filesystem(), folder, "facility-1000");
  EXPECT_TRUE(override_parameter(scenario, "schedule=finetune"));
  EXPECT_EQ(scenario.setup.schedule.size(), 1U);
  EXPECT_TRUE(override_parameter(scenario, "facility.it.gpus=256"));
  EXPECT_EQ(scenario.sources.at("facility.it.gpus"), "--set");
  EXPECT_FALSE(override_parameter(scenario, "schedule=knitting"));
  EXPECT_FALSE(load_facility(system_filesystem(), folder, "facility-9000"));
}

TEST(Facility, RefusesWhatIsNoSetup) {
  FacilitySetup setup;
  setup.length = Seconds(0);
  EXPECT_FALSE(Facility::make(setup));
  setup = steady(1, 10);
  setup.schedule.push_back(setup.schedule[0]);
  EXPECT_FALSE(Facility::make(setup));
  setup = steady(1, 10);
  setup.parameters.it.gpus = 0;
  EXPECT_FALSE(Facility::make(setup));
}

}  // namespace
}  // namespace flyball::twin
