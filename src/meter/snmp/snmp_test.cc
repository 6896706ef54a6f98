#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temp_dir.h"
#include "meter/open.h"
#include "meter/peer_test_support.h"
#include "meter/snmp/value.h"

namespace flyball::meter {
namespace {

using testing::HasSubstr;

SnmpValue text_value(const std::string& text) {
  SnmpValue value;
  value.kind = SnmpKind::text;
  value.text = text;
  return value;
}

TEST(SnmpValues, NumbersInTextAndOnlyThose) {
  const PointProfile point;
  EXPECT_DOUBLE_EQ(*snmp_number(text_value(" 2.4 "), point).said, 2.4);
  for (const char* bad : {"2,4", "2.4 A", "", "nan", "\x01\xff", "0x10"}) {
    EXPECT_FALSE(snmp_number(text_value(bad), point).said.ok()) << bad;
  }
}

TEST(SnmpValues, NotAvailableAndNoSuchObjectAreMissing) {
  PointProfile point;
  point.absent = {-1};
  SnmpValue value;
  value.kind = SnmpKind::integer;
  value.integer = -1;
  EXPECT_EQ(snmp_number(value, point).said.status, Status::missing);
  value.kind = SnmpKind::no_instance;
  EXPECT_EQ(snmp_number(value, point).said.status, Status::not_supported);
}

TEST(SnmpValues, DateAndTimeNeedsItsOffset) {
  const std::string octets = {7, static_cast<char>(0xea), 1, 2, 3, 4, 5, 6, '+', 1, 30};
  EXPECT_EQ(*date_and_time(octets), *parse_rfc3339("2026-01-02T03:04:05.6+01:30"));
  EXPECT_FALSE(date_and_time(octets.substr(0, 8)));
  EXPECT_FALSE(date_and_time("now"));
  EXPECT_FALSE(date_and_time(std::string(11, '\xff')));
}

TEST(SnmpValues, Oids) {
  EXPECT_EQ(parse_oid(".1.3.6"), (std::vector<std::uint64_t>{1, 3, 6}));
  for (const char* bad : {"", "1", "1.3.x", "1..3", "sysDescr.0", "1.3.4294967296"})
    EXPECT_TRUE(parse_oid(bad).empty()) << bad;
}

/// Debian's agent with a made-up PDU: deci-amps, ×10 volts, text, a sentinel.
class Snmpd : public testing::Test {
 protected:
  static constexpr const char* kProgram = "/usr/sbin/snmpd";
  static constexpr const char* kBase = "1.3.6.1.4.1.8072.9999.1";

  void SetUp() override {
#if !FLYBALL_WITH_NETSNMP
    GTEST_SKIP() << "this build has no SNMP (Debian package libsnmp-dev)";
#endif
    if (!has_program(kProgram)) GTEST_SKIP() << "no " << kProgram << " (Debian package snmpd)";
    write_file(folder_.file("pdu"), R"(#!/bin/sh
echo "$2"
case "$2" in
  *.1) echo gauge; echo 23 ;;
  *.2) echo integer; echo 2301 ;;
  *.3) echo string; echo 512.5 ;;
  *.4) echo integer; echo -1 ;;
  *) exit 0 ;;
esac
)");
    ::chmod(folder_.file("pdu").c_str(), 0755);
    port_ = free_port(SOCK_DGRAM);
    write_file(folder_.file("snmpd.conf"),
               "agentAddress udp:127.0.0.1:" + std::to_string(port_) +
                   "\nrocommunity wattsup 127.0.0.1\ncreateUser meterreader SHA-256 authphrase AES privphrase\n"
                   "rouser meterreader priv\nsysName pdu-7\npass ." +
                   kBase + " " + folder_.file("pdu") + "\n");
    ::setenv("SNMP_PERSISTENT_DIR", folder_.path().c_str(), 1);
    ::setenv("FLYBALL_TEST_COMMUNITY", "wattsup", 1);
    ::setenv("FLYBALL_TEST_AUTH", "authphrase", 1);
    ::setenv("FLYBALL_TEST_PRIVACY", "privphrase", 1);
    agent_ = std::make_unique<Peer>(std::vector<std::string>{kProgram, "-f", "-Lf", folder_.file("log"), "-C", "-c",
                                                             folder_.file("snmpd.conf"), "-I", "-smux"});
    ::unsetenv("SNMP_PERSISTENT_DIR");
    ASSERT_TRUE(Peer::wait_until([&] { return (*open_meter(profile(), clock_))->read()[0].value.ok(); }))
        << system_filesystem().read(folder_.file("log"), 10'000).value_or("no log");
  }

  Profile profile(const std::string& access = "password_env = \"FLYBALL_TEST_COMMUNITY\"\n") {
    const auto point = [](const std::string& name, const std::string& rest) {
      return "[point." + name + "]\noid = \"" + kBase + rest;
    };
    const auto made = parse_profile(
        "[meter]\nid = \"pdu\"\nprotocol = \"snmp\"\nsource = \"test\"\ntimeout = \"1s\"\naddress = \"127.0.0.1:" +
            std::to_string(port_) + "\"\n" + access + point("a", ".1\"\nquantity = \"current\"\nunit = \"dA\"\n") +
            point("b", ".2\"\nquantity = \"voltage\"\nunit = \"V\"\nscale = 0.1\n") +
            point("c", ".3\"\nquantity = \"power\"\nunit = \"W\"\n") +
            point("d", ".4\"\nquantity = \"power\"\nunit = \"W\"\nabsent = [\"-1\"]\n") +
            point("e", ".77\"\nquantity = \"power\"\nunit = \"W\"\n"),
        "pdu.conf");
    EXPECT_TRUE(made) << made.error().front().message();
    return *made;
  }

  TempDir folder_;
  int port_ = 0;
  std::unique_ptr<Peer> agent_;
  SystemClock clock_;
};

constexpr const char* kVersion3 =
    "snmp_version = 3\nuser = \"meterreader\"\nsnmp_auth = \"SHA-256\"\nsnmp_privacy = "
    "\"AES\"\npassword_env = \"FLYBALL_TEST_AUTH\"\n";

TEST_F(Snmpd, CommunityAndUserReadTheSame) {
  for (const std::string& access : {std::string("password_env = \"FLYBALL_TEST_COMMUNITY\"\n"),
                                    std::string(kVersion3) + "privacy_password_env = \"FLYBALL_TEST_PRIVACY\"\n"}) {
    const auto readings = (*open_meter(profile(access), clock_))->read();
    ASSERT_EQ(readings.size(), 5U);
    EXPECT_DOUBLE_EQ(readings[0].value.value_or(0), 2.3) << readings[0].reason;
    EXPECT_DOUBLE_EQ(readings[1].value.value_or(0), 230.1);
    EXPECT_DOUBLE_EQ(readings[2].value.value_or(0), 512.5) << readings[2].reason;
    EXPECT_EQ(readings[3].value.status, Status::missing);
    EXPECT_EQ(readings[4].value.status, Status::not_supported) << readings[4].reason;
  }
}

TEST_F(Snmpd, WrongPhraseIsFailedAndNeverShown) {
  ::setenv("FLYBALL_TEST_PRIVACY", "wrongphrase", 1);
  const auto readings =
      (*open_meter(profile(std::string(kVersion3) + "privacy_password_env = \"FLYBALL_TEST_PRIVACY\"\n"), clock_))
          ->read();
  EXPECT_EQ(readings[0].value.status, Status::failed);
  EXPECT_EQ(readings[0].reason.find("phrase"), std::string::npos) << readings[0].reason;
}

TEST_F(Snmpd, IdentityAndClock) {
  auto meter = *open_meter(profile(), clock_);
  const auto identity = meter->identify();
  ASSERT_TRUE(identity) << identity.error().message();
  EXPECT_THAT(identity->text(), HasSubstr("serial pdu-7"));
  const auto clock = meter->device_clock();
  if (clock) {
    EXPECT_LT(std::abs((clock->device - clock->reader).value()), 60);
  } else {
    EXPECT_FALSE(clock.error().what.empty());
  }
}

TEST_F(Snmpd, GoneIsFailedForEveryPoint) {
  auto meter = *open_meter(profile(), clock_);
  agent_->stop();
  for (const MeterReading& reading : meter->read()) {
    EXPECT_EQ(reading.value.status, Status::failed);
    EXPECT_THAT(reading.reason, HasSubstr("127.0.0.1"));
  }
}

}  // namespace
}  // namespace flyball::meter
