#include "guard/protocol.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace flyball::guard {
namespace {

Request round_trip(const Request& request) {
  std::uint64_t id = 0;
  const auto parsed = parse_request(encode(request), id);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message());
  EXPECT_EQ(id, request.id);
  return parsed.value_or(Request{});
}

TEST(Protocol, RequestsComeThrough) {
  Request acquire;
  acquire.id = 7;
  acquire.verb = Verb::acquire;
  acquire.acquire = {LeaseKind::budget, Authority::fleet, {DeviceId::of("GPU-a")}, Seconds(2.5), "why \"so\"", true};
  const Request back = round_trip(acquire);
  EXPECT_EQ(back.verb, Verb::acquire);
  EXPECT_EQ(back.acquire.kind, LeaseKind::budget);
  EXPECT_EQ(back.acquire.authority, Authority::fleet);
  EXPECT_EQ(back.acquire.devices, acquire.acquire.devices);
  EXPECT_EQ(back.acquire.time_to_live, Seconds(2.5));
  EXPECT_EQ(back.acquire.purpose, "why \"so\"");
  EXPECT_TRUE(back.acquire.sticky);

  Request write;
  write.verb = Verb::write;
  write.lease = (3ULL << 32) + 1;
  write.writes = {{DeviceId::of("GPU-a"), Milliwatts(287'123), {}},
                  {DeviceId::of("GPU-b"), {}, ClockRange{Hertz(1.2e9), Hertz(1.41e9)}},
                  {DeviceId::of("GPU-c"), {}, {}, true}};
  const Request written = round_trip(write);
  EXPECT_EQ(written.lease, write.lease);
  ASSERT_EQ(written.writes.size(), 3u);
  EXPECT_EQ(written.writes[0].power_limit, Milliwatts(287'123));
  EXPECT_EQ(written.writes[1].locked_clocks, write.writes[1].locked_clocks);
  EXPECT_FALSE(written.writes[1].unlock_clocks);
  EXPECT_TRUE(written.writes[2].unlock_clocks);
}

TEST(Protocol, WritesOfAnotherVerbAreNone) {
  std::uint64_t id = 0;
  const auto hello =
      parse_request(R"({"v":1,"id":2,"verb":"hello","writes":[{"device":"GPU-a","power_limit_mw":2999}]})", id);
  ASSERT_TRUE(hello);
  EXPECT_TRUE(hello->writes.empty());
}

TEST(Protocol, LimitsAreWholeMilliwatts) {
  std::uint64_t id = 0;
  const auto request =
      parse_request(R"({"v":1,"verb":"write","lease":1,"writes":[{"device":"GPU-a","power_limit_mw":287.5}]})", id);
  ASSERT_FALSE(request);
  EXPECT_NE(request.error().what.find("whole milliwatts"), std::string::npos);
}

TEST(Protocol, AnyTextIsAnErrorOrARequest) {
  rc::check("never crashes", [](const std::string& text) {
    std::uint64_t id = 0;
    (void)parse_request(text, id);
    (void)parse_response(text);
  });
}

TEST(Protocol, ResponsesComeThrough) {
  Response response;
  response.id = 3;
  response.writes = {{DeviceId::of("GPU-a"), WriteState::deferred, Milliwatts(1), Milliwatts(2),
                      Sample<Milliwatts>::absent(Status::lost), "dwell"}};
  response.restores = {{DeviceId::of("GPU-b"), true, false, Milliwatts(5), Milliwatts(6), "x"}};
  const auto back = parse_response(encode(response));
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(back->writes.front().state, WriteState::deferred);
  EXPECT_FALSE(back->writes.front().enforced.ok());
  EXPECT_TRUE(back->restores.front().restored);
  EXPECT_EQ(*back->restores.front().now, Milliwatts(6));
  Response failed;
  failed.error = Error{ErrorCode::refused, "what", "where", "remedy"};
  EXPECT_EQ(*parse_response(encode(failed))->error, *failed.error);
}

}  // namespace
}  // namespace flyball::guard
