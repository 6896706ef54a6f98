// Causes in the simulated building: each is named, and what is harmless blames nobody.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "facility/cause_watch.h"
#include "twin/facility.h"

namespace flyball {
namespace {

using facility::CauseFinding;
using facility::CauseWatch;
using twin::FaultForm;

constexpr double kDay = 86400;

std::vector<CauseFinding> found_in(const twin::FacilitySetup& setup,
                                   const std::function<void(FacilitySample&)>& change = {}) {
  auto building = twin::Facility::make(setup);
  EXPECT_TRUE(building) << building.error().message();
  CauseWatch watch;
  facility::BlockBuilder blocks;
  for (std::uint64_t i = 0; i < building->steps(); ++i) {
    FacilitySample sample = building->step();
    if (change) change(sample);
    if (const auto block = blocks.take(sample)) watch.take(*block);
  }
  return watch.findings();
}

std::string listed(const std::vector<CauseFinding>& findings) {
  std::string text;
  for (const CauseFinding& f : findings)
    text += fmt::format("{} ({}) since {}, confidence {:.2f}; ", to_string(f.cause), f.form, format_rfc3339(f.since),
                        f.confidence_fraction);
  return text;
}

twin::FacilityFault fault_of(const twin::FacilitySetup& setup, FaultForm form, double size, double from_d, double for_d,
                             double ramp_d = 0, const std::string& where = "") {
  twin::FacilityFault fault;
  fault.form = form;
  fault.size = size;
  fault.onset = setup.start + Seconds(from_d * kDay);
  fault.duration = Seconds(for_d * kDay);
  fault.ramp = Seconds(ramp_d * kDay);
  fault.where = where;
  if (form == FaultForm::recirculation) {
    fault.first = 3;
    fault.count = 2;
  }
  return fault;
}

twin::FacilitySetup building(std::uint64_t seed, double days) {
  twin::FacilitySetup setup;
  setup.seed = seed;
  setup.length = Seconds(days * kDay);
  return setup;
}

struct Case {
  FaultForm form;
  double size, for_d, ramp_d;
  const char* where;
};
constexpr Case kCases[] = {{FaultForm::extra_chillers, 2, 3, 0, ""},
                           {FaultForm::set_point_shift, 2, 3, 0, ""},
                           {FaultForm::fouled_coil, 0.3, 5, 1, ""},
                           {FaultForm::worn_pump, 0.4, 5, 0, ""},
                           {FaultForm::ups_eco, 1, 3, 0, ""},
                           {FaultForm::recirculation, 5, 3, 0, ""},
                           {FaultForm::sag, 0.06, 1, 0, ""},
                           {FaultForm::ageing, 0.06, 5, 2, ""},
                           {FaultForm::firmware_power, 0.05, 5, 0, ""},
                           {FaultForm::co_scheduled, 0.2, 3, 0, ""},
                           {FaultForm::meter_scale, 0.08, 3, 0, "ups_in_w"}};

TEST(FacilityCauses, EachIsNamedFirstAtAClearSize) {
  std::uint64_t seed = 31;
  for (const Case& each : kCases) {
    twin::FacilitySetup setup = building(seed, 17);
    setup.faults = {fault_of(setup, each.form, each.size, 11.5, each.for_d, each.ramp_d, each.where)};
    const auto findings = found_in(setup);
    ASSERT_FALSE(findings.empty()) << to_string(setup.faults[0]) << " seed " << seed;
    EXPECT_EQ(to_string(findings.front().cause), to_string(setup.faults[0].cause()))
        << to_string(setup.faults[0]) << " seed " << seed << ": " << listed(findings);
    EXPECT_LT(std::abs((findings.front().since - setup.faults[0].onset).value()), (2 + each.ramp_d) * kDay)
        << to_string(setup.faults[0]) << " seed " << seed << ": " << listed(findings);
    EXPECT_FALSE(findings.front().evidence.empty());
    ++seed;
  }
}

TEST(FacilityCauses, WeatherTestsUpdatesAndOtherJobsBlameNobody) {
  twin::FaultOptions options;
  options.none_fraction = 1;
  options.harmless_per_day = 1;
  const twin::FaultGenerator generator(77, options);
  std::size_t alarms = 0;
  for (const std::uint64_t number : {1, 2}) {
    const auto findings = found_in(twin::setup_for(generator.trial(number)));
    alarms += findings.size();
    EXPECT_LE(findings.size(), 1U) << "trial " << number << " of generator 77: " << listed(findings);
  }
  EXPECT_LE(alarms, 1U) << "in 40 days that are judged";
}

TEST(FacilityCauses, ALossThatStandsStillWithRestlessUtilisationIsTheModels) {
  twin::FacilitySetup setup = building(51, 20);
  setup.schedule = twin::single_job("pretrain-large", setup.length);
  setup.faults = {fault_of(setup, FaultForm::plateau, 0.2, 12, 6, 0, "pretrain-large")};
  const auto findings = found_in(setup);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().cause, Cause::model_behaviour) << listed(findings);
  EXPECT_EQ(to_string(layer_of(findings.front().cause)), "task");
}

TEST(FacilityCauses, JobsThatShareGpusOverADayAreSchedulings) {
  twin::FacilitySetup setup = building(52, 17);
  setup.faults = {fault_of(setup, FaultForm::co_scheduled, 0.3, 11.3, 1, 0)};
  const auto findings = found_in(setup);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().cause, Cause::scheduling_mix) << listed(findings);
  EXPECT_EQ(to_string(layer_of(findings.front().cause)), "scheduling");
}

TEST(FacilityCauses, SlowDriftOfAgeingAndOfFirmwareAreToldApart) {
  for (const FaultForm form : {FaultForm::ageing, FaultForm::firmware_clock}) {
    twin::FacilitySetup setup = building(53, 24);
    setup.faults = {fault_of(setup, form, 0.06, 12, 12, form == FaultForm::ageing ? 8 : 0)};
    const auto findings = found_in(setup);
    ASSERT_FALSE(findings.empty()) << to_string(form);
    EXPECT_EQ(findings.front().cause, cause_of(form)) << listed(findings);
    EXPECT_EQ(to_string(layer_of(findings.front().cause)), "hardware");
  }
}

TEST(FacilityCauses, WithoutMetersWhatIsLeftStillSpeaks) {
  twin::FacilitySetup setup = building(54, 15);
  setup.faults = {fault_of(setup, FaultForm::set_point_shift, 2, 12, 3)};
  const auto poor = [](FacilitySample& sample) {
    sample.racks.clear();
    sample.jobs.clear();
    sample.software.clear();
    sample.ups_in.reset();
    sample.gpu_power.reset();
    sample.gpu_clock.reset();
    sample.fan_speed_fraction.reset();
    sample.chillers_on.reset();
  };
  const auto findings = found_in(setup, poor);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().cause, Cause::set_point) << listed(findings);
}

/// Of the generator: the long version is the bar's.
TEST(FacilityCauses, GeneratedFaultsAreNamed) {
  const char* const campaign = std::getenv("FLYBALL_CAMPAIGN");
  const std::uint64_t asked = campaign == nullptr ? 4 : std::strtoull(campaign, nullptr, 10);
  const std::uint64_t trials = asked > 1 ? asked : 200;
  const twin::FaultGenerator generator(1);
  std::map<std::string, std::map<std::string, int>> named;
  int faults = 0, right = 0, alarms = 0;
  double quiet_days = 0;
  for (std::uint64_t number = 1001; number < 1001 + trials; ++number) {
    const twin::FaultTrial trial = generator.trial(number);
    auto findings = found_in(twin::setup_for(trial));
    quiet_days += 20;
    for (const twin::FacilityFault& fault : trial.faults) {
      const WallTime end = std::min(fault.end(), trial.start + trial.length);
      quiet_days -= (end - fault.onset) / Seconds(kDay);
      // The first finding that begins with it, unless it is the other fault's.
      const auto begins = [&](const CauseFinding& f) {
        return f.since > fault.onset - Seconds(0.75 * kDay) && f.since < end + Seconds(0.25 * kDay);
      };
      auto found = std::find_if(findings.begin(), findings.end(),
                                [&](const CauseFinding& f) { return begins(f) && f.cause == fault.cause(); });
      if (found == findings.end()) found = std::find_if(findings.begin(), findings.end(), begins);
      const bool none = found == findings.end();
      if (fault.identifiable) {
        ++faults;
        right += !none && found->cause == fault.cause() ? 1 : 0;
        ++named[std::string(to_string(fault.cause()))][none ? "nothing" : std::string(to_string(found->cause))];
      }
      if (!none) findings.erase(found);
      std::erase_if(findings, begins);
    }
    alarms += static_cast<int>(findings.size());
  }
  fmt::print("bar: H4 faults of the generator (1001 to {}), right cause, twin = {} of {} ({:.1f} %)\n", 1000 + trials,
             right, faults, 100.0 * right / std::max(faults, 1));
  fmt::print("bar: H4 false alarms of them = {} in {:.0f} days\n", alarms, quiet_days);
  for (const auto& [truth, by] : named) {
    std::string text;
    for (const auto& [name, count] : by) text += fmt::format(" {} {}", name, count);
    fmt::print("{}:{}\n", truth, text);
  }
  if (campaign != nullptr) {
    EXPECT_GE(right, 0.9 * faults);
  }
}

}  // namespace
}  // namespace flyball
