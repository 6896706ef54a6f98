#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/temp_dir.h"
#include "meter/open.h"
#include "meter/peer_test_support.h"
#include "meter/redfish/discover.h"
#include "meter/redfish/resource.h"

namespace flyball::meter {
namespace {

using testing::HasSubstr;

constexpr const char* kPower = R"({"PowerControl":[
 {"PowerConsumedWatts":344,"Status":{"State":"Enabled"}},
 {"PowerConsumedWatts":0,"Status":{"State":"Absent"}},
 {"PowerConsumedWatts":null}]})";
constexpr const char* kEnvironment = R"({"PowerWatts":{"Reading":512.5},"EnergykWh":{"Reading":12}})";
constexpr const char* kSensor = R"({"Reading":23.5,"ReadingUnits":"Cel","ReadingTime":"2026-01-01T00:00:10Z",
 "Status":{"State":"Enabled"}})";

TEST(RedfishValues, ANumberUnderADeviceThatIsAbsentIsNone) {
  EXPECT_DOUBLE_EQ(*redfish_value(kPower, "/PowerControl/0/PowerConsumedWatts").said, 344);
  const auto absent = redfish_value(kPower, "/PowerControl/1/PowerConsumedWatts");
  EXPECT_EQ(absent.said.status, Status::missing);
  EXPECT_THAT(absent.reason, HasSubstr("Absent: absent, not 0"));
  EXPECT_EQ(redfish_value(kPower, "/PowerControl/2/PowerConsumedWatts").said.status, Status::missing);
  EXPECT_EQ(redfish_value(kPower, "/PowerControl/3/PowerConsumedWatts").said.status, Status::not_supported);
}

TEST(RedfishValues, NewGenerationWithUnitAndTime) {
  EXPECT_DOUBLE_EQ(*redfish_value(kEnvironment, "/PowerWatts/Reading").said, 512.5);
  const auto sensor = redfish_value(kSensor, "/Reading");
  EXPECT_EQ(sensor.unit, "degC");
  EXPECT_EQ(sensor.at, parse_rfc3339("2026-01-01T00:00:10Z").value());
}

TEST(RedfishValues, WhatIsNoNumberOrNoJson) {
  EXPECT_EQ(redfish_value(R"({"a":"12"})", "/a").said.status, Status::garbage);
  EXPECT_EQ(redfish_value("<html>", "/a").said.status, Status::failed);
  EXPECT_EQ(redfish_value("{}", "a").said.status, Status::failed);
  EXPECT_DOUBLE_EQ(*redfish_value(R"({"a/b":{"~":1}})", "/a~1b/~0").said, 1);
}

/// An authority, and a certificate of it for 127.0.0.1, made for the test.
class RedfishService : public testing::Test {
 protected:
  void SetUp() override {
#if !FLYBALL_WITH_CURL
    GTEST_SKIP() << "this build has no HTTP (Debian package libcurl4-openssl-dev)";
#endif
    if (!has_program("/usr/bin/openssl")) GTEST_SKIP() << "no /usr/bin/openssl (Debian package openssl)";
    const auto file = [&](const char* name) { return folder_.file(name); };
    write_file(file("san"), "subjectAltName=IP:127.0.0.1\n");
    const std::vector<std::vector<std::string>> steps = {
        {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
         file("ca.key"), "-out", file("ca.pem"), "-subj", "/CN=flyball test authority", "-days", "2"},
        {"openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
         file("bmc.key"), "-out", file("bmc.csr"), "-subj", "/CN=bmc"},
        {"openssl", "x509", "-req", "-in", file("bmc.csr"), "-CA", file("ca.pem"), "-CAkey", file("ca.key"),
         "-CAcreateserial", "-out", file("bmc.pem"), "-days", "2", "-extfile", file("san")}};
    for (const auto& step : steps) ASSERT_EQ(run_to_end(step), 0) << step[1];
    write_file(file("_redfish_v1_Chassis_1_Power"), kPower);
    write_file(file("_redfish_v1_Chassis_1_EnvironmentMetrics"), kEnvironment);
    write_file(file("_redfish_v1_Chassis_1_Sensors_Inlet"), kSensor);
    write_file(file("_redfish_v1"), R"({"Vendor":"Acme","Product":"BMC 9","UUID":"u-1","RedfishVersion":"1.15.0"})");
    write_file(file("_redfish_v1_Managers"), R"({"Members":[{"@odata.id":"/redfish/v1/Managers/bmc"}]})");
    write_file(file("_redfish_v1_Managers_bmc"), R"({"DateTime":"2026-01-01T00:01:00+00:00"})");
    ::setenv("FLYBALL_TEST_BMC", "hunter2", 1);
    peer_ = std::make_unique<Peer>(std::vector<std::string>{"python3", "-B", "tests/peers/http_peer.py", folder_.path(),
                                                            file("bmc.pem"), file("bmc.key"), "reader:hunter2"});
    port_ = peer_->line();
  }
  Profile profile(const std::string& extra) {
    const auto point = [](const std::string& name, const std::string& path, const std::string& pointer,
                          const std::string& what) {
      return "[point." + name + "]\npath = \"/redfish/v1/Chassis/1/" + path + "\"\npointer = \"" + pointer + "\"\n" +
             what;
    };
    const std::string watts = "quantity = \"power\"\nunit = \"W\"\n";
    const auto made = parse_profile(
        "[meter]\nid = \"bmc\"\nprotocol = \"redfish\"\nsource = \"test\"\nscope = \"node_ac\"\ntimeout = \"20s\"\n"
        "user = \"reader\"\npassword_env = \"FLYBALL_TEST_BMC\"\naddress = \"https://127.0.0.1:" +
            port_ + "\"\n" + extra + point("a", "Power", "/PowerControl/0/PowerConsumedWatts", watts) +
            point("b", "Power", "/PowerControl/1/PowerConsumedWatts", watts) +
            point("c", "EnvironmentMetrics", "/PowerWatts/Reading", watts) +
            point("d", "Sensors/Inlet", "/Reading", "quantity = \"temperature\"\nunit = \"degC\"\n") +
            point("e", "Sensors/Inlet", "/Reading", "quantity = \"temperature\"\nunit = \"degF\"\n") +
            point("f", "PowerSubsystem", "/Reading", watts),
        "bmc.conf");
    EXPECT_TRUE(made) << made.error().front().message();
    return *made;
  }
  Profile trusted() { return profile("ca_file = \"" + folder_.file("ca.pem") + "\"\n"); }

  TempDir folder_;
  std::unique_ptr<Peer> peer_;
  std::string port_;
  VirtualClock clock_{*parse_rfc3339("2026-01-01T00:00:20Z")};
};

TEST_F(RedfishService, BothGenerationsEachResourceOnce) {
  auto meter = open_meter(trusted(), clock_);
  ASSERT_TRUE(meter) << meter.error().message();
  const auto readings = (*meter)->read();
  EXPECT_DOUBLE_EQ(readings[0].value.value_or(0), 344) << readings[0].reason;
  EXPECT_EQ(readings[1].value.status, Status::missing);
  EXPECT_DOUBLE_EQ(readings[2].value.value_or(0), 512.5);
  EXPECT_DOUBLE_EQ(readings[3].value.value_or(0), 23.5);
  EXPECT_EQ(readings[3].measured, *parse_rfc3339("2026-01-01T00:00:10Z"));
  EXPECT_EQ(readings[3].clock, TimeSource::device);
  EXPECT_THAT(readings[4].reason, HasSubstr("the service says degC and the profile degF"));
  EXPECT_EQ(readings[5].value.status, Status::not_supported);
  const std::string requests = *system_filesystem().read(folder_.file("requests"), 10'000);
  EXPECT_EQ(std::count(requests.begin(), requests.end(), '\n'), 4) << requests;
}

TEST_F(RedfishService, ACertificateOfNobodyIsRefusedAndNothingIsSent) {
  const auto readings = (*open_meter(profile(""), clock_))->read();
  EXPECT_EQ(readings[0].value.status, Status::failed);
  EXPECT_THAT(readings[0].reason, HasSubstr("not one to trust"));
  EXPECT_FALSE(system_filesystem().exists(folder_.file("requests")));
}

TEST_F(RedfishService, AnotherNameThanTheCertificatesIsRefused) {
  Profile other = trusted();
  other.address = "https://localhost:" + port_;
  EXPECT_EQ((*open_meter(other, clock_))->read()[0].value.status, Status::failed);
  EXPECT_FALSE(system_filesystem().exists(folder_.file("requests")));
}

TEST_F(RedfishService, AWrongPasswordIsNamedAndNotShown) {
  ::setenv("FLYBALL_TEST_BMC", "wrongword", 1);
  const auto reading = (*open_meter(trusted(), clock_))->read()[0];
  EXPECT_THAT(reading.reason, HasSubstr("answered 401; check meter.user and its password"));
  EXPECT_EQ(reading.reason.find("wrongword"), std::string::npos);
}

TEST_F(RedfishService, IdentityAndClock) {
  auto meter = *open_meter(trusted(), clock_);
  EXPECT_EQ(meter->identify()->text(), "Acme BMC 9 serial u-1 firmware 1.15.0");
  const auto clock = meter->device_clock();
  ASSERT_TRUE(clock) << clock.error().message();
  EXPECT_DOUBLE_EQ((clock->device - clock->reader).value(), 40);
}

/// A service in memory: path → body.
class RedfishWalk : public testing::Test {
 protected:
  Discovery walk(const DiscoverLimits& limits = {}) {
    const auto fetch = [&](const std::string& path, Seconds) -> Result<std::string> {
      ++asked_[path];
      clock_.advance(cost_);
      const auto found = service_.find(path);
      if (found == service_.end()) return fail(ErrorCode::unsupported, "answered 404", path);
      return found->second;
    };
    const auto made = discover(fetch, clock_, Seconds(2), limits);
    EXPECT_TRUE(made);
    return made.value_or(Discovery{});
  }
  static std::string link(const std::string& key, const std::string& path) {
    return '"' + key + R"(":{"@odata.id":")" + path + "\"}";
  }
  void SetUp() override {
    service_["/redfish/v1/"] =
        "{" + link("Chassis", "/redfish/v1/Chassis") + "," + link("Systems", "/redfish/v1/Systems") + "}";
    service_["/redfish/v1/Chassis"] = R"({"Members":[{"@odata.id":"/redfish/v1/Chassis/1"}]})";
    service_["/redfish/v1/Chassis/1"] = "{" + link("Power", "/redfish/v1/Chassis/1/Power") + "," +
                                        link("EnvironmentMetrics", "/redfish/v1/Chassis/1/EnvironmentMetrics") + "," +
                                        link("Sensors", "/redfish/v1/Chassis/1/Sensors") + "}";
    service_["/redfish/v1/Chassis/1/Power"] = kPower;
    service_["/redfish/v1/Chassis/1/EnvironmentMetrics"] =
        R"({"PowerWatts":{"Reading":512.5,"DataSourceUri":"/redfish/v1/Chassis/1/Sensors/Power"},"EnergykWh":{"Reading":12}})";
    service_["/redfish/v1/Chassis/1/Sensors"] =
        R"({"Members":[{"@odata.id":"/redfish/v1/Chassis/1/Sensors/Inlet"},{"@odata.id":"/redfish/v1/Chassis/1/Sensors/Power"},
            {"@odata.id":"/redfish/v1/Chassis/1/Sensors/Fan"}]})";
    service_["/redfish/v1/Chassis/1/Sensors/Inlet"] = kSensor;
    service_["/redfish/v1/Chassis/1/Sensors/Power"] = R"({"Reading":512.5,"ReadingUnits":"W"})";
    service_["/redfish/v1/Chassis/1/Sensors/Fan"] = R"({"Reading":4000,"ReadingUnits":"RPM"})";
  }
  std::map<std::string, std::string> service_;
  std::map<std::string, int> asked_;
  VirtualClock clock_;
  Seconds cost_{0.01};
};

TEST_F(RedfishWalk, GivesWhatSaysANumberNow) {
  const Discovery made = walk();
  std::vector<std::string> lines;
  for (const PointProfile& point : made.points)
    lines.push_back(point.name + ' ' + point.path.substr(20) + ' ' + point.pointer + ' ' + point.unit);
  EXPECT_THAT(lines,
              testing::ElementsAre(
                  "Chassis_1_Power_PowerControl_0_PowerConsumedWatts 1/Power /PowerControl/0/PowerConsumedWatts W",
                  "Chassis_1_EnvironmentMetrics_EnergykWh 1/EnvironmentMetrics /EnergykWh/Reading kWh",
                  "Chassis_1_EnvironmentMetrics_PowerWatts 1/EnvironmentMetrics /PowerWatts/Reading W",
                  "Chassis_1_Sensors_Inlet 1/Sensors/Inlet /Reading degC"))
      << "absent and null are none; the sensor of PowerWatts is not told twice; a fan is no power";
  EXPECT_EQ(asked_.count("/redfish/v1/Systems"), 0U);
  EXPECT_TRUE(made.notes.empty());
}

TEST_F(RedfishWalk, FollowsNoLinkToElsewhereAndNoneTwice) {
  service_["/redfish/v1/Chassis"] =
      R"({"Members":[{"@odata.id":"/redfish/v1/Chassis"},{"@odata.id":"https://evil/redfish/v1/x"},
      {"@odata.id":"//evil/x"},{"@odata.id":"/redfish/v1/../../etc"},{"@odata.id":"@evil/"},{"@odata.id":7},{"@odata.id":"/redfish/v1/a b"},
      {"@odata.id":"/redfish/v1/Chassis/1"},{"@odata.id":"/redfish/v1/Chassis/1"}]})";
  const Discovery made = walk();
  EXPECT_EQ(made.points.size(), 4U);
  EXPECT_EQ(made.notes.size(), 5U);
  for (const auto& [path, times] : asked_) {
    EXPECT_TRUE(path.starts_with("/redfish/v1")) << path;
    EXPECT_EQ(times, 1) << path;
  }
}

TEST_F(RedfishWalk, IsBoundedInDepthNumberAndTime) {
  for (int i = 1; i < 10'000; ++i) {  // a service without end
    const std::string path = "/redfish/v1/Chassis/" + std::to_string(i);
    service_[path] = "{" + link("Power", "/redfish/v1/Chassis/" + std::to_string(2 * i)) + "," +
                     link("Thermal", "/redfish/v1/Chassis/" + std::to_string(2 * i + 1)) + "}";
  }
  EXPECT_LE(walk({1000, 5, Seconds(1000)}).resources, 2U + 15U);
  EXPECT_EQ(walk({50, 100, Seconds(1000)}).resources, 50U);
  cost_ = Seconds(1);
  const Discovery slow = walk({1000, 100, Seconds(10)});
  EXPECT_EQ(slow.resources, 10U);
  EXPECT_THAT(slow.notes, testing::Contains(HasSubstr("no time left after 10")));
  service_["/redfish/v1/Chassis/1"] = std::string(2 << 20, ' ');
  EXPECT_THAT(walk().notes, testing::Contains(HasSubstr("too many")));
}

TEST_F(RedfishService, WhatAWalkFindsIsAProfileThatReads) {
  write_file(folder_.file("_redfish_v1"), R"({"Chassis":{"@odata.id":"/redfish/v1/Chassis"}})");
  write_file(folder_.file("_redfish_v1_Chassis"), R"({"Members":[{"@odata.id":"/redfish/v1/Chassis/1"}]})");
  write_file(folder_.file("_redfish_v1_Chassis_1"),
             R"({"Power":{"@odata.id":"/redfish/v1/Chassis/1/Power"},
                 "EnvironmentMetrics":{"@odata.id":"/redfish/v1/Chassis/1/EnvironmentMetrics"}})");
  Profile found = trusted();
  auto made = discover_redfish(found, clock_);
  ASSERT_TRUE(made) << made.error().message();
  found.points = made->points;
  const auto again = parse_profile(profile_text(found), "found.conf");
  ASSERT_TRUE(again) << again.error().front().message();
  const auto readings = (*open_meter(*again, clock_))->read();
  ASSERT_EQ(readings.size(), 3U);
  for (const MeterReading& reading : readings) EXPECT_TRUE(reading.value.ok()) << reading.point << reading.reason;
}

}  // namespace
}  // namespace flyball::meter
