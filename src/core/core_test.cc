// Names, identities and derived numbers of the core types.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <set>
#include <unordered_set>

#include "core/control.h"
#include "core/device.h"
#include "core/facility.h"
#include "core/facility_columns.h"
#include "core/reading.h"
#include "core/result_types.h"
#include "core/workload.h"

namespace flyball {
namespace {

/// The names of the values 0 to `last`, each its own; the value behind the last has none.
template <class Enum>
std::vector<Enum> check_names(Enum last) {
  std::vector<Enum> all;
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    all.push_back(static_cast<Enum>(i));
    EXPECT_TRUE(names.insert(std::string(to_string(all.back()))).second) << "twice: " << to_string(all.back());
  }
  EXPECT_EQ(to_string(static_cast<Enum>(static_cast<int>(last) + 1)), "unknown") << "an enumerator has no test";
  return all;
}

TEST(Names, EachHasItsOwnAndReadsBack) {
  for (const Phase phase : check_names(Phase::startup)) EXPECT_EQ(parse_phase(to_string(phase)).value(), phase);
  for (const Signal signal : check_names(Signal::other)) EXPECT_EQ(parse_signal(to_string(signal)).value(), signal);
  for (const Lever lever : check_names(Lever::pause)) EXPECT_EQ(parse_lever(to_string(lever)).value(), lever);
  for (const Cause cause : check_names(Cause::not_identifiable))
    EXPECT_EQ(parse_cause(to_string(cause)).value(), cause);
  check_names(CauseLayer::none);
  for (int i = 0; i <= static_cast<int>(Scope::unknown); ++i) {
    const auto scope = static_cast<Scope>(i);
    EXPECT_EQ(parse_scope(to_string(scope)).value(), scope);
  }
  check_names(Status::garbage);
  check_names(DeviceState::not_ready);
  check_names(Decision::not_sure);
  check_names(Severity::alarm);
  check_names(Authority::site);
  EXPECT_NE(to_string(LeaseKind::saving), to_string(LeaseKind::budget));
}

TEST(Names, UnknownOnesAreErrorsWithTheWord) {
  EXPECT_EQ(parse_phase("Training").error().what, "'Training' is not a phase");
  EXPECT_EQ(parse_cause("sabotage").error().what, "'sabotage' is not a cause");
  EXPECT_FALSE(parse_signal(""));
  EXPECT_FALSE(parse_scope("boards"));
  EXPECT_LT(parse_lever(std::string(100'000, 'x')).error().message().size(), 100U);
}

TEST(DeviceId, StableNamesAreTaken) {
  for (const char* good : {"GPU-5f1c2d3e-0000-1111-2222-333344445555", "MIG-1", "node-17/ac", "pdu-3/outlet-4", "a"}) {
    EXPECT_EQ(DeviceId::parse(good).value().text(), good);
  }
  EXPECT_TRUE(DeviceId::parse(std::string(96, 'x')));
}

TEST(DeviceId, IndicesAndTextThatBreaksFilesAreRefused) {
  for (const char* bad : {"", "0", "17", "a b", "a,b", "a\"b", "a'b", "a\\b", "a\nb", "GPU-\xc3\xa4", "\x1b[0m"}) {
    const auto id = DeviceId::parse(bad);
    ASSERT_FALSE(id) << bad;
    EXPECT_EQ(id.error().code, ErrorCode::input);
    EXPECT_NE(id.error().remedy.find("UUID"), std::string::npos);
  }
  EXPECT_FALSE(DeviceId::parse(std::string(97, 'x')));
  EXPECT_LT(DeviceId::parse(std::string(100'000, 'x')).error().message().size(), 300U);
  EXPECT_DEATH(DeviceId::of("0"), "an index changes its meaning");
}

TEST(DeviceId, HashesAndOrdersByName) {
  const DeviceId a = DeviceId::of("a");
  const DeviceId b = DeviceId::of("b");
  EXPECT_LT(a, b);
  EXPECT_TRUE(DeviceId().empty());
  EXPECT_EQ((std::unordered_set<DeviceId>{a, b, DeviceId::of("a")}.size()), 2U);
}

TEST(Sample, OnlyOkValuesAreRead) {
  const Sample<double> none;
  EXPECT_FALSE(none.ok());
  EXPECT_EQ(none.status, Status::missing);
  EXPECT_EQ(none.value_or(7), 7);
  const Sample<double> lost = Sample<double>::absent(Status::lost);
  EXPECT_FALSE(lost);
  EXPECT_EQ(lost.value_or(7), 7);
  const Sample<double> good = 3.0;
  EXPECT_EQ(*good, 3.0);
  EXPECT_EQ(good.value_or(7), 3.0);
}

TEST(Units, EachSignalHasOne) {
  EXPECT_EQ(unit_of(Signal::power_instant), "W");
  EXPECT_EQ(unit_of(Signal::energy), "J");
  EXPECT_EQ(unit_of(Signal::memory_clock), "Hz");
  EXPECT_EQ(unit_of(Signal::temperature), "°C");
  EXPECT_EQ(unit_of(Signal::utilisation), "");
}

TEST(ThrottleReasons, AreDecoded) {
  using R = ThrottleReasons;
  EXPECT_EQ(to_string(R{}), "none");
  EXPECT_EQ(to_string(R{R::kSoftwarePowerCap | R::kPowerBrake}), "software_power_cap, power_brake");
  EXPECT_TRUE(R{R::kPowerBrake}.external_brake());
  EXPECT_FALSE(R{R::kSoftwarePowerCap}.external_brake()) << "our own cap is no alarm";
  EXPECT_TRUE(R{R::kHardwareThermal}.thermal());
  EXPECT_TRUE(R{R::kSoftwareThermal}.thermal());
  EXPECT_FALSE(R{R::kHardwareSlowdown}.thermal());
}

TEST(Account, DerivesAndNeverDividesByZero) {
  Account account;
  EXPECT_EQ(account.mean_power(), Watts(0));
  EXPECT_EQ(account.tokens_per_mwh(), 0);
  EXPECT_EQ(account.wh_per_1000_tokens(), 0);
  account.energy = Joules(1.662 * kJoulesPerKilowattHour);
  account.duration = Seconds(3600);
  account.tokens = 2.045e6;
  EXPECT_NEAR(account.mean_power().value(), 1662, 1e-9);
  EXPECT_NEAR(account.tokens_per_mwh(), 2.045e6 / 1.662e-3, 1);
  EXPECT_NEAR(account.wh_per_1000_tokens(), 1662 / 2045.0, 1e-9);
}

TEST(FacilityColumns, EachReadsAndWritesOneFieldOfItsOwn) {
  std::set<std::string_view> names;
  for (const FacilityColumn& column : facility_columns()) {
    EXPECT_TRUE(names.insert(column.name).second) << "twice: " << column.name;
    EXPECT_EQ(find_facility_column(column.name), &column);
    FacilitySample sample;
    EXPECT_FALSE(column.get(sample));
    column.set(sample, 1);
    for (const FacilityColumn& other : facility_columns()) {
      EXPECT_EQ(other.get(sample).value_or(0), &other == &column ? 1 : 0) << column.name << " and " << other.name;
    }
    column.set(sample, {});
    EXPECT_FALSE(column.get(sample));
  }
  EXPECT_EQ(find_facility_column("magic_w"), nullptr);
}

}  // namespace
}  // namespace flyball
