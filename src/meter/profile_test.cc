#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temp_dir.h"
#include "meter/csv/csv_meter.h"
#include "meter/open.h"
#include "meter/profile.h"
#include "meter/secret.h"

namespace flyball::meter {
namespace {

using testing::HasSubstr;

constexpr const char* kFeeder = R"([meter]
id = "feeder-3"
protocol = "modbus"
source = "manual of a made-up meter"
address = "127.0.0.1:1502"
scope = "feed"
register_base = 1
timeout = "0.5s"
[point.energy]
quantity = "energy"
unit = "Wh"
register = 101
type = "u32"
order = "cdab"
sentinel = ["0xffffffff"]
[point.power]
quantity = "power"
unit = "kW"
scale = 0.01
register = 40
type = "s16"
)";

std::string faults(const std::string& text) {
  const auto profile = parse_profile(text, "p.conf");
  std::string all;
  if (profile) return all;
  for (const Error& error : profile.error()) all += error.message() + '\n';
  return all;
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

TEST(Profile, SaysWhatItWasTold) {
  const auto profile = parse_profile(kFeeder, "p.conf");
  ASSERT_TRUE(profile) << faults(kFeeder);
  ASSERT_EQ(profile->points.size(), 2U);
  const PointProfile& energy = profile->points[0];
  EXPECT_EQ(energy.modbus.order, ByteOrder::cdab);
  EXPECT_EQ(energy.modbus.sentinels, std::vector<std::uint64_t>{0xffffffff});
  EXPECT_EQ(energy.scope, Scope::feed);
  EXPECT_DOUBLE_EQ(energy.base_of(2), 7200);
  EXPECT_DOUBLE_EQ(profile->points[1].base_of(150), 1500);
}

TEST(Profile, WrittenReadsBackTheSame) {
  auto profile = *parse_profile(kFeeder, "p.conf");
  profile.commissioned = {"2026-01-01T00:00:00.000Z", "a \"meter\"", Seconds(-3.5)};
  profile.points[1].resolution = 10;
  profile.points[1].update_interval = Seconds(1.5);
  const std::string text = profile_text(profile);
  const auto again = parse_profile(text, "q.conf");
  ASSERT_TRUE(again) << faults(text);
  EXPECT_EQ(profile_text(*again), text);
  EXPECT_EQ(again->commissioned.clock_offset, Seconds(-3.5));
  EXPECT_EQ(again->commissioned.identity, "a \"meter\"");
}

TEST(Profile, AllFaultsAreToldAtOnceByLine) {
  std::string text = with(kFeeder, "source = \"manual of a made-up meter\"", "sauce = \"a\"");
  text = with(text, "timeout = \"0.5s\"", "timeout = 0.5");
  text = with(text, "\"Wh\"", "Wh");
  text = with(text, "\"cdab\"", "\"cbad\"");
  text = with(text, "quantity = \"power\"", "quantity = \"might\"");
  text = with(text, "register = 40\n", "");
  EXPECT_EQ(faults(text),
            "p.conf:2: meter.source: is missing\n"
            "p.conf:4: meter.sauce: there is no such key; did you mean 'source'?\n"
            "p.conf:8: meter.timeout: 0.5 has no unit; write \"0.5s\"\n"
            "p.conf:11: the line is not TOML: Error while parsing value: could not determine value type\n"
            "p.conf:14: point.energy.order: 'cbad' is none of abcd, cdab, badc, dcba\n"
            "p.conf:17: point.power.quantity: 'might' is no quantity; one of power, apparent_power, energy, voltage, "
            "current, power_factor, frequency, temperature, humidity, flow, pressure, speed, state\n"
            "p.conf:17: point.power.register: is missing\n");
}

TEST(Profile, NoMoreThanTwentyFaultsAreTold) {
  std::string text = kFeeder;
  for (int i = 0; i < 30; ++i) text += "[point.p" + std::to_string(i) + "]\nquantity = \"power\"\nregister = 1\n";
  const auto profile = parse_profile(text, "p.conf");
  ASSERT_FALSE(profile);
  ASSERT_EQ(profile.error().size(), 21U);
  EXPECT_EQ(profile.error().back().message(), "p.conf: 40 more faults are not shown; mend these first");
}

TEST(Profile, AnUnknownProtocolMakesNoOtherFaults) {
  EXPECT_EQ(faults(with(kFeeder, "\"modbus\"", "\"modbuss\"")),
            "p.conf:3: meter.protocol: 'modbuss' is none of modbus, snmp, redfish, ipmi, prometheus, csv\n");
}

TEST(Profile, ApparentPowerIsNoPower) {
  EXPECT_THAT(faults(with(kFeeder, "\"kW\"", "\"kVA\"")),
              HasSubstr("\"kVA\" is no unit of power but of apparent_power"));
}

TEST(Profile, SentinelIsAsWideAsTheType) {
  EXPECT_THAT(faults(with(kFeeder, "0xffffffff", "0xffff")), HasSubstr("write 0x and 8 hexadecimal digits"));
}

TEST(Profile, KeysOfAnotherProtocolAreRefusedAndMissingOnesNamed) {
  const std::string text = faults(with(kFeeder, "register = 40\n", "oid = \"1.3.6\"\n"));
  EXPECT_THAT(text, HasSubstr("is a key of snmp, and this meter speaks modbus"));
  EXPECT_THAT(text, HasSubstr("point.power.register: is missing"));
}

TEST(Profile, RegisterBelowTheBaseIsRefused) {
  EXPECT_THAT(faults(with(kFeeder, "register = 40", "register = 0")), HasSubstr("outside the device's registers"));
}

TEST(Profile, PasswordsNeitherInAddressesNorOverHttp) {
  const std::string base = "[meter]\nid = \"a\"\nsource = \"s\"\n";
  EXPECT_THAT(faults(base + "protocol = \"redfish\"\naddress = \"http://bmc\"\n"), HasSubstr("https only"));
  EXPECT_THAT(faults(base + "protocol = \"redfish\"\naddress = \"https://u:p@bmc\"\n"), HasSubstr("holds a '@'"));
  EXPECT_THAT(faults(base + "protocol = \"prometheus\"\naddress = \"http://p\"\npassword_env = \"X\"\n"),
              HasSubstr("a password would go over http"));
}

TEST(Profile, MetricsNameTheirUnit) {
  const std::string base =
      "[meter]\nid = \"a\"\nsource = \"s\"\nprotocol = \"prometheus\"\n[point.p]\nquantity = \"power\"\nunit = "
      "\"kW\"\n";
  EXPECT_THAT(faults(base + "selector = \"rack_power_watts{rack='7'}\"\n"), HasSubstr("ends in _watts"));
}

TEST(Profile, UnknownZeroScaleAndUnknownWords) {
  EXPECT_THAT(faults(with(kFeeder, "scale = 0.01", "scale = 0")), HasSubstr("every value 0"));
  EXPECT_THAT(faults(with(kFeeder, "\"cdab\"", "\"abdc\"")), HasSubstr("'abdc' is none of abcd, cdab, badc, dcba"));
  EXPECT_THAT(faults(with(kFeeder, "\"modbus\"", "\"canbus\"")), HasSubstr("'canbus' is none of modbus"));
}

TEST(Profile, PresetsAreAccepted) {
  const auto names = system_filesystem().list("presets/meters");
  ASSERT_TRUE(names);
  EXPECT_FALSE(names->empty());
  for (const std::string& name : *names) {
    const std::string text = *system_filesystem().read("presets/meters/" + name, 1 << 20);
    EXPECT_EQ(faults(text), "") << name;
  }
}

TEST(Secrets, OpenFilesAndUnsetVariablesAreRefused) {
  const TempDir folder;
  const std::string path = folder.file("password");
  ASSERT_TRUE(system_filesystem().write_atomically(path, "s3cret\n"));
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  const auto open = load_secret({path, ""}, "password");
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().message(), HasSubstr("chmod o="));
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  EXPECT_EQ(load_secret({path, ""}, "password")->reveal(), "s3cret");
  EXPECT_THAT(load_secret({"", "FLYBALL_NOT_SET_ANYWHERE"}, "community").error().message(), HasSubstr("is not set"));
}

TEST(Addresses, AreNumbers) {
  EXPECT_EQ(parse_numeric_address("10.0.0.7", 502)->port, 502);
  EXPECT_EQ(parse_numeric_address("10.0.0.7:1502", 502)->port, 1502);
  EXPECT_EQ(parse_numeric_address("[::1]:1502", 502)->host, "::1");
  EXPECT_EQ(parse_numeric_address("::1", 502)->port, 502);
  for (const char* bad : {"meter.example:502", "10.0.0.7:0", "10.0.0.7:", "[::1", "10.0.0.7:65536", ""}) {
    EXPECT_FALSE(parse_numeric_address(bad, 502)) << bad;
  }
}

TEST(LeftOut, IsNamedAndEndsWithFour) {
  const Error error = left_out("SNMP", "libsnmp-dev");
  EXPECT_EQ(error.exit_code(), 4);
  EXPECT_EQ(error.message(), "this build has no SNMP; install libsnmp-dev and build again");
}

class CsvMeterTest : public testing::Test {
 protected:
  std::vector<MeterReading> read(const std::string& csv, const std::string& extra = "") {
    EXPECT_TRUE(system_filesystem().write_atomically(folder_.file("m.csv"), csv));
    const auto profile = parse_profile("[meter]\nid = \"m\"\nprotocol = \"csv\"\nsource = \"test\"\naddress = \"" +
                                           folder_.file("m.csv") + "\"\ntime_column = \"time\"\n" + extra +
                                           "[point.a]\nquantity = \"power\"\nunit = \"kW\"\ncolumn = \"load\"\n"
                                           "absent = [\"-1\"]\n",
                                       "csv.conf");
    EXPECT_TRUE(profile);
    return (*open_meter(*profile, clock_))->read();
  }
  TempDir folder_;
  VirtualClock clock_{*parse_rfc3339("2026-01-01T12:00:30Z")};
};

TEST_F(CsvMeterTest, LastCompleteRowWithItsOwnTime) {
  const auto readings = read("time,load\n2026-01-01T11:59:50Z,3\n2026-01-01T12:00:00Z,2.5 kW\n2026-01-01T12:00:10Z,9");
  ASSERT_EQ(readings.size(), 1U);
  ASSERT_TRUE(readings[0].value.ok()) << readings[0].reason;
  EXPECT_DOUBLE_EQ(*readings[0].value, 2500);
  EXPECT_EQ(readings[0].measured, *parse_rfc3339("2026-01-01T12:00:00Z"));
  EXPECT_EQ(readings[0].clock, TimeSource::device);
}

TEST_F(CsvMeterTest, WhatIsNoNumberIsMissingWithItsReason) {
  const std::string head = "time;load\n2026-01-01T12:00:00Z;";
  EXPECT_THAT(read(head + "2,5\n")[0].reason, HasSubstr("a comma in a number means two things"));
  EXPECT_THAT(read(head + "[N/A]\n")[0].reason, HasSubstr("is no number"));
  EXPECT_THAT(read(head + "\n")[0].reason, HasSubstr("empty"));
  EXPECT_THAT(read(head + "-1\n")[0].reason, HasSubstr("not available"));
  EXPECT_EQ(read(head + "1e9\n")[0].value.status, Status::garbage);
  EXPECT_THAT(read("time,other\n2026-01-01T12:00:00Z,1\n")[0].reason, HasSubstr("no column 'load'"));
}

TEST_F(CsvMeterTest, OldIsStaleAndStampsNeedAZone) {
  EXPECT_EQ(read("time,load\n2026-01-01T11:00:00Z,1\n")[0].value.status, Status::stale);
  EXPECT_THAT(read("time,load\n2026-01-01 12:00:00,1\n")[0].reason, HasSubstr("has no zone"));
  const auto local = read("time,load\n2026-01-01 13:00:00,1\n", "zone = \"Europe/Berlin\"\n");
  ASSERT_TRUE(local[0].value.ok()) << local[0].reason;
  EXPECT_EQ(local[0].measured, *parse_rfc3339("2026-01-01T12:00:00Z"));
}

TEST_F(CsvMeterTest, NoFileIsFailed) {
  const auto profile = parse_profile(
      "[meter]\nid = \"m\"\nprotocol = \"csv\"\nsource = \"t\"\naddress = \"/nowhere/at/all\"\n"
      "[point.a]\nquantity = \"power\"\nunit = \"W\"\ncolumn = \"x\"\n",
      "csv.conf");
  EXPECT_EQ((*open_meter(*profile, clock_))->read()[0].value.status, Status::failed);
}

}  // namespace
}  // namespace flyball::meter
