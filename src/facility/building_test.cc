#include "facility/building.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numbers>

#include "base/random.h"
#include "facility/felt.h"
#include "facility/phase_accuracy.h"
#include "facility/relief.h"

namespace flyball::facility {
namespace {

constexpr WallTime kStart(1'767'225'600'000'000'000);
constexpr double kTurn = 2 * std::numbers::pi;

/// What a plant of somebody's own equations makes of heat [W], air [°C] and time [s]: its power [W].
using Equations = std::function<double(double it, double heat, double wet_bulb, double dry_bulb, double seconds)>;

struct Site {
  double rating = 900e3;
  Seconds dead{40}, first{240}, second{60};
  Equations facility;
};

/// A site's days at ten seconds: training with checkpoints and evaluations, then an idle hour now and then; weather
/// with days and fronts.
std::vector<FacilityRecord> days(const Site& site, double count, std::uint64_t seed) {
  Random random(seed);
  std::vector<FacilityRecord> made;
  FeltLoad felt(site.dead, {{site.first, site.second}});
  double front = 0, wander = 0;
  for (int i = 0; i < static_cast<int>(count * 8640); ++i) {
    const double t = 10.0 * i, hour = t / 3600;
    const double in_cycle = std::fmod(t, 5400), in_day = std::fmod(hour, 24);
    Phase phase = Phase::training;
    double share = 0.85;
    if (in_cycle < 240) phase = Phase::checkpoint, share = 0.42;
    if (in_cycle > 3000 && in_cycle < 3400) phase = Phase::evaluation, share = 0.68;
    if (in_day > 20 && in_day < 21.5) phase = Phase::idle, share = 0.25;
    front += -front * 10 / 2e5 + 0.03 * random.normal();
    wander += -wander * 10 / 3600 + 0.0004 * random.normal();
    const double it = site.rating * (share * (1 + wander) + 0.004 * random.normal());
    const double dry = 14 + 3 * front + 6 * std::sin(kTurn * (in_day - 9) / 24);
    const double wet = dry - 3 - 1.5 * std::sin(kTurn * (in_day - 9) / 24);
    felt.take(kStart + Seconds(t), it);
    const double power = site.facility(it, felt.felt(), wet, dry, t) * (1 + 0.002 * random.normal());
    FacilityRecord record;
    record.point = {kStart + Seconds(t), Watts(it), Watts(power), Celsius(wet), Celsius(dry), {}, {}, false};
    record.key = {"pretrain", phase};
    record.utility = record.point.facility;
    made.push_back(record);
  }
  return made;
}

Site direct_expansion() {
  Site site;
  // Air-cooled compressors: COP falls in a line with the air; fans of one speed; losses of a UPS at once.
  site.facility = [](double it, double heat, double, double dry, double) {
    const double loss = 12e3 + 0.03 * it + 0.03 * it * it / 900e3;
    return it + loss + 45e3 + heat * 1.06 / (5.2 - 0.08 * dry);
  };
  return site;
}

Site free_cooling() {
  Site site;
  site.dead = Seconds(120);
  site.first = Seconds(600);
  site.second = Seconds(0);
  // Chillers in two stages with hysteresis that nobody meters, none at all in cold air; fans and pumps in the cube.
  site.facility = [two = false](double it, double heat, double wet, double, double) mutable {
    const double q = heat / 900e3;
    if (q > 0.72) two = true;
    if (q < 0.5) two = false;
    const double chillers = wet < 6 ? 0 : (two ? 26e3 : 14e3) + heat * (0.11 + 0.0035 * (wet - 6));
    return it * 1.05 + 20e3 + 60e3 * q * q * q + chillers + 5e3 * std::max(wet - 6, -2.0) * q;
  };
  return site;
}

struct Figures {
  std::vector<PhaseAccuracy> rows;
  Lags lags;
};

Figures foretell(const std::vector<FacilityRecord>& records, double train_days) {
  const auto train = static_cast<std::size_t>(train_days * 8640);
  BuildingOptions options;
  Building building = learn_building(std::span(records).first(train), options).value();
  PhaseLibrary frozen = building.library;
  frozen.settle();
  frozen.freeze();
  double facility = 0, it = 0;
  for (std::size_t i = 0; i < train; ++i) {
    facility += records[i].point.facility.value();
    it += records[i].point.it.value();
  }
  PhaseScores scores(facility / it);
  for (std::size_t i = train; i < records.size(); ++i) {
    const auto& record = records[i];
    building.library.phase(record.point.at, record.key);
    frozen.phase(record.point.at, record.key);
    const Expectation still = frozen.take(record.point);
    scores.take(record.key, record.point, building.library.take(record.point), &still);
  }
  return {scores.rows(), building.lags};
}

/// Prints the figures of a site; the worst 95th percentile of phases with an hour of points.
double print(const char* name, const Figures& figures) {
  double worst = 0;
  for (const PhaseAccuracy& row : figures.rows) {
    std::printf("%s, %s: %zu points, 95th percentile %.2f %%, inside %.1f %%, static PUE %.1f %%\n", name,
                row.key ? std::string(to_string(row.key->phase)).c_str() : "all", row.points, 100 * row.p95_fraction,
                100 * row.coverage_fraction, 100 * row.static_p95_fraction);
    if (row.points >= 360) worst = std::max(worst, row.p95_fraction);
  }
  return worst;
}

TEST(Building, OtherPeoplesEquationsAreForetold) {
  const Figures direct = foretell(days(direct_expansion(), 9, 1), 5);
  const double worst = print("direct expansion", direct);
  EXPECT_LT(worst, 0.032);
  EXPECT_GT(direct.rows.front().static_p95_fraction, 0.09);
  ASSERT_TRUE(direct.lags.identifiable) << direct.lags.note;
  // The site's samples are values at their stamp and are taken for means: five seconds.
  EXPECT_NEAR(direct.lags.total_s.value, 345, 0.1 * 345);

  const Figures free = foretell(days(free_cooling(), 9, 2), 5);
  print("free cooling, unmetered stages", free);
  EXPECT_LT(free.rows.front().p95_fraction, 0.032);
  EXPECT_GT(free.rows.front().static_p95_fraction, 0.15);
  EXPECT_NEAR(free.rows.front().coverage_fraction, 0.9, 0.05);
}

TEST(Building, WhatIsToldAPointKnowsNothingLaterThanTheDelay) {
  const auto records = days(direct_expansion(), 3, 3);
  auto other = records;
  const std::size_t at = 2 * 8640;
  for (std::size_t i = at; i < other.size(); ++i) other[i].point.facility = other[i].point.facility * 1.1;
  const auto told = [&](const std::vector<FacilityRecord>& all) {
    Building building = learn_building(std::span(all).first(8640), {}).value();
    std::vector<double> made;
    for (std::size_t i = 8640; i < all.size(); ++i) {
      building.library.phase(all[i].point.at, all[i].key);
      made.push_back(building.library.take(all[i].point).expected.value());
    }
    return made;
  };
  const auto one = told(records), two = told(other);
  const std::size_t delayed = at - 8640 + static_cast<std::size_t>(BuildingOptions{}.delay.value() / 10);
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (i < delayed) {
      ASSERT_EQ(one[i], two[i]) << i;
    }
  }
  EXPECT_NE(one.back(), two.back());
}

TEST(Building, SaysWhatIsNoComputingAndWhatItCarries) {
  const auto records = days(direct_expansion(), 5, 4);
  Building building = learn_building(records, {}).value();
  building.library.settle();
  const NonCompute apart = non_compute(building, records);
  // The truth, by the same equations: the heat that is felt beyond what goes in, by the compressors' COP.
  FeltLoad felt(Seconds(40), {{Seconds(240), Seconds(60)}});
  double over = 0, idle = 0;
  for (const FacilityRecord& record : records) {
    felt.take(record.point.at, record.point.it.value());
    const double beyond = felt.felt() - record.point.it.value();
    if (beyond > 0) over += 10 * beyond * 1.06 / (5.2 - 0.08 * record.point.dry_bulb->value());
    if (record.key.phase == Phase::idle) idle += 10 * record.point.facility.value();
  }
  EXPECT_NEAR(apart.over_cooling_j.value, over, 0.25 * over);
  EXPECT_NEAR(apart.idle.value(), idle, 0.01 * idle);
  const WallTime end = records.back().point.at;
  const ResponseModel& response = *building.library.response();
  const Celsius wet(11);
  // What the feed carries, by the equations, at that air.
  const Watts feed(1.0e6);
  const HeadRoom room = head_room(response, feed, Watts(0), wet, end).value();
  const auto draws = [](double it) {
    return it + 12e3 + 0.03 * it + 0.03 * it * it / 900e3 + 45e3 + it * 1.06 / (5.2 - 0.08 * 14.5);
  };
  EXPECT_NEAR(draws(room.it_w.value), feed.value(), 0.04 * feed.value());
  EXPECT_EQ(room.limited_by, "feed");
  EXPECT_FALSE(head_room(response, Watts(0), Watts(0), wet, end));
  const auto hours = hourly_energy(records, Seconds(10));
  EXPECT_EQ(hours.size(), 120u);
  EXPECT_GT(pue_over_time(hours).overall->value, 1.1);
}

/// A plant of chillers in stages that are metered: what it draws of these loads, and which of them run.
void run_chillers(std::vector<FacilityRecord>& records) {
  FeltLoad felt(Seconds(40), {{Seconds(240), Seconds(60)}});
  double on = 1;
  for (FacilityRecord& record : records) {
    felt.take(record.point.at, record.point.it.value());
    const double q = felt.felt() / 900e3;
    if (q > 0.6) on = 2;
    if (q < 0.5) on = 1;
    record.point.chillers_on = on;
    record.point.facility =
        record.point.it * 1.05 + Watts(20e3 + 25e3 * on + 80e3 * q * q + 1e3 * record.point.air->value() * q);
  }
}

TEST(Building, WhatIsSavedAgainIsWhatPairedRunsSaveAgain) {
  auto records = days(direct_expansion(), 8, 5);
  run_chillers(records);
  auto less = records;
  std::vector<double> loads;
  for (const FacilityRecord& record : records) loads.push_back(record.point.it.value());
  const double least = quantile(loads, 0.002);
  for (FacilityRecord& record : less) record.point.it -= Watts(0.1 * std::max(record.point.it.value() - least, 0.0));
  run_chillers(less);
  Watts it, facility;
  for (std::size_t i = 0; i < records.size(); ++i) {
    it += records[i].point.it - less[i].point.it;
    facility += records[i].point.facility - less[i].point.facility;
  }
  const double truth = facility / it - 1;
  const Building building = learn_building(records, {}).value();
  const auto relief = relief_of(building, records).value();
  ASSERT_EQ(relief.size(), 4u);
  const Estimate& told = relief.front().fraction;
  EXPECT_NEAR(told.value, truth, 0.03) << "the chillers that run are given, and yet they answer the load";
  EXPECT_LT(told.low, truth);
  EXPECT_GT(told.high, truth);
  // Nobody's meters are better than their class.
  EXPECT_GT(told.high - told.low, 2 * 1.96 * 0.0081);
  EXPECT_GT(told.low, 0);
  EXPECT_LT(*relief[1].air, *relief[2].air);
  EXPECT_LT(*relief[2].air, *relief[3].air);

  for (FacilityRecord& record : records) record.point.it = Watts(5e5);
  EXPECT_FALSE(relief_of(building, records)) << "a load that does not move tells nothing";
}

TEST(Building, ASampleWithoutTheITsPowerIsNone) {
  FacilitySample sample;
  sample.utility = Watts(1e6);
  EXPECT_FALSE(record_of(sample));
  sample.it = Watts(8e5);
  sample.on_battery = true;
  sample.ups_out = Watts(8.1e5);
  sample.jobs = {{"small", Phase::idle, 0.2, {}, {}, {}}, {"large", Phase::training, 0.7, {}, {}, {}}};
  const auto record = record_of(sample);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->point.facility, Watts(1.81e6));  // the batteries' part is the building's too
  EXPECT_TRUE(record->point.exceptional);
  EXPECT_EQ(record->key, (PhaseKey{"large", Phase::training}));
  EXPECT_FALSE(learn_building(std::vector<FacilityRecord>(20, *record), {}));
}

}  // namespace
}  // namespace flyball::facility
