#include "facility/phase_library.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/checksum.h"
#include "base/random.h"
#include "facility/lag.h"

namespace flyball::facility {
namespace {

constexpr double kRating = 1e6;
constexpr WallTime kStart(1'767'225'600'000'000'000);
const PhaseKey kTraining{"pretrain", Phase::training}, kCheckpoint{"pretrain", Phase::checkpoint};

LibraryOptions options() {
  LibraryOptions made;
  made.it_rating = Watts(kRating);
  made.dead_time = Seconds(60);
  made.first_lag = Seconds(300);
  return made;
}

struct Told {
  FacilityPoint point;
  PhaseKey key;
};

/// A job that trains and writes checkpoints of five minutes each hour; losses at once, cooling late; every ten seconds.
std::vector<Told> facility(double hours, std::uint64_t seed, double fault_at_h = 1e9, double fault = 0) {
  Random random(seed);
  std::vector<double> it;
  std::vector<Told> made;
  const int points = static_cast<int>(hours * 360);
  for (int i = 0; i < points; ++i) it.push_back(kRating * ((i % 360 < 30 ? 0.45 : 0.9) + 0.004 * random.normal()));
  const auto heat = respond(it, Seconds(10), Seconds(60), Seconds(300), Seconds(0));
  for (int i = 0; i < points; ++i) {
    const auto n = static_cast<std::size_t>(i);
    const double air = 15 + 6 * std::sin(2 * std::numbers::pi * i / 8640);
    const double losses = 0.02 * kRating + 0.04 * it[n], cooling = heat[n] * (0.18 + 0.004 * (air - 15));
    const double wrong = i > fault_at_h * 360 ? fault * kRating : 0;
    made.push_back({{kStart + Seconds(10.0 * i), Watts(it[n]),
                     Watts(it[n] + losses + cooling + wrong + 0.002 * kRating * random.normal()), Celsius(air)},
                    i % 360 < 30 ? kCheckpoint : kTraining});
  }
  return made;
}

TEST(PhaseLibrary, ForetellsEachPhaseAndKeepsItsInterval) {
  PhaseLibrary library = PhaseLibrary::make(options()).value();
  double error = 0;
  int counted = 0, transients = 0;
  for (const Told& told : facility(72, 1)) {
    library.phase(told.point.at, told.key);
    const Expectation made = library.take(told.point);
    EXPECT_FALSE(made.transient && made.deviates);
    transients += made.transient ? 1 : 0;
    if (told.point.at - kStart < Seconds(86400)) continue;
    error += std::abs((made.expected - told.point.facility) / told.point.facility);
    ++counted;
  }
  // 0.2 % of the rating is noise; nothing else may be left, transients included.
  EXPECT_LT(error / counted, 0.0025);
  EXPECT_GT(transients, 1000);
  for (const auto& entry : library.entries()) {
    if (entry.key == kTraining) {
      EXPECT_NEAR(entry.coverage_fraction, 0.9, 0.02);
    }
  }
  EXPECT_EQ(library.entries().size(), 2u);
}

TEST(PhaseLibrary, ALastingDifferenceDeviatesOutsideTransientsOnly) {
  PhaseLibrary library = PhaseLibrary::make(options()).value();
  int before = 0, after = 0, seen_before = 0, seen_after = 0;
  for (const Told& told : facility(50, 2, 48, 0.02)) {
    library.phase(told.point.at, told.key);
    const Expectation made = library.take(told.point);
    if (made.transient) continue;
    const double hour = (told.point.at - kStart).value() / 3600;
    if (hour > 24 && hour < 48) ++seen_before, before += made.deviates ? 1 : 0;
    if (hour > 48 && hour < 48.7) ++seen_after, after += made.deviates ? 1 : 0;
  }
  EXPECT_NEAR(before / static_cast<double>(seen_before), 0.1, 0.02);
  EXPECT_GT(after, seen_after / 2);
}

TEST(PhaseLibrary, AVersionIsMadeAgainByTheSameInputs) {
  const auto learn = [](std::uint64_t seed) {
    PhaseLibrary library = PhaseLibrary::make(options()).value();
    std::string inputs;
    for (const Told& told : facility(9, seed)) {
      library.phase(told.point.at, told.key);
      library.take(told.point);
      inputs += std::to_string(told.point.facility.value());
    }
    return version_of(library.text(), sha256_hex(inputs), "", "first", kStart);
  };
  const BaselineVersion one = learn(3), again = learn(3), other = learn(4);
  EXPECT_EQ(one.hash, again.hash);
  EXPECT_EQ(one.content, again.content);
  EXPECT_NE(one.hash, other.hash);
  EXPECT_TRUE(is_sound(one));
  BaselineVersion touched = one;
  touched.reason = "second";
  EXPECT_FALSE(is_sound(touched));
  const BaselineVersion child = version_of(other.content, other.inputs_hash, one.hash, "drift", kStart);
  EXPECT_NE(child.hash, other.hash);
  EXPECT_EQ(child.parent, one.hash);
}

TEST(PhaseLibrary, HolesUnknownAirAndWrongNumbersDoNotBreakIt) {
  EXPECT_FALSE(PhaseLibrary::make({}));
  PhaseLibrary library = PhaseLibrary::make(options()).value();
  auto points = facility(12, 5);
  library.phase(points[0].point.at, kTraining);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i % 7 == 0) points[i].point.air = std::nullopt;
    if (i == 500) points[i].point.facility = Watts(std::nan(""));
    if (i > 900 && i < 1200) continue;
    const Expectation made = library.take(points[i].point);
    ASSERT_TRUE(made.expected.finite()) << i;
    ASSERT_LE(made.low, made.high) << i;
  }
}

}  // namespace
}  // namespace flyball::facility
