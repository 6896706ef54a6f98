// What faults and harmless events do to a building, and what meters make of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/stats.h"
#include "core/facility_columns.h"
#include "twin/facility_meters.h"
#include "twin/facility_test_support.h"

namespace flyball::twin {
namespace {

constexpr double kOnset = 0.25, kLength = 0.8;  // days

FacilitySetup base_for(double wet_bulb_c) {
  FacilitySetup setup = steady(kLength, wet_bulb_c);
  setup.schedule[0].gpus_fraction = 0.8;
  return setup;
}

FacilityFault fault_of(const FacilitySetup& setup, FaultForm form, double size) {
  FacilityFault fault;
  fault.form = form;
  fault.size = size;
  fault.onset = setup.start + Seconds(kOnset * kDay);
  fault.duration = setup.length;
  if (fault.cause() == Cause::meter_fault) fault.where = "it_w";
  if (form == FaultForm::recirculation) fault.first = 4, fault.count = 2;
  return fault;
}

using Means = std::map<std::string, double>;

/// Of the last two fifths of a day.
Means means_of(const FacilitySetup& setup) {
  Facility facility = make(setup);
  std::map<std::string, RunningStats> sums;
  const std::uint64_t from = facility.steps() - 3456;
  for (std::uint64_t i = 0; i < facility.steps(); ++i) {
    const FacilitySample& sample = facility.step();
    if (i < from) continue;
    for (const FacilityColumn& column : facility_columns())
      if (const auto value = column.get(sample)) sums[std::string(column.name)].add(*value);
    if (sample.racks[4].inlet) sums["inlet_4_c"].add(sample.racks[4].inlet->value());
    if (sample.racks[9].inlet) sums["inlet_9_c"].add(sample.racks[9].inlet->value());
    if (sample.jobs.empty()) continue;
    sums["tokens"].add(sample.jobs[0].tokens_per_s.value_or(0));
    sums["utilisation"].add(sample.jobs[0].utilisation_fraction.value_or(0));
    sums["loss"].add(sample.jobs[0].loss.value_or(0));
  }
  Means means;
  for (const auto& [name, mean] : sums) means[name] = mean.mean();
  return means;
}

struct Expected {
  FaultForm form;
  double size, wet_bulb_c;
  std::vector<std::pair<std::string, double>> moves;  ///< by at least so much of itself, in this direction
  std::vector<std::string> stays;  ///< within a ten-thousandth: warmth of the air takes part in everything
};

const std::vector<std::string> kComputing = {"it_w",     "gpu_power_w", "gpu_clock_hz", "ups_out_w",
                                             "ups_in_w", "tokens",      "ecc_errors"};
const std::vector<std::string> kCooling = {"chillers_w", "pumps_w", "fans_w", "supply_c", "back_c", "chillers_on"};

std::vector<Expected> expectations() {
  using F = FaultForm;
  const std::vector<std::string> parts = {"chillers_w", "fans_w", "pumps_w", "gpu_power_w", "tokens"};
  return {
      {F::economiser_closed, 1, 5, {{"chillers_w", 10}, {"utility_w", 0.03}}, {"voltage_v"}},
      {F::extra_chillers, 1, 17, {{"chillers_on", 0.3}, {"chillers_w", 0.05}, {"pumps_w", 0.1}}, {"voltage_v"}},
      {F::set_point_shift, 3, 17, {{"supply_c", 0.15}, {"chillers_w", -0.1}, {"set_point_c", 0.15}}, {"ecc_errors"}},
      {F::fouled_tower, 0.8, 20, {{"chillers_w", 0.05}}, {"voltage_v", "pump_speed_fraction"}},
      {F::fouled_tower, 0.8, 5, {{"fans_w", 0.03}}, kComputing},
      {F::fouled_condenser, 1, 20, {{"chillers_w", 0.1}}, kComputing},
      {F::fouled_filter, 0.4, 5, {{"fans_w", 0.1}, {"fan_speed_fraction", 0.1}}, {"tokens", "ecc_errors"}},
      {F::fouled_coil, 0.2, 5, {{"pumps_w", 0.05}, {"pump_speed_fraction", 0.1}}, {"tokens"}},
      {F::worn_fan, 0.4, 5, {{"fans_w", 0.2}}, {"tokens", "gpu_clock_hz"}},
      {F::worn_pump, 0.4, 5, {{"pumps_w", 0.35}}, kComputing},
      {F::fixed_fan, 0.95, 5, {{"fans_w", 0.3}, {"fan_speed_fraction", 0.2}}, {"tokens"}},
      {F::fixed_pump, 0.95, 5, {{"pumps_w", 0.1}, {"pump_speed_fraction", 0.2}}, {"tokens"}},
      {F::ups_eco, 1, 5, {{"ups_in_w", -0.03}, {"utility_w", -0.03}}, {"it_w", "ups_out_w", "gpu_power_w", "tokens"}},
      {F::ups_redundancy_lost, 1, 5, {{"ups_in_w", -0.008}}, {"it_w", "ups_out_w", "gpu_power_w"}},
      {F::recirculation, 5, 5, {{"inlet_4_c", 0.1}}, {"inlet_9_c", "voltage_v", "tokens"}},
      {F::sag, 0.08, 5, {{"voltage_v", -0.07}, {"it_w", 0.0005}, {"ups_out_w", 0.001}}, {"tokens", "gpu_clock_hz"}},
      {F::ageing,
       0.05,
       5,
       {{"gpu_power_w", 0.03},
        {"gpu_clock_hz", -0.01},
        {"ecc_errors", 0.5},
        {"link_errors", 0.5},
        {"tokens", -0.01},
        {"it_w", 0.02}},
       {"set_point_c"}},
      {F::firmware_power,
       -0.04,
       5,
       {{"gpu_power_w", -0.03}, {"it_w", -0.02}},
       {"tokens", "ecc_errors", "gpu_clock_hz"}},
      {F::firmware_clock,
       0.06,
       5,
       {{"gpu_clock_hz", -0.04}, {"tokens", -0.04}, {"gpu_power_w", -0.05}},
       {"ecc_errors"}},
      {F::co_scheduled, 0.2, 5, {{"tokens", -0.1}, {"gpu_power_w", -0.03}}, {"ecc_errors", "gpu_clock_hz"}},
      {F::plateau,
       0.25,
       5,
       {{"tokens", -0.2}, {"utilisation", -0.2}, {"gpu_power_w", -0.1}, {"loss", 0.002}},
       {"ecc_errors", "gpu_clock_hz"}},
      {F::short_sequences, 0.1, 5, {{"tokens", -0.08}, {"utilisation", -0.08}, {"gpu_power_w", -0.05}}, {"ecc_errors"}},
      {F::restarts, 40, 5, {{"tokens", -0.1}, {"gpu_power_w", -0.05}}, {"ecc_errors"}},
      {F::meter_scale, 0.1, 17, {{"it_w", 0.09}}, parts},
      {F::meter_drift, -0.1, 17, {{"it_w", -0.09}}, parts},
      {F::meter_deci, 0.1, 17, {{"it_w", -0.85}}, parts},
  };
}

TEST(FacilityFaults, MoveWhatTheyShouldAndNothingAboveIt) {
  std::map<double, Means> usual;
  for (const Expected& each : expectations()) {
    SCOPED_TRACE(to_string(each.form));
    FacilitySetup setup = base_for(each.wet_bulb_c);
    Means& before = usual[each.wet_bulb_c];
    if (before.empty()) before = means_of(setup);
    setup.faults = {fault_of(setup, each.form, each.size)};
    Means with = means_of(setup);
    for (const auto& [name, by] : each.moves) {
      const double moved = with[name] - before[name], enough = std::abs(by) * std::max(std::abs(before[name]), 1e-9);
      EXPECT_GT(by > 0 ? moved : -moved, enough) << name << " from " << before[name] << " to " << with[name];
    }
    for (const std::string& name : each.stays) EXPECT_NEAR(with[name] / before[name], 1, 1e-4) << name;
  }
}

TEST(FacilityFaults, NothingDiffersBeforeTheOnset) {
  const FacilitySetup setup = base_for(15);
  const auto usual = columns_of(setup);
  const auto onset = static_cast<std::size_t>(kOnset * kDay / 10);
  for (const FaultForm form : fault_forms()) {
    FacilitySetup with = setup;
    with.length = Seconds((kOnset + 0.1) * kDay);
    with.faults = {fault_of(setup, form, form == FaultForm::meter_deci ? 10 : form == FaultForm::restarts ? 400 : 1)};
    if (form == FaultForm::meter_late) with.faults[0].size = 120;
    const auto rows = columns_of(with);
    const auto first = std::mismatch(rows.begin(), rows.end(), usual.begin());
    EXPECT_GE(first.first - rows.begin(), static_cast<std::ptrdiff_t>(onset)) << to_string(form);
    EXPECT_NE(first.first, rows.end()) << to_string(form) << " does nothing";
  }
}

/// Largest change of any column's mean from a time on, in units of what can be told of a day: a thousandth of a power
/// or a speed, 0.1 K, a tenth of errors. Noise is shared, so that what differs is the fault.
double clearest_change(const FacilitySetup& setup, const FacilityFault& fault) {
  FacilitySetup with = setup, without = setup;
  with.faults = {fault};
  without.faults.clear();
  Facility a = make(without), b = make(with);
  const WallTime from = fault.onset + fault.ramp * 0.5, to = std::min(fault.end(), setup.start + setup.length);
  std::vector<RunningStats> size(facility_columns().size() + 1), change(size.size());
  const auto note = [&](std::size_t c, std::optional<double> x, std::optional<double> y) {
    if (!x || !y) return;
    size[c].add(std::abs(*x));
    change[c].add(std::abs(*x - *y));
  };
  const auto inlet = [&fault](const FacilitySample& sample) -> std::optional<double> {
    const auto& found = sample.racks[fault.first].inlet;
    return found ? std::optional(found->value()) : std::nullopt;
  };
  for (std::uint64_t i = 0; i < a.steps(); ++i) {
    const FacilitySample &x = a.step(), &y = b.step();
    if (a.truth().at <= from || a.truth().at > to) continue;
    std::size_t c = 0;
    for (const FacilityColumn& column : facility_columns()) note(c++, column.get(x), column.get(y));
    note(c, inlet(x), inlet(y));
  }
  double best = change.back().mean() / 0.1;
  std::size_t c = 0;
  for (const FacilityColumn& column : facility_columns()) {
    const double floor = column.unit == "C" ? 0.1 : size[c].mean() * (column.name.ends_with("_errors") ? 0.1 : 0.001);
    if (floor > 0) best = std::max(best, change[c].mean() / floor);
    ++c;
  }
  return best;
}

TEST(FacilityFaults, TheLeastSizeCanBeTold) {
  for (const FaultForm form : fault_forms()) {
    const FacilitySetup setup = base_for(form == FaultForm::economiser_closed ? 8 : 17);
    EXPECT_GT(clearest_change(setup, fault_of(setup, form, least_size(form))), 2) << to_string(form);
  }
}

TEST(FacilityFaults, TheRecordSaysWhatPairedRunsShow) {
  const char* campaign = std::getenv("FLYBALL_CAMPAIGN");
  const std::uint64_t trials = campaign != nullptr ? 60 : 5;
  FaultOptions options;
  options.length = Seconds((campaign != nullptr ? 30 : 6) * kDay);
  options.quiet = Seconds(2 * kDay);
  options.pair_fraction = options.none_fraction = 0;
  const FaultGenerator generator(11, options);
  int seen = 0, said = 0;
  for (std::uint64_t i = 0; i < trials; ++i) {
    const FaultTrial trial = generator.trial(i);
    const FacilityFault& fault = trial.faults.at(0);
    const double change = clearest_change(setup_for(trial), fault);
    said += fault.identifiable ? 1 : 0;
    if (fault.identifiable) {
      seen += change > 1 ? 1 : 0;
      EXPECT_GT(change, 1) << "seed 11 trial " << i << ": " << to_string(fault);
    }
    if (fault.why == "too small against noise") {
      EXPECT_LT(std::abs(fault.size), least_size(fault.form)) << "seed 11 trial " << i;
    }
  }
  std::printf("bar: H4 faults of the generator that paired runs show, of those that it calls identifiable = %d of %d\n",
              seen, said);
}

TEST(FacilityMeters, AreOffByTheirClassAndSometimesSilent) {
  FacilityParameters parameters;
  FacilityEffects none({}, {});
  none.move_to(WallTime(0));
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    FacilityMeters meters(parameters, seed);
    RunningStats it;
    int missing = 0;
    constexpr int kReadings = 40'000;
    for (int i = 0; i < kReadings; ++i) {
      FacilitySample sample;
      sample.it = Watts(900e3);
      sample.ecc_errors = 7;
      sample.racks.assign(parameters.racks(), RackSample{Watts(27e3), Celsius(22)});
      meters.read(sample, none);
      if (sample.ecc_errors) {
        EXPECT_EQ(*sample.ecc_errors, 7U) << "a count is told as it is";
      }
      EXPECT_FALSE(sample.utility) << "what is not metered is not made up";
      if (!sample.it) {
        ++missing;
        continue;
      }
      EXPECT_NEAR(std::remainder(sample.it->value(), 100), 0, 1e-6) << "resolution";
      it.add(sample.it->value());
    }
    const double bias = it.mean() / 900e3 - 1;
    EXPECT_LE(std::abs(bias), 0.0101) << "class 1";
    EXPECT_NE(bias, 0);
    EXPECT_NEAR(it.sd(), 900, 60) << "0.1 %";
    EXPECT_NEAR(static_cast<double>(missing) / kReadings, 0.0005, 0.0004);
  }
}

TEST(FacilityMeters, StuckLateAndNoisy) {
  FacilitySetup setup = base_for(10);
  const auto run = [&setup](FaultForm form, double size) {
    FacilitySetup with = setup;
    with.parameters.meters.missing_fraction = 0;
    with.faults = {fault_of(setup, form, size)};
    std::vector<double> it;
    for (const auto& row : columns_of(with)) it.push_back(row[7]);
    return it;
  };
  ASSERT_EQ(facility_columns()[7].name, "it_w");
  const auto usual = run(FaultForm::meter_scale, 1e-12);
  const std::size_t from = static_cast<std::size_t>(kOnset * kDay / 10) + 5;
  const auto stuck = run(FaultForm::meter_stuck, 1), late = run(FaultForm::meter_late, 300);
  const auto noisy = run(FaultForm::meter_noisy, 0.05);
  double extra = 0;
  for (std::size_t i = from; i < usual.size(); ++i) {
    ASSERT_EQ(stuck[i], stuck[from]);
    ASSERT_EQ(late[i], usual[i - 30]);
    extra += std::pow(noisy[i] / usual[i] - 1, 2);
  }
  EXPECT_NEAR(std::sqrt(extra / static_cast<double>(usual.size() - from)), 0.05, 0.005);
}

TEST(FacilityEvents, AnUpsTestFeedsFromTheBatteryAndChargesAgain) {
  FacilitySetup setup = base_for(10);
  setup.harmless = {event(setup, HarmlessKind::ups_test, 0.5, 600)};
  Facility facility = make(setup);
  double out = 0, in = 0;
  int on = 0;
  for (std::uint64_t i = 0; i < facility.steps(); ++i) {
    const FacilitySample& sample = facility.step();
    const FacilityTruth& t = facility.truth();
    (t.discharged.value() > 0 ? out : in) += t.discharged.value() * 10;
    if (!sample.on_battery.value_or(false)) continue;
    ++on;
    EXPECT_NEAR(t.ups_in.value(), 0, 1e-6);
    EXPECT_GT(t.discharged, t.ups_out);
    EXPECT_LT(t.utility, t.it) << "only cooling is left on the utility";
  }
  EXPECT_NEAR(on, 60, 1);
  EXPECT_NEAR(out + in, 0, 1e-6 * out) << "all of it comes back";
}

TEST(FacilityEvents, ClocksAndGapsAreSeenInTheSamplesAlone) {
  FacilitySetup setup = base_for(10), usual = setup;
  setup.harmless = {
      event(setup, HarmlessKind::late_clock, 0.2, 3600), event(setup, HarmlessKind::missing_samples, 0.5, 300),
      event(setup, HarmlessKind::late_clock, 0.7, 3600), event(setup, HarmlessKind::software_update, 0.75, 1e6)};
  setup.harmless[0].size = 6;
  setup.harmless[2].size = -30;
  Facility facility = make(setup), without = make(usual);
  WallTime last = setup.start;
  std::string label;
  int empty = 0, off = 0;
  for (std::uint64_t i = 0; i < facility.steps(); ++i) {
    const FacilitySample& sample = facility.step();
    without.step();
    EXPECT_EQ(facility.truth().utility, without.truth().utility);
    ASSERT_GT(sample.at, last);
    off += std::abs((sample.at - facility.truth().at).value()) > 1e-6 ? 1 : 0;
    last = sample.at;
    if (sample.racks[0].power || sample.utility || !sample.jobs.empty()) {
      label = sample.software;
    } else {
      ++empty;
      EXPECT_TRUE(sample.software.empty());
    }
  }
  EXPECT_NEAR(empty, 30, 1);
  EXPECT_NEAR(off, 720, 4);
  EXPECT_EQ(label, "driver 570.87, firmware 96.0.75");
}

TEST(FacilityEvents, DrainedRacksAndSwappedJobsAreInTheSchedule) {
  FacilitySetup setup = base_for(10);
  setup.harmless = {event(setup, HarmlessKind::rack_drained, 0.3, 7200),
                    event(setup, HarmlessKind::job_swapped, 0.6, kDay)};
  setup.harmless[0].first = 2;
  setup.harmless[0].count = 3;
  setup.harmless[1].count = 2;  // the third type
  Facility facility = make(setup);
  int drained = 0;
  std::string type;
  for (std::uint64_t i = 0; i < facility.steps(); ++i) {
    const FacilitySample& sample = facility.step();
    if (sample.jobs.empty()) continue;
    type = sample.jobs[0].type;
    if (sample.jobs[0].gpus_fraction < 0.75) {
      ++drained;
      EXPECT_NEAR(sample.jobs[0].gpus_fraction, 0.8 - 0.096, 1e-9);
      if (sample.racks[2].power && sample.racks[9].power) {
        EXPECT_LT(sample.racks[2].power, sample.racks[9].power);
      }
    }
  }
  EXPECT_NEAR(drained, 720, 1);
  EXPECT_EQ(type, "finetune");
}

TEST(FacilityEvents, AFrontPasses) {
  FacilitySetup setup = base_for(10);
  setup.harmless = {event(setup, HarmlessKind::weather_front, 0.1, 0.6 * kDay)};
  setup.harmless[0].size = 8;
  Facility facility = make(setup);
  double most = 0;
  for (std::uint64_t i = 0; i < facility.steps(); ++i) {
    facility.step();
    most = std::max(most, facility.truth().dry_bulb.value());
  }
  EXPECT_NEAR(most, 14 + 8, 0.1);
  EXPECT_NEAR(facility.truth().dry_bulb.value(), 14, 0.1);
}

}  // namespace
}  // namespace flyball::twin
