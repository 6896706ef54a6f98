#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temp_dir.h"
#include "meter/child.h"
#include "meter/ipmi/ipmi_meter.h"
#include "meter/ipmi/text.h"
#include "meter/peer_test_support.h"

namespace flyball::meter {
namespace {

using testing::HasSubstr;

constexpr const char* kDcmiText = R"(
    Instantaneous power reading:                   412 Watts
    Minimum during sampling period:                 12 Watts
    Power reading state is:                   activated
)";

TEST(IpmiText, DcmiCountsOnlyWhileItIsActive) {
  EXPECT_DOUBLE_EQ(*parse_dcmi(kDcmiText).said, 412);
  const auto inactive = parse_dcmi("  Instantaneous power reading:  0 Watts\n  Power reading state is:  deactivated\n");
  EXPECT_EQ(inactive.said.status, Status::missing);
  EXPECT_THAT(inactive.reason, HasSubstr("absent, not 0"));
  EXPECT_FALSE(parse_dcmi("").said.ok());
  EXPECT_FALSE(parse_dcmi("Power reading state is: activated\nInstantaneous power reading: 12 Volts\n").said.ok());
}

TEST(IpmiText, SensorsByName) {
  const auto sensors = parse_sensors(
      "PSU1 Input,212,Watts,ok\nInlet,24.000,degrees C,ok\nPSU2 Input,,Watts,ns\n"
      "Fan,4200,RPM,nc\nTwin,1,Volts,ok\nTwin,2,Volts,ok\nbroken\n,1,Volts,ok\nOdd,x,Volts,ok\n");
  EXPECT_DOUBLE_EQ(*sensors.at("PSU1 Input").said, 212);
  EXPECT_EQ(sensors.at("Inlet").unit, "degC");
  EXPECT_EQ(sensors.at("PSU2 Input").said.status, Status::missing);
  EXPECT_DOUBLE_EQ(*sensors.at("Fan").said, 4200);
  EXPECT_EQ(sensors.at("Twin").said.status, Status::garbage);
  EXPECT_EQ(sensors.at("Odd").said.status, Status::garbage);
  EXPECT_EQ(sensors.size(), 6U);
}

TEST(Child, GivesOutputAndStatus) {
  const auto output = run_child({"sh", "-c", "echo $GREETING; echo oops >&2; exit 3"}, {"GREETING=hello"}, Seconds(60));
  ASSERT_TRUE(output) << output.error().message();
  EXPECT_EQ(output->out, "hello\n");
  EXPECT_EQ(output->error, "oops\n");
  EXPECT_EQ(output->status, 3);
}

TEST(Child, ADeadlineKillsItAndWhatItStarted) {
  const TempDir folder;
  const auto late =
      run_child({"sh", "-c", "(sleep 100 & echo $! > " + folder.file("pid") + "; wait); exit 0"}, {}, Seconds(2));
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().what, HasSubstr("killed"));
  const auto pid = system_filesystem().read(folder.file("pid"), 100);
  ASSERT_TRUE(pid);
  const std::string status = "/proc/" + pid->substr(0, pid->find('\n')) + "/cmdline";
  EXPECT_TRUE(Peer::wait_until([&] { return system_filesystem().read(status, 100).value_or("").empty(); }));
}

TEST(Child, EndlessOutputAndNoProgram) {
  EXPECT_THAT(run_child({"yes"}, {}, Seconds(60)).error().what, HasSubstr("longer than 1 MiB"));
  EXPECT_EQ(run_child({"/nowhere/ipmitool"}, {}, Seconds(60)).error().code, ErrorCode::unsupported);
}

class IpmiTool : public testing::Test {
 protected:
  /// A stand-in that notes how it was called.
  void stand_in(const std::string& body) {
    write_file(folder_.file("ipmitool"), "#!/bin/sh\necho \"$@\" >> " + folder_.file("calls") + "\n" + body);
    ::chmod(folder_.file("ipmitool").c_str(), 0755);
    ::setenv("FLYBALL_TEST_BMC", "hunter2", 1);
  }
  std::vector<MeterReading> read() {
    const auto profile = parse_profile(R"([meter]
id = "bmc"
protocol = "ipmi"
source = "test"
address = "bmc-1:6230"
user = "reader"
password_env = "FLYBALL_TEST_BMC"
timeout = "5s"
scope = "node_ac"
[point.a]
quantity = "power"
unit = "W"
sensor = "dcmi"
[point.b]
quantity = "temperature"
unit = "degC"
sensor = "Inlet"
[point.c]
quantity = "power"
unit = "W"
sensor = "Not there"
)",
                                       "bmc.conf");
    EXPECT_TRUE(profile);
    return (*make_ipmi_meter(*profile, clock_, folder_.file("ipmitool")))->read();
  }
  TempDir folder_;
  SystemClock clock_;
};

TEST_F(IpmiTool, ReadsBothAndShowsNoPassword) {
  stand_in("[ \"$IPMI_PASSWORD\" = hunter2 ] || exit 1\ncase \"$*\" in *dcmi*) cat <<'T'" + std::string(kDcmiText) +
           "T\n;; *) echo 'Inlet,24,degrees C,ok' ;; esac\n");
  const auto readings = read();
  EXPECT_DOUBLE_EQ(readings[0].value.value_or(0), 412) << readings[0].reason;
  EXPECT_DOUBLE_EQ(readings[1].value.value_or(0), 24) << readings[1].reason;
  EXPECT_EQ(readings[2].value.status, Status::not_supported);
  const std::string calls = *system_filesystem().read(folder_.file("calls"), 10'000);
  EXPECT_THAT(calls, HasSubstr("-L USER -N 1 -R 1 -H bmc-1 -p 6230 -U reader -E dcmi power reading"));
  EXPECT_EQ(calls.find("hunter2"), std::string::npos);
}

TEST_F(IpmiTool, WhatItFailsWithIsTheReason) {
  stand_in("echo 'Unable to establish IPMI v2 / RMCP+ session' >&2; exit 1\n");
  EXPECT_EQ(read()[0].value.status, Status::failed);
  EXPECT_THAT(read()[0].reason, HasSubstr("ends with 1: Unable to establish"));
}

/// OpenIPMI's simulator: sessions and identity are real; it knows no DCMI, which is a failure with the reason.
TEST(IpmiSimulator, IdentityAndARefusal) {
  if (!has_program("/usr/bin/ipmi_sim") || !has_program("/usr/bin/ipmitool")) {
    GTEST_SKIP() << "no /usr/bin/ipmi_sim or /usr/bin/ipmitool (Debian packages openipmi, ipmitool)";
  }
  const TempDir folder;
  const std::string port = std::to_string(free_port(SOCK_DGRAM));
  std::string lan = "name \"sim\"\nset_working_mc 0x20\nstartlan 1\naddr 127.0.0.1 " + port + "\npriv_limit admin\n";
  for (const char* level : {"callback", "user", "operator", "admin"}) {
    lan += std::string("allowed_auths_") + level + " none md2 md5 straight\n";
  }
  lan +=
      "guid a123456789abcdefa123456789abcdef\nendlan\n"
      "user 2 true \"reader\" \"hunter2\" admin 10 none md2 md5 straight\n";
  write_file(folder.file("lan.conf"), lan);
  write_file(folder.file("sim.emu"),
             "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n");
  Peer simulator({"/usr/bin/ipmi_sim", "-n", "-c", folder.file("lan.conf"), "-f", folder.file("sim.emu"), "-s",
                  folder.file("state")});
  ::setenv("FLYBALL_TEST_BMC", "hunter2", 1);
  const auto profile = parse_profile(
      "[meter]\nid = \"sim\"\nprotocol = \"ipmi\"\nsource = \"test\"\nuser = \"reader\"\ntimeout = "
      "\"30s\"\npassword_env = "
      "\"FLYBALL_TEST_BMC\"\naddress = \"127.0.0.1:" +
          port +
          "\"\n"
          "[point.p]\nquantity = \"power\"\nunit = \"W\"\nsensor = \"dcmi\"\n",
      "sim.conf");
  ASSERT_TRUE(profile) << profile.error().front().message();
  SystemClock clock;
  auto meter = *make_ipmi_meter(*profile, clock);
  auto identity = meter->identify();
  ASSERT_TRUE(Peer::wait_until([&] { return identity || (identity = meter->identify()); }))
      << identity.error().message();
  EXPECT_THAT(identity->text(), HasSubstr("firmware 9.08"));
  const auto reading = meter->read()[0];
  EXPECT_EQ(reading.value.status, Status::failed);
  EXPECT_THAT(reading.reason, HasSubstr("DCMI request failed"));
}

}  // namespace
}  // namespace flyball::meter
