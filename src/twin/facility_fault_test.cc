#include "twin/facility_fault.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "twin/facility_forms.h"

namespace flyball::twin {
namespace {

constexpr double kDay = 86400;

TEST(FaultGenerator, SameSeedSameBytes) {
  for (const std::uint64_t seed : {1, 2, 77}) {
    FaultGenerator one(seed);
    const FaultGenerator other(seed);
    for (std::uint64_t i = 0; i < 50; ++i) {
      EXPECT_EQ(to_text(one.next()), to_text(other.trial(i))) << "seed " << seed << " trial " << i;
    }
  }
  EXPECT_NE(to_text(FaultGenerator(1).trial(3)), to_text(FaultGenerator(2).trial(3)));
}

TEST(FaultGenerator, DrawsAsOftenAsItSays) {
  FaultOptions options;
  options.length = Seconds(20 * kDay);
  const FaultGenerator generator(5, options);
  constexpr int kTrials = 3000;
  int none = 0, pairs = 0, faults = 0;
  double harmless = 0;
  std::map<Cause, int> causes;
  std::map<FaultForm, int> forms;
  std::map<HarmlessKind, int> kinds;
  for (int i = 0; i < kTrials; ++i) {
    const FaultTrial trial = generator.trial(static_cast<std::uint64_t>(i));
    none += trial.faults.empty() ? 1 : 0;
    pairs += trial.faults.size() == 2 ? 1 : 0;
    for (const FacilityFault& fault : trial.faults) {
      ++faults;
      ++causes[fault.cause()];
      ++forms[fault.form];
    }
    harmless += static_cast<double>(trial.harmless.size());
    for (const HarmlessEvent& event : trial.harmless) ++kinds[event.kind];
  }
  EXPECT_NEAR(static_cast<double>(none) / kTrials, options.none_fraction, 0.02);
  EXPECT_NEAR(static_cast<double>(pairs) / kTrials, options.pair_fraction, 0.03);
  EXPECT_NEAR(harmless / kTrials, options.harmless_per_day * 20, 0.3);
  EXPECT_EQ(causes.size(), 12U);
  for (const auto& [cause, n] : causes)
    EXPECT_NEAR(static_cast<double>(n) / faults, 1.0 / 12, 0.02) << to_string(cause);
  EXPECT_EQ(forms.size(), fault_forms().size()) << "each form comes up";
  EXPECT_EQ(kinds.size(), 8U);
}

TEST(FaultGenerator, TheRecordIsComplete) {
  const FaultGenerator generator(9);
  int identifiable = 0, faults = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const FaultTrial trial = generator.trial(i);
    EXPECT_EQ(trial.number, i);
    const WallTime end = trial.start + trial.length;
    for (const FacilityFault& fault : trial.faults) {
      SCOPED_TRACE(to_string(fault));
      ++faults;
      identifiable += fault.identifiable ? 1 : 0;
      EXPECT_GE(fault.onset, trial.start + Seconds(10 * kDay));
      EXPECT_LE(fault.onset, end - Seconds(2 * kDay));
      EXPECT_LE(fault.end(), end);
      EXPECT_LE(fault.ramp, fault.duration);
      EXPECT_GT(fault.strength, 0);
      EXPECT_NE(fault.size, 0);
      EXPECT_EQ(fault.identifiable, fault.why.empty());
      EXPECT_EQ(fault.cause() == Cause::meter_fault, fault.where.ends_with("_w"));
      EXPECT_EQ(fault.form == FaultForm::recirculation, fault.count > 0);
      EXPECT_LE(fault.first + fault.count, 32U);
      if (form_row(fault.form).low != form_row(fault.form).high && fault.form != FaultForm::extra_chillers &&
          fault.form != FaultForm::meter_deci && fault.strength < 1) {
        EXPECT_FALSE(fault.identifiable);
      }
    }
    if (trial.faults.size() == 2) {
      EXPECT_NE(trial.faults[0].cause(), trial.faults[1].cause());
    }
    WallTime last = trial.start;
    for (const HarmlessEvent& event : trial.harmless) {
      EXPECT_LT(event.onset, end);
      EXPECT_GE(event.onset, trial.start);
      if (event.kind == HarmlessKind::job_swapped) continue;  // when its job is
      EXPECT_GE(event.onset, last);
      last = event.onset;
    }
  }
  EXPECT_GT(static_cast<double>(identifiable) / faults, 0.7);
  EXPECT_LT(static_cast<double>(identifiable) / faults, 0.97);
}

TEST(FaultGenerator, OtherWeatherChangesOnlyWhatCanBeTold) {
  FaultOptions cold, hot;
  cold.weather = {{cold.start, Celsius(2), Celsius(0)}};
  hot.weather = {{hot.start, Celsius(30), Celsius(24)}};
  int differ = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const FaultTrial a = FaultGenerator(3, cold).trial(i), b = FaultGenerator(3, hot).trial(i);
    ASSERT_EQ(a.faults.size(), b.faults.size());
    for (std::size_t j = 0; j < a.faults.size(); ++j) {
      EXPECT_EQ(to_string(a.faults[j]), to_string(b.faults[j]));
      if (a.faults[j].identifiable == b.faults[j].identifiable) continue;
      ++differ;
      const FaultForm form = a.faults[j].form;
      EXPECT_TRUE(form == FaultForm::economiser_closed || form == FaultForm::fouled_condenser ||
                  a.faults[j].where == "chillers_w")
          << to_string(form);
    }
  }
  EXPECT_GT(differ, 5);
}

TEST(FacilityFault, RampsAndEnds) {
  FacilityFault fault;
  fault.onset = WallTime(0) + Seconds(1000);
  fault.ramp = Seconds(100);
  fault.duration = Seconds(500);
  const auto share = [&fault](double t) { return fault.share_at(WallTime(0) + Seconds(t)); };
  EXPECT_EQ(share(999), 0);
  EXPECT_NEAR(share(1050), 0.5, 1e-9);
  EXPECT_EQ(share(1100), 1);
  EXPECT_EQ(share(1499), 1);
  EXPECT_EQ(share(1500), 0);
}

TEST(FacilityFault, FormsHaveNamesAndCauses) {
  std::set<Cause> causes;
  for (const FaultForm form : fault_forms()) {
    EXPECT_EQ(*parse_fault_form(to_string(form)), form);
    EXPECT_GT(least_size(form), 0);
    causes.insert(cause_of(form));
  }
  EXPECT_EQ(causes.size(), 12U);
  EXPECT_EQ(fault_forms().size(), static_cast<std::size_t>(FaultForm::meter_noisy) + 1);
  EXPECT_FALSE(parse_fault_form("gremlins"));
}

TEST(FacilityFault, SizesThatMeanNothingAreRefused) {
  for (const FaultForm form : fault_forms()) {
    EXPECT_TRUE(check_fault_size(form, least_size(form)));
    for (const double size : {0.0, std::nan(""), HUGE_VAL, -HUGE_VAL, 1e6}) EXPECT_FALSE(check_fault_size(form, size));
  }
  EXPECT_TRUE(check_fault_size(FaultForm::set_point_shift, -2));
  EXPECT_FALSE(check_fault_size(FaultForm::sag, -0.05));
}

}  // namespace
}  // namespace flyball::twin
