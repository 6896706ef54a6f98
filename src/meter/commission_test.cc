#include "meter/commission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "meter/modbus/modbus_meter.h"
#include "meter/modbus/registers.h"
#include "meter/point.h"

namespace flyball::meter {
namespace {

using testing::HasSubstr;

Observed seen(Quantity quantity, double mean, const std::string& group = "") {
  return {std::string(to_string(quantity)), group, quantity, mean, {}};
}

ScaleJudgement judge(const std::vector<Observed>& points) { return judge_scales(points).front(); }

TEST(Relations, VoltsTimesAmperesTimesFactorIsWatts) {
  EXPECT_EQ(judge({seen(Quantity::voltage, 230), seen(Quantity::current, 2), seen(Quantity::power_factor, 0.9),
                   seen(Quantity::power, 414)})
                .verdict,
            ScaleVerdict::agrees);
}

TEST(Relations, TenfoldVoltsAreMendedSinceNoSupplyHasThem) {
  const auto verdict = judge({seen(Quantity::voltage, 2300), seen(Quantity::current, 2),
                              seen(Quantity::power_factor, 0.9), seen(Quantity::power, 414)});
  EXPECT_EQ(verdict.verdict, ScaleVerdict::corrected) << verdict.text;
  EXPECT_EQ(verdict.point, "voltage");
  EXPECT_DOUBLE_EQ(verdict.factor, 0.1);
}

TEST(Relations, DeciAmperesBothWaysAreMendedWhereTwoRelationsSaySo) {
  for (const double factor : {10.0, 0.1}) {
    const auto verdict =
        judge({seen(Quantity::voltage, 230), seen(Quantity::current, 2 * factor), seen(Quantity::power_factor, 0.9),
               seen(Quantity::power, 414), seen(Quantity::apparent_power, 460)});
    EXPECT_EQ(verdict.verdict, ScaleVerdict::corrected) << verdict.text;
    EXPECT_EQ(verdict.point, "current");
    EXPECT_NEAR(verdict.factor, 1 / factor, 1e-9);
  }
}

TEST(Relations, OneRelationDoesNotSayWhichOfTwoIsWrong) {
  const auto verdict = judge({seen(Quantity::voltage, 230), seen(Quantity::current, 20),
                              seen(Quantity::power_factor, 0.9), seen(Quantity::power, 414)});
  EXPECT_EQ(verdict.verdict, ScaleVerdict::ambiguous);
  EXPECT_THAT(verdict.text, HasSubstr("could be power x 10 or current x 0.1"));
}

TEST(Relations, ApparentPowerCalledPowerIsFound) {
  const auto verdict = judge({seen(Quantity::voltage, 230), seen(Quantity::current, 2),
                              seen(Quantity::power_factor, 0.8), seen(Quantity::power, 460)});
  EXPECT_EQ(verdict.verdict, ScaleVerdict::is_apparent);
  EXPECT_THAT(verdict.text, HasSubstr("it is apparent power, in VA"));
}

TEST(Relations, WhatIsNoPowerOfTenIsNotMended) {
  EXPECT_EQ(judge({seen(Quantity::voltage, 230), seen(Quantity::current, 2), seen(Quantity::power_factor, 0.9),
                   seen(Quantity::power, 1000)})
                .verdict,
            ScaleVerdict::disagrees);
}

/// What the other side of the group says of V = 230 and A = 2 at PF 0.9, times `factor`.
ScaleJudgement judge_off_by(double factor) {
  return judge({seen(Quantity::voltage, 230), seen(Quantity::current, 2), seen(Quantity::power_factor, 0.9),
                seen(Quantity::power, 414 * factor)});
}

TEST(Relations, PhasesThatAreMixedUpAreExplained) {
  const double root = std::sqrt(3.0);
  EXPECT_THAT(judge_off_by(root).text, HasSubstr("V x A x sqrt(3) fits: V is between two phases and W of all three"));
  EXPECT_THAT(judge_off_by(1 / root).text, HasSubstr("V x A / sqrt(3) fits: V is between two phases and W of one"));
  EXPECT_THAT(judge_off_by(3).text, HasSubstr("W is of three phases, V and A of one"));
  EXPECT_THAT(judge_off_by(1.0 / 3).text, HasSubstr("one of three current transformers is turned round"));
  for (const double factor : {root, 1 / root, 3.0, 1.0 / 3})
    EXPECT_EQ(judge_off_by(factor).verdict, ScaleVerdict::disagrees) << factor;
  EXPECT_THAT(judge_off_by(1.35).text, testing::Not(HasSubstr("fits")));
}

TEST(Relations, WithoutPowerFactorOnlyThatOfAUsualSupplyExplains) {
  const auto told = [](double watts) {
    return judge({seen(Quantity::voltage, 230), seen(Quantity::current, 2), seen(Quantity::power, watts)}).text;
  };
  EXPECT_THAT(told(460 * 1.7), HasSubstr("sqrt(3) fits"));
  EXPECT_THAT(told(460 * 1.3), testing::Not(HasSubstr("fits")));
}

TEST(Relations, APowerFactorInPercentOrThousandthsIsMended) {
  for (const double parts : {100.0, 1000.0, 0.01}) {  // the last: "%" was told of a device that says a fraction
    const auto verdict = judge({seen(Quantity::voltage, 230), seen(Quantity::current, 2),
                                seen(Quantity::power_factor, 0.9 * parts), seen(Quantity::power, 414)});
    EXPECT_EQ(verdict.verdict, ScaleVerdict::corrected) << verdict.text;
    EXPECT_EQ(verdict.point, "power_factor");
    EXPECT_NEAR(verdict.factor, 1 / parts, 1e-9 / parts);
  }
}

DirectionJudgement direction(const std::vector<Observed>& points) { return judge_directions(points).front(); }

TEST(Relations, ATurnedCurrentTransformerIsFound) {
  const auto turned =
      direction({seen(Quantity::voltage, 230), seen(Quantity::current, 2), seen(Quantity::power, -414)});
  EXPECT_FALSE(turned.forward);
  EXPECT_EQ(turned.point, "power");
  EXPECT_THAT(turned.text, HasSubstr("power is -414 W while V x A is 460 VA: its current transformer is turned round"));
  EXPECT_THAT(turned.text, testing::Not(HasSubstr("another phase")));
  EXPECT_THAT(direction({seen(Quantity::voltage, 230), seen(Quantity::current, 2), seen(Quantity::power, -230)}).text,
              HasSubstr("or it sits on another phase than V"));
  EXPECT_FALSE(direction({seen(Quantity::power, -414)}).forward);
  EXPECT_FALSE(direction({seen(Quantity::voltage, 54), seen(Quantity::current, -10)}).forward);
  Observed falling = seen(Quantity::energy, 3.6e9);
  falling.per_second = -414;
  EXPECT_FALSE(direction({seen(Quantity::power, 414), falling}).forward);
}

TEST(Relations, WhatRunsForwardsIsNotCalledTurned) {
  EXPECT_TRUE(
      direction({seen(Quantity::voltage, 230), seen(Quantity::current, 2), seen(Quantity::power, 414)}).forward);
  EXPECT_TRUE(direction({seen(Quantity::voltage, -48), seen(Quantity::current, -10)}).forward);  // telecom
  EXPECT_TRUE(
      direction({seen(Quantity::voltage, -48), seen(Quantity::current, 10), seen(Quantity::power, 480)}).forward);
  EXPECT_TRUE(direction({seen(Quantity::voltage, 230), seen(Quantity::current, 2), seen(Quantity::power, -1)}).forward)
      << "noise of a meter without load";
  EXPECT_TRUE(judge_directions({seen(Quantity::temperature, -4)}).empty());
}

TEST(Relations, GroupsAreNotMixedAndZerosCompareWithNothing) {
  const auto verdicts = judge_scales(
      {seen(Quantity::voltage, 230, "L1"), seen(Quantity::current, 2, "L2"), seen(Quantity::power, 0, "L2")});
  ASSERT_EQ(verdicts.size(), 2U);
  for (const auto& one : verdicts) EXPECT_EQ(one.verdict, ScaleVerdict::nothing_to_compare);
}

/// A device whose registers follow from its true values and its true layout, whatever the profile believes.
class Device {
 public:
  Profile truth;
  double volts = 230.1, amperes = 8.7, factor = 0.97, start_wh = 1'234'567;
  double direction = 1;        ///< of the power that it says
  double parts_of_factor = 1;  ///< 100: it says percent
  VirtualClock clock;
  std::string name = "Acme 7";
  Seconds clock_ahead{2.5};

  double said(const PointProfile& point) const {
    const double watts = volts * amperes * factor;
    switch (point.quantity) {
      case Quantity::voltage:
        return volts;
      case Quantity::current:
        return amperes;
      case Quantity::power_factor:
        return factor * parts_of_factor;
      case Quantity::power:
        return watts * direction;
      default:
        return start_wh * 3600 + watts * clock.now().seconds();
    }
  }
  /// Registers by their address on the wire.
  std::map<int, std::uint16_t> registers() const {
    std::map<int, std::uint16_t> made;
    for (const PointProfile& point : truth.points) {
      const double number = (said(point) / point.to_base.factor) / point.scale;
      const int width = width_of(point.modbus.type);
      const std::uint64_t bits = point.modbus.type == RegisterType::f32
                                     ? std::bit_cast<std::uint32_t>(static_cast<float>(number))
                                     : static_cast<std::uint64_t>(std::llround(number));
      for (int i = 0; i < width; ++i) {
        const bool low_first = point.modbus.order == ByteOrder::cdab;
        const auto word = static_cast<std::uint16_t>(bits >> (16 * (low_first ? i : width - 1 - i)));
        made[point.modbus.address - truth.register_base + i] = word;
      }
    }
    return made;
  }
};

class DeviceMeter final : public Meter, public RegisterSource {
 public:
  DeviceMeter(Device& device, Profile profile) : device_(device), profile_(std::move(profile)) {}
  std::vector<MeterReading> read() override {
    const auto registers = device_.registers();
    std::vector<MeterReading> made;
    raw_.assign(profile_.points.size(), {});
    for (std::size_t i = 0; i < profile_.points.size(); ++i) {
      const PointProfile& point = profile_.points[i];
      MeterReading reading = blank_reading(profile_, point);
      reading.received = device_.clock.now();
      for (int k = 0; k < width_of(point.modbus.type); ++k) {
        const auto at = registers.find(point.modbus.address - profile_.register_base + k);
        raw_[i].push_back(at == registers.end() ? 0 : at->second);
      }
      set_value(reading, point, decode_registers(raw_[i], point.modbus).number);
      made.push_back(reading);
    }
    return made;
  }
  std::vector<std::uint16_t> registers_of(std::size_t point) const override { return raw_[point]; }
  Result<Identity> identify() override { return Identity{"", device_.name, "", ""}; }
  Result<ClockPair> device_clock() override {
    return ClockPair{device_.clock.wall() + device_.clock_ahead, device_.clock.wall(), Seconds(0.5)};
  }

 private:
  Device& device_;
  Profile profile_;
  std::vector<std::vector<std::uint16_t>> raw_;
};

class Commission : public testing::Test {
 protected:
  void SetUp() override {
    device_.truth = *parse_profile(R"([meter]
id = "feeder"
protocol = "modbus"
source = "made up"
address = "127.0.0.1:502"
register_base = 1
[point.a_volts]
quantity = "voltage"
unit = "V"
register = 1
type = "f32"
order = "cdab"
[point.b_amperes]
quantity = "current"
unit = "A"
register = 3
type = "f32"
order = "cdab"
[point.c_factor]
quantity = "power_factor"
unit = ""
register = 5
type = "f32"
order = "cdab"
[point.d_watts]
quantity = "power"
unit = "W"
register = 7
type = "f32"
order = "cdab"
[point.e_energy]
quantity = "energy"
unit = "Wh"
register = 9
type = "u32"
order = "cdab"
)",
                                   "truth.conf");
  }
  CommissionReport run(const Profile& believed) {
    const auto report = commission(
        believed,
        [&](const Profile& of) -> Result<std::unique_ptr<Meter>> { return std::make_unique<DeviceMeter>(device_, of); },
        device_.clock, {5, Seconds(10)});
    EXPECT_TRUE(report) << report.error().message();
    return *report;
  }
  static std::string failures(const CommissionReport& report) {
    std::string all;
    for (const Check& check : report.checks) {
      if (check.state == CheckState::failed) all += check.name + ": " + check.text + '\n';
    }
    return all;
  }
  Device device_;
};

TEST_F(Commission, WhatIsRightPassesAndIsWrittenDown) {
  const auto report = run(device_.truth);
  EXPECT_TRUE(report.passed()) << failures(report);
  EXPECT_EQ(report.profile.commissioned.identity, "Acme 7");
  EXPECT_DOUBLE_EQ(report.profile.commissioned.clock_offset->value(), 2.5);
  EXPECT_FALSE(report.profile.commissioned.at.empty());
  const PointProfile* energy = report.profile.point("e_energy");
  EXPECT_NEAR(*energy->resolution, 5 * 3600.0, 3600);  // 1.94 kW for 10 s, in whole Wh
  EXPECT_NEAR(energy->update_interval->value(), 10, 1e-9);
  EXPECT_TRUE(parse_profile(profile_text(report.profile), "again.conf"));
}

TEST_F(Commission, TheWordOrderIsFound) {
  Profile believed = device_.truth;
  for (PointProfile& point : believed.points) point.modbus.order = ByteOrder::abcd;
  const auto report = run(believed);
  EXPECT_TRUE(report.passed()) << failures(report);
  for (const PointProfile& point : report.profile.points) EXPECT_EQ(point.modbus.order, ByteOrder::cdab) << point.name;
  EXPECT_NEAR(*report.points[0].mean, 230.1, 0.01);
}

TEST_F(Commission, RegistersOffByOneAreFound) {
  Profile believed = device_.truth;
  believed.register_base = 0;
  const auto report = run(believed);
  EXPECT_TRUE(report.passed()) << failures(report);
  EXPECT_EQ(report.profile.register_base, 1);
}

TEST_F(Commission, AScaleIsFoundByTwoRelations) {
  Profile believed = device_.truth;
  believed.points[3].scale = 10;  // watts, which the counter and V x A x PF both contradict
  const auto report = run(believed);
  EXPECT_TRUE(report.passed()) << failures(report);
  EXPECT_DOUBLE_EQ(report.profile.points[3].scale, 1);
  EXPECT_NEAR(*report.points[3].mean, 230.1 * 8.7 * 0.97, 1);
}

TEST_F(Commission, ATurnedCurrentTransformerFailsWithTheRemedy) {
  device_.direction = -1;
  EXPECT_THAT(failures(run(device_.truth)), HasSubstr("turn it (its arrow points to the load), or where nobody can, "
                                                      "write scale = -1 for d_watts"));
  Profile mended = device_.truth;
  mended.points[3].scale = -1;
  device_.truth = mended;
  device_.direction = 1;
  const auto report = run(mended);
  EXPECT_TRUE(report.passed()) << failures(report);
}

TEST_F(Commission, APowerFactorInPercentIsMendedOrExplained) {
  for (const double parts : {100, 1000}) {
    device_.parts_of_factor = parts;
    const auto report = run(device_.truth);
    EXPECT_TRUE(report.passed()) << failures(report);
    EXPECT_DOUBLE_EQ(report.profile.point("c_factor")->scale, 1 / parts);
    EXPECT_NEAR(*report.points[2].mean, 0.97, 1e-6);
  }
  Profile alone = device_.truth;  // nothing to hold it against
  alone.points = {alone.points[0], alone.points[2]};
  EXPECT_THAT(failures(run(alone)),
              HasSubstr("970 is not a possible power_factor; in thousandths? write scale = 0.001"));
}

TEST_F(Commission, AnotherDeviceAtTheAddressIsRefused) {
  Profile known = device_.truth;
  known.commissioned.identity = "Acme 6";
  const auto report = run(known);
  EXPECT_FALSE(report.passed());
  EXPECT_THAT(failures(report), HasSubstr("was 'Acme 6' and is now 'Acme 7'"));
}

TEST_F(Commission, OtherRegistersAreRefused) {
  Profile believed = device_.truth;
  for (PointProfile& point : believed.points) point.modbus.address += 100;  // zeros everywhere
  EXPECT_THAT(failures(run(believed)), HasSubstr("every value is 0 or absent"));
  std::swap(believed.points[0].modbus.address, device_.truth.points[3].modbus.address);  // watts as volts
  EXPECT_FALSE(run(believed).passed());
}

TEST_F(Commission, TwoExplanationsAreNone) {
  // The first half of a float is nearly all of it: off by one and another word order look alike without a counter.
  device_.truth.points.pop_back();
  Profile believed = device_.truth;
  believed.register_base = 0;
  EXPECT_THAT(failures(run(believed)), HasSubstr("another word order would fit, or they are off by one"));
}

}  // namespace
}  // namespace flyball::meter
