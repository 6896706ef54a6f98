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

void print(const char* name, const Figures& figures) {
  std::printf("%s: dead %.0f s, lags %.0f and %.0f s, %s\n", name, figures.lags.dead_time_s.value,
              figures.lags.first_lag_s.value, figures.lags.second_lag_s.value, figures.lags.note.c_str());
  for (const PhaseAccuracy& row : figures.rows)
    std::printf("  %-12s n %6zu p50 %.2f p95 %.2f nmbe %.2f cover %.1f width %.2f frozen %.2f static %.2f %%\n",
                row.key ? std::string(to_string(row.key->phase)).c_str() : "all", row.points, 100 * row.p50_fraction,
                100 * row.p95_fraction, 100 * row.nmbe_fraction, 100 * row.coverage_fraction,
                100 * row.half_width_fraction, 100 * row.frozen_p95_fraction, 100 * row.static_p95_fraction);
}

TEST(Building, OtherPeoplesEquations) {
  print("direct expansion", foretell(days(direct_expansion(), 20, 1), 10));
  print("free cooling", foretell(days(free_cooling(), 20, 2), 10));
}

}  // namespace
}  // namespace flyball::facility
