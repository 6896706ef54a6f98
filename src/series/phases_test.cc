#include "series/phases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/random.h"
#include "series/envelope.h"
#include "series/fleet_sum.h"
#include "series/node_power_test_data.h"

namespace flyball::series {
namespace {

struct Score {
  int hits = 0;
  int false_alarms = 0;
  double worst_boundary_s = 0;
  double least_confidence = 1;
};

// An evaluation counts when both its ends are within 4 s; the end of the recording counts as an end.
Score score(const PhaseReport& report, const std::vector<Interval>& truth, WallTime end) {
  Score out;
  std::vector<char> taken(truth.size(), 0);
  for (const PhaseSpan& span : report.spans) {
    if (span.label != Phase::evaluation) continue;
    bool hit = false;
    for (std::size_t k = 0; k < truth.size() && !hit; ++k) {
      const double a = std::fabs((span.start - truth[k].start).value());
      const double b = std::fabs((span.stop - std::min(truth[k].stop, end)).value());
      if (taken[k] != 0 || a > 4 || b > 4) continue;
      hit = true;
      taken[k] = 1;
      out.worst_boundary_s = std::max({out.worst_boundary_s, a, b});
    }
    ++(hit ? out.hits : out.false_alarms);
    out.least_confidence = std::min(out.least_confidence, span.confidence_fraction);
  }
  return out;
}

using Nodes = std::map<std::string, std::vector<Point>>;

FleetSum sum_of(const Nodes& nodes, std::size_t first = 0, std::size_t count = 64, double step_s = 0) {
  std::vector<std::span<const Point>> chosen;
  std::size_t k = 0;
  for (const auto& [name, points] : nodes) {
    if (k >= first && k < first + count) chosen.emplace_back(points);
    ++k;
  }
  return fleet_sum(chosen, {.step = Seconds(step_s), .clip = {}, .gap = {}});
}

class GptPhases : public testing::Test {
 protected:
  void SetUp() override {
    runs_ = test::node_power("64x_gpt3");
    if (runs_.empty()) GTEST_SKIP() << "shared data not there";
  }
  static WallTime end_of(const test::Run& run) {
    WallTime end;
    for (const auto& [name, points] : run.dc) end = std::max(end, points.back().at);
    return end;
  }
  void expect_all(const FleetSum& sum, const test::Run& run, const std::string& what) {
    const PhaseReport report = find_phases(sum.sum.points);
    const Score s = score(report, run.evaluations(), end_of(run));
    std::printf("S2 %s: %d of 24, %d false, worst boundary %.1f s, separation %.1f, step %.2f s\n", what.c_str(),
                s.hits, s.false_alarms, s.worst_boundary_s, report.separation, report.step.period.value());
    EXPECT_EQ(s.hits, 24) << what;
    EXPECT_EQ(s.false_alarms, 0) << what;
    EXPECT_GT(s.least_confidence, 0.8) << what;
  }
  std::map<std::string, test::Run> runs_;
};

// S2
TEST_F(GptPhases, AllEvaluationsOfBothRunsAreFoundInTheSumAndNothingElse) {
  ASSERT_EQ(runs_.size(), 2u);
  for (const auto& [name, run] : runs_) {
    ASSERT_EQ(run.evaluations().size(), 24u);
    expect_all(sum_of(run.dc), run, name.substr(0, 4) + " DC");
    expect_all(sum_of(run.ac), run, name.substr(0, 4) + " AC");
    const PhaseReport report = find_phases(sum_of(run.dc).sum.points);
    EXPECT_NEAR(report.step.period.value(), 10.76, 0.1);
  }
}

TEST_F(GptPhases, ScaleOffsetDriftSamplingAndMissingNodesDoNotMatter) {
  const test::Run& run = runs_.begin()->second;
  FleetSum changed = sum_of(run.dc);
  const WallTime start = changed.sum.points.front().at;
  Random random(11);
  for (Point& p : changed.sum.points)
    p.value = (0.4 * p.value + 30'000) * (1 + 0.03 * ((p.at - start).value() / 3400) + 0.005 * random.normal());
  expect_all(changed, run, "scaled, drifting, noisier DC");
  expect_all(sum_of(run.dc, 0, 64, 1), run, "DC at 1 s");
  expect_all(sum_of(run.dc, 0, 64, 3), run, "DC at 3 s");
  expect_all(sum_of(run.dc, 16, 48), run, "DC of 48 nodes");
  expect_all(sum_of(run.ac, 0, 8), run, "AC of 8 nodes");
}

TEST_F(GptPhases, ASingleNodeIsNeverWrongWithConfidence) {
  for (const auto& [name, run] : runs_)
    for (const auto& [node, points] : run.dc) {
      const PhaseReport report = find_phases(points);
      const Score s = score(report, run.evaluations(), end_of(run));
      EXPECT_EQ(s.false_alarms, 0) << node;
      EXPECT_TRUE(report.identifiable || report.note.find("not identifiable") != std::string::npos) << report.note;
    }
}

// The meters on the AC side smear: an end that is more than two samples off must not come with confidence.
TEST_F(GptPhases, EndsThatAnAcMeterSmearsAreNotClaimedWithConfidence) {
  std::size_t confident = 0, doubtful = 0;
  for (const auto& [name, run] : runs_)
    for (const auto& [node, points] : run.ac) {
      const PhaseReport report = find_phases(points);
      const auto told = run.evaluations();
      for (const PhaseSpan& span : report.spans) {
        if (span.label != Phase::evaluation) continue;
        if (span.confidence_fraction <= 0.5) {
          ++doubtful;
          continue;
        }
        ++confident;
        const auto near = std::find_if(told.begin(), told.end(), [&](const Interval& t) {
          return std::fabs((span.start - t.start).value()) <= 4.2 &&
                 std::fabs((span.stop - std::min(t.stop, end_of(run))).value()) <= 4.2;
        });
        EXPECT_NE(near, told.end()) << node << " " << (span.start - run.evaluations().front().start).value();
      }
    }
  EXPECT_GT(confident, 20 * doubtful);
}

// The evaluations of these runs draw what training draws (one node) or last 1.5 s at a 2 s sampling (64 nodes).
TEST(Phases, EvaluationsThatPowerCannotShowAreNotClaimed) {
  for (const char* name : {"64x_llama2_70b_lora", "1x_llama2_70b_lora"}) {
    const auto runs = test::node_power(name);
    if (runs.empty()) GTEST_SKIP() << "shared data not there";
    for (const auto& [run_name, run] : runs)
      for (const auto* nodes : {&run.ac, &run.dc}) {
        const PhaseReport report = find_phases(sum_of(*nodes).sum.points);
        EXPECT_FALSE(report.identifiable) << run_name;
        for (const PhaseSpan& span : report.spans) EXPECT_NE(span.label, Phase::evaluation) << run_name;
        if (name[0] == '1') {
          ASSERT_FALSE(report.spans.empty());
          EXPECT_EQ(report.spans.front().label, Phase::startup) << run_name;
        }
      }
  }
}

WallTime at(double seconds) { return WallTime(1'700'000'000'000'000'000) + Seconds(seconds); }

// A synthetic job: steps with a dip, and spans of other level in between.
std::vector<Point> job(double period, double dip_share, double dt, double length, double noise, std::uint64_t seed,
                       const std::function<double(double)>& other) {
  Random random(seed);
  std::vector<Point> points;
  for (double t = dt; t < length; t += dt) {
    double level = other(t);
    if (level < 0) level = std::fmod(t, period) > period * (1 - dip_share) ? 700 : 1000;
    points.push_back({at(t), level * (1 + noise * random.normal())});
  }
  return points;
}

TEST(Phases, AnEvaluationAtTheBusyLevelIsSeenByItsMissingDips) {
  const auto points = job(8, 0.3, 0.5, 1800, 0.01, 5, [](double t) { return std::fmod(t, 300) > 270 ? 1000.0 : -1; });
  const PhaseReport report = find_phases(points);
  EXPECT_TRUE(report.identifiable) << report.note;
  int found = 0;
  for (const PhaseSpan& span : report.spans) {
    if (span.label != Phase::evaluation) continue;
    ++found;
    const double start = (span.start - at(0)).value();
    EXPECT_NEAR(std::fmod(start, 300), 270, 4) << start;
  }
  EXPECT_EQ(found, 6);
}

TEST(Phases, StartupCheckpointsAndIdlenessAreToldByRest) {
  const auto points = job(6, 0.3, 1, 1700, 0.01, 6, [](double t) {
    if (t < 60 || t > 1500) return 350.0;
    return std::fmod(t, 400) > 370 ? 420.0 : -1;
  });
  const PhaseReport report = find_phases(points);
  std::map<Phase, int> count;
  for (const PhaseSpan& span : report.spans) ++count[span.label];
  EXPECT_EQ(count[Phase::startup], 1);
  EXPECT_EQ(count[Phase::checkpoint], 3);
  EXPECT_EQ(count[Phase::idle], 1);
  EXPECT_EQ(count[Phase::evaluation], 0);
  ASSERT_FALSE(report.spans.empty());
  EXPECT_NEAR((report.spans.front().stop - at(60)).value(), 0, 1.5);
  for (std::size_t i = 1; i < report.spans.size(); ++i)
    EXPECT_GE(report.spans[i].start, report.spans[i - 1].stop) << "spans do not overlap";
}

TEST(Phases, TrainingAloneGivesNoOtherPhase) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const double period = 4 + static_cast<double>(seed) * 0.7;
    const auto steady = job(period, 0.25, 2, 1800, 0.02, seed, [](double) { return -1.0; });
    const auto white = job(period, 0, 2, 1800, 0.05, seed, [](double) { return 1000.0; });
    for (const auto& points : {steady, white}) {
      int claimed = 0;
      const PhaseReport report = find_phases(points);
      for (const PhaseSpan& span : report.spans)
        claimed += span.label != Phase::training && span.confidence_fraction >= 0.5 ? 1 : 0;
      EXPECT_EQ(claimed, 0) << "seed " << seed << " period " << period << " view " << report.view << " step "
                            << report.step.period.value() << " separation " << report.separation;
    }
  }
}

TEST(Phases, TooLittleIsRefusedWithItsReason) {
  EXPECT_FALSE(find_phases(std::vector<Point>{}).note.empty());
  const auto points = job(6, 0.3, 1, 15, 0, 1, [](double) { return -1.0; });
  EXPECT_TRUE(find_phases(points).spans.empty());
}

TEST(Phases, EventsOfAJobBecomeSpans) {
  const std::vector<Event> events{
      {at(0), "run_start", {}, "a", 0, ""},       {at(5), "eval_start", {}, "a", 0, ""},
      {at(7), "eval_stop", {}, "b", 0, ""},       {at(8), "eval_stop", {}, "a", 0, ""},
      {at(9), "eval_start", {}, "a", 0, ""},      {at(9), "checkpoint_start", {}, "a", 0, ""},
      {at(12), "checkpoint_stop", {}, "a", 0, ""}};
  const auto spans = phases_from_events(events);
  ASSERT_EQ(spans.size(), 2u) << "an open end is no span";
  EXPECT_EQ(spans[0].label, Phase::evaluation);
  EXPECT_EQ(spans[0].start, at(5));
  EXPECT_EQ(spans[0].stop, at(8));
  EXPECT_FALSE(spans[0].inferred);
  EXPECT_EQ(spans[1].label, Phase::checkpoint);
}

TEST(Envelope, ClosingFillsShortDipsAndKeepsEdges) {
  const std::vector<double> x{5, 5, 1, 5, 5, 1, 1, 1, 1, 5};
  EXPECT_EQ(closing(x, 3), (std::vector<double>{5, 5, 5, 5, 5, 1, 1, 1, 1, 5}));
  std::vector<double> negative;
  for (double v : x) negative.push_back(-v);
  const auto opened = opening(negative, 3);
  EXPECT_EQ(opened[2], -5);
  EXPECT_EQ(opened[5], -1);
  EXPECT_EQ(closing(x, 1), x);
}

TEST(Envelope, MovingMeanOfOnePeriodIsFlat) {
  std::vector<double> x;
  for (int i = 0; i < 200; ++i) x.push_back(std::sin(2 * 3.14159265358979 * i / 5.0));
  const auto mean = moving_mean(x, 5);
  for (std::size_t i = 5; i + 5 < mean.size(); ++i) EXPECT_NEAR(mean[i], 0, 1e-9);
}

}  // namespace
}  // namespace flyball::series
