// R1, R3 and R4 in short: few seeds; `flyball evaluate` prints the whole.
#include <gtest/gtest.h>

#include "base/byte_source.h"
#include "base/filesystem.h"
#include "base/presets.h"
#include "base/temp_dir.h"
#include "curve/table.h"
#include "evaluate/evaluate.h"
#include "evaluate/twin_plant.h"

namespace flyball::evaluate {
namespace {

struct Case {
  const char* name;
  const char* file;
  double noise, least_ratio;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class MeasuredCurves : public ::testing::TestWithParam<Case> {};

TEST_P(MeasuredCurves, ModelSavesNearlyWhatHindsightCouldWithinTheBound) {
  const std::string folder = shared_data_folder();
  if (folder.empty()) GTEST_SKIP() << "the measured data are not here";
  const auto bytes = open_bytes(folder + "/power_limit_curves/" + GetParam().file);
  ASSERT_TRUE(bytes) << bytes.error().message();
  const auto table = curve::read_curves(**bytes, GetParam().file, "GPU");
  ASSERT_TRUE(table) << table.error().message();
  Options options;
  options.policies = {"model", "sweep", "static", "oracle"};
  options.objective.max_loss_fraction = 0.012;
  options.noise.throughput = GetParam().noise;
  options.seeds = 2;
  const auto done = evaluate_curves(table->curves, options);
  ASSERT_TRUE(done) << done.error().message();
  const Summary model = summarize(*done)[0];
  EXPECT_GE(model.pooled_ratio.value, GetParam().least_ratio);
  EXPECT_GE(model.binding_within_fraction, 0.9);  // with drift
  EXPECT_LE(model.worst_loss_fraction, 0.015);
  EXPECT_LE(model.looks_fraction, 0.05);
  ASSERT_TRUE(model.median_decisions);
  EXPECT_LE(*model.median_decisions, 60);  // two seeds are too few for the 90th percentile
  const auto comparisons = compare(*done, "model");
  EXPECT_GE(comparisons[0].ahead_fraction, GetParam().noise > 0.005 ? 0.6 : 0.8) << comparisons[0].other;
  EXPECT_GE(comparisons[1].pooled_ratio, 1.2) << comparisons[1].other;
}

INSTANTIATE_TEST_SUITE_P(Bars, MeasuredCurves,
                         ::testing::Values(Case{"v100_low_noise", "summary_power_v100.csv", 0.003, 0.94},
                                           Case{"v100_high_noise", "summary_power_v100.csv", 0.01, 0.87},
                                           Case{"p100_low_noise", "summary_power_p100.csv", 0.003, 0.94}));

struct Waits {
  const char* name;
  const char* scenario;
  double max_loss, absorbable, least_ratio;
};

void PrintTo(const Waits& w, std::ostream* out) { *out << w.name; }

class AbsorbableWait : public ::testing::TestWithParam<Waits> {};

TEST_P(AbsorbableWait, SlackSavesWhatHindsightCouldAndNeverLessThanModel) {
  const Waits& w = GetParam();
  auto scenario = twin::load_scenario(system_filesystem(), presets_folder().value_or(""), w.scenario);
  ASSERT_TRUE(scenario) << scenario.error().message();
  scenario->parameters.job.absorbable_wait_fraction = w.absorbable;
  const auto subject = twin_subject(*scenario, 1);
  ASSERT_TRUE(subject) << subject.error().message();
  Options options;
  options.policies = {"slack", "model"};
  options.objective.max_loss_fraction = w.max_loss;
  options.seeds = 1;
  const auto done = evaluate({*subject}, options);
  ASSERT_TRUE(done) << done.error().message();
  const auto summaries = summarize(*done);
  EXPECT_GE(summaries[0].pooled_ratio.value, w.least_ratio);
  EXPECT_LE(summaries[0].worst_loss_fraction, w.max_loss + 0.0005);
  EXPECT_GE(summaries[0].saved_fraction, summaries[1].saved_fraction - 0.001);
  EXPECT_LT(summaries[0].uncontrolled_fraction, 0.5) << "a locked clock is control too";
  // Where one limit for all saves next to nothing there is nothing to converge to.
  EXPECT_EQ(summaries[0].median_decisions.has_value(), done->curves[0].fixed.saved_fraction >= 0.005);
  if (summaries[0].median_decisions) {
    EXPECT_LE(*summaries[0].median_decisions, 60) << "of clocks by what one lock saves";
  }
}

// At 0 % the bar of 0.95 is not reached: what a look teaches about so little costs too much of it.
INSTANTIATE_TEST_SUITE_P(Bars, AbsorbableWait,
                         ::testing::Values(Waits{"none", "pretrain-1", 0.009, 0, 0.88},
                                           Waits{"five", "pretrain-8", 0.011, 0.05, 0.95},
                                           Waits{"ten", "pretrain-1", 0.009, 0.1, 0.95},
                                           Waits{"twenty", "pretrain-1", 0.009, 0.2, 0.95}));

}  // namespace
}  // namespace flyball::evaluate
