// R1 and R3 in short: two seeds on the measured curves; `flyball evaluate` prints the whole.
#include <gtest/gtest.h>

#include "base/byte_source.h"
#include "base/temp_dir.h"
#include "curve/table.h"
#include "evaluate/evaluate.h"

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
  const auto comparisons = compare(*done, "model");
  EXPECT_GE(comparisons[0].ahead_fraction, GetParam().noise > 0.005 ? 0.6 : 0.8) << comparisons[0].other;
  EXPECT_GE(comparisons[1].pooled_ratio, 1.2) << comparisons[1].other;
}

INSTANTIATE_TEST_SUITE_P(Bars, MeasuredCurves,
                         ::testing::Values(Case{"v100_low_noise", "summary_power_v100.csv", 0.003, 0.94},
                                           Case{"v100_high_noise", "summary_power_v100.csv", 0.01, 0.87},
                                           Case{"p100_low_noise", "summary_power_p100.csv", 0.003, 0.94}));

}  // namespace
}  // namespace flyball::evaluate
