#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/temp_dir.h"
#include "meter/open.h"
#include "meter/peer_test_support.h"
#include "meter/prometheus/api.h"
#include "meter/prometheus/prometheus_meter.h"

namespace flyball::meter {
namespace {

using testing::HasSubstr;

std::string matrix(const std::string& series) {
  return R"({"status":"success","data":{"resultType":"matrix","result":[)" + series + "]}}";
}
std::string one(const std::string& labels, const std::string& values) {
  return R"({"metric":{)" + labels + R"(},"values":[)" + values + "]}";
}

TEST(PrometheusApi, RawSamplesWithTheirOwnTimes) {
  const auto all = decode_matrix(matrix(one(R"("uuid":"GPU-1")", R"([1767225600.25,"12.5"],[1767225601,"NaN"])")));
  ASSERT_TRUE(all) << all.error().message();
  ASSERT_EQ(all->front().samples.size(), 2U);
  EXPECT_EQ(all->front().samples[0].at, *parse_rfc3339("2026-01-01T00:00:00.250Z"));
  EXPECT_DOUBLE_EQ(all->front().samples[0].value, 12.5);
  EXPECT_TRUE(std::isnan(all->front().samples[1].value));
}

TEST(PrometheusApi, WhatIsNoAnswerIsRefused) {
  for (const std::string& body :
       {std::string("<html>"), std::string("[]"), std::string("{\"status\":\"success\"}"),
        std::string(R"({"status":"success","data":{"resultType":"vector","result":[]}})"),
        matrix(one("", R"([2,"1"],[1,"1"])")), matrix(one("", "[1]")), matrix("{}"), matrix("7")}) {
    EXPECT_FALSE(decode_matrix(body)) << body;
  }
  EXPECT_THAT(decode_matrix(R"({"status":"error","error":"parse error"})").error().what, HasSubstr("parse error"));
}

TEST(PrometheusApi, ACommaIsNoDecimalPoint) {
  const auto all = decode_matrix(matrix(one("", R"([1,"0,16"])")));
  EXPECT_TRUE(std::isnan(all->front().samples[0].value));
}

TEST(PrometheusApi, SeveralSeriesSayWhereTheyDiffer) {
  auto all = decode_matrix(
      matrix(one(R"("uuid":"A","host":"n")", "[1,\"1\"]") + "," + one(R"("uuid":"B","host":"n")", "[1,\"1\"]")));
  const auto single = only_series(*all);
  ASSERT_FALSE(single);
  EXPECT_THAT(single.error().what, HasSubstr("2 series, which differ in uuid"));
}

class PrometheusServer : public testing::Test {
 protected:
#if !FLYBALL_WITH_CURL
  void SetUp() override { GTEST_SKIP() << "this build has no HTTP (Debian package libcurl4-openssl-dev)"; }
#endif
  void start(const std::string& body) {
    write_file(folder_.file("_api_v1_query"), body);
    peer_ =
        std::make_unique<Peer>(std::vector<std::string>{"python3", "-B", "tests/peers/http_peer.py", folder_.path()});
    address_ = "http://127.0.0.1:" + peer_->line();
  }
  Profile profile(const std::string& extra = "") {
    const auto made =
        parse_profile("[meter]\nid = \"GPU-ab\"\nprotocol = \"prometheus\"\nsource = \"test\"\naddress = \"" +
                          address_ + "\"\ntimeout = \"10s\"\n" + extra +
                          "[point.p]\nquantity = \"power\"\nunit = \"W\"\nselector = \"node_watts{uuid='A'}\"\n",
                      "p.conf");
    EXPECT_TRUE(made);
    return *made;
  }
  TempDir folder_;
  std::unique_ptr<Peer> peer_;
  std::string address_;
  VirtualClock clock_{*parse_rfc3339("2026-01-01T00:00:50Z")};
};

TEST_F(PrometheusServer, ActsOnTheTimeOfMeasurement) {
  start(matrix(one("", R"([1767225600,"300"],[1767225610,"310"])")));
  auto meter = open_meter(profile(), clock_);
  ASSERT_TRUE(meter) << meter.error().message();
  const auto reading = (*meter)->read()[0];
  ASSERT_TRUE(reading.value.ok()) << reading.reason;
  EXPECT_DOUBLE_EQ(*reading.value, 310);
  EXPECT_EQ(reading.measured, *parse_rfc3339("2026-01-01T00:00:10Z"));
  EXPECT_EQ(reading.clock, TimeSource::device);
  EXPECT_THAT(*system_filesystem().read(folder_.file("requests"), 10'000),
              HasSubstr("query=node_watts%7Buuid%3D%27A%27%7D%5B300000ms%5D&time=2026-01-01T00%3A00%3A50.000Z"));
}

TEST_F(PrometheusServer, FortySecondsLateIsStaleWhereThatIsTooOld) {
  start(matrix(one("", R"([1767225610,"310"])")));
  const auto reading = (*open_meter(profile("stale_after = \"30s\"\n"), clock_))->read()[0];
  EXPECT_EQ(reading.value.status, Status::stale);
  EXPECT_EQ(reading.reason, "measured 40.00 s ago");
}

TEST_F(PrometheusServer, NoSeriesIsMissingAndNaNToo) {
  start(matrix(""));
  EXPECT_EQ((*open_meter(profile(), clock_))->read()[0].value.status, Status::missing);
  write_file(folder_.file("_api_v1_query"), matrix(one("", R"([1767225610,"+Inf"])")));
  EXPECT_EQ((*open_meter(profile(), clock_))->read()[0].value.status, Status::missing);
}

TEST_F(PrometheusServer, AHangingServerIsFailedInTime) {
  start(matrix(""));
  address_ += "/slow";
  Profile slow = profile();
  slow.timeout = Seconds(0.3);
  SystemClock clock;
  const auto reading = (*open_meter(slow, clock))->read()[0];
  EXPECT_EQ(reading.value.status, Status::failed);
  EXPECT_THAT(reading.reason, HasSubstr("imeout"));
}

TEST_F(PrometheusServer, AnAnswerWithoutEndIsGivenUp) {
  start(matrix(""));
  address_ += "/huge";
  const auto reading = (*open_meter(profile(), clock_))->read()[0];
  EXPECT_EQ(reading.value.status, Status::failed);
  EXPECT_THAT(reading.reason, HasSubstr("larger than 16 MiB"));
}

TEST_F(PrometheusServer, BackFillKeepsHolesAndStamps) {
  start(matrix(one("", R"([1767225600,"1"],[1767225610,"2"],[1767225620,"NaN"],[1767225900,"3"],[1767229200,"4"])")));
  auto meter = make_prometheus_meter(profile(), clock_);
  const auto start = *parse_rfc3339("2026-01-01T00:00:00Z");
  const auto series = (*meter)->fill(profile().points[0], {start, start + Seconds(3600)});
  ASSERT_TRUE(series) << series.error().message();
  ASSERT_EQ(series->points.size(), 4U);  // the last is at the end of the half-open interval
  EXPECT_EQ(series->points[2].status, Status::missing);
  EXPECT_EQ(series->points[3].at - series->points[2].at, Seconds(280));
  EXPECT_EQ(series->key.signal, Signal::power_average);
}

/// Debian's own server, which scrapes itself.
TEST(PrometheusDebian, LiveAndBackFill) {
#if !FLYBALL_WITH_CURL
  GTEST_SKIP() << "this build has no HTTP (Debian package libcurl4-openssl-dev)";
#endif
  if (!has_program("/usr/bin/prometheus")) GTEST_SKIP() << "no /usr/bin/prometheus (Debian package prometheus)";
  const TempDir folder;
  const std::string port = std::to_string(free_port(SOCK_STREAM));
  write_file(folder.file("p.yml"),
             "global:\n  scrape_interval: 1s\nscrape_configs:\n- job_name: self\n  "
             "static_configs:\n  - targets: ['127.0.0.1:" +
                 port + "']\n");
  Peer server({"/usr/bin/prometheus", "--config.file=" + folder.file("p.yml"),
               "--storage.tsdb.path=" + folder.file("d"), "--web.listen-address=127.0.0.1:" + port,
               "--log.level=error"});
  const auto profile = parse_profile(
      "[meter]\nid = \"self\"\nprotocol = \"prometheus\"\nsource = \"test\"\naddress = \"http://127.0.0.1:" + port +
          "\"\n[point.up]\nquantity = \"state\"\nunit = \"\"\nselector = \"up{job='self'}\"\n",
      "p.conf");
  SystemClock clock;
  auto meter = *make_prometheus_meter(*profile, clock);
  MeterReading reading;
  ASSERT_TRUE(Peer::wait_until([&] { return (reading = meter->read()[0]).value.ok(); })) << reading.reason;
  EXPECT_EQ(*reading.value, 1);
  EXPECT_EQ(reading.clock, TimeSource::device);
  const auto series = meter->fill(profile->points[0], {reading.measured, reading.measured + Seconds(0.001)});
  ASSERT_TRUE(series) << series.error().message();
  ASSERT_EQ(series->points.size(), 1U);
  EXPECT_EQ(series->points[0].at, reading.measured);
}

}  // namespace
}  // namespace flyball::meter
