#include "facility/drift.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/random.h"

namespace flyball::facility {
namespace {

constexpr WallTime kStart(1'767'225'600'000'000'000);
const PhaseKey kTraining{"job", Phase::training}, kCheckpoint{"job", Phase::checkpoint}, kIdle{"job", Phase::idle};

/// Ten days of a job that trains, writes checkpoints and idles at night; differences from its baseline scatter by 2 kW
/// with a slow part, and `wrong` adds to them: by phase and day.
DriftWatch watch(std::uint64_t seed, const std::function<double(const PhaseKey&, double, Random&)>& wrong) {
  Random random(seed);
  DriftWatch made;
  double slow = 0;
  for (int i = 0; i < 10 * 1440; ++i) {
    const double day = i / 1440.0;
    const int minute = i % 60;
    const PhaseKey& key = i % 1440 < 360 ? kIdle : minute < 10 ? kCheckpoint : kTraining;
    slow = 0.999 * slow + 0.02 * random.normal();
    made.take(kStart + Seconds(60.0 * i), key, Watts(1000 * (2 * random.normal() + slow + wrong(key, day, random))));
  }
  return made;
}

TEST(Drift, NothingIsFoundWhereNothingDrifts) {
  int alarms = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed)
    alarms += watch(seed, [](const PhaseKey&, double, Random&) { return 0.0; }).findings().empty() ? 0 : 1;
  std::printf("bar: C5 drift watch, false alarms in 210 days without any drift = %d\n", alarms);
  EXPECT_LE(alarms, 7);  // one in thirty days
}

TEST(Drift, SaysInWhichPhasesAndHowMuchAndSinceWhen) {
  const auto only = [](const PhaseKey& wanted) {
    return [wanted](const PhaseKey& key, double day, Random&) { return day > 7 && key == wanted ? 6.0 : 0.0; };
  };
  const struct {
    const PhaseKey& key;
    const char* kind;
  } cases[] = {{kIdle, "idle"}, {kCheckpoint, "checkpoint"}, {kTraining, "busy"}};
  for (const auto& c : cases) {
    const auto found = watch(40, only(c.key)).findings();
    ASSERT_EQ(found.size(), 1u) << c.kind;
    EXPECT_EQ(found[0].kind, c.kind);
    EXPECT_EQ(found[0].phases, std::vector<PhaseKey>{c.key});
    EXPECT_NEAR(found[0].size_w.value, 6000, 1200) << c.kind;
    EXPECT_NEAR((found[0].since - kStart).value() / 86400, 7, 0.8) << c.kind;  // idle ends at 6 h
  }
  const auto all = watch(41, [](const PhaseKey&, double day, Random&) { return day > 7 ? -6.0 : 0.0; }).findings();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].kind, "everywhere");
  EXPECT_LT(all[0].size_w.high, 0);
}

TEST(Drift, ASlowOneIsFoundAndOneThatEndsIsOver) {
  const auto slow =
      watch(42, [](const PhaseKey&, double day, Random&) { return std::max(day - 5, 0.0) * 1.5; }).findings();
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow[0].kind, "everywhere");
  const auto over = watch(43, [](const PhaseKey&, double day, Random&) { return day > 5 && day < 6 ? 6.0 : 0.0; });
  EXPECT_TRUE(over.findings().empty());
}

TEST(Drift, MoreScatterWithoutAnotherMeanIsARipple) {
  const auto found = watch(44, [](const PhaseKey& key, double day, Random& random) {
                       return day > 7 && key == kTraining ? 4 * random.normal() : 0.0;
                     }).findings();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "ripple");
  EXPECT_EQ(found[0].phases, std::vector<PhaseKey>{kTraining});
  EXPECT_NEAR(found[0].size_w.value, 2400, 400);  // √(2² + 4²) − 2 kW
}

}  // namespace
}  // namespace flyball::facility
