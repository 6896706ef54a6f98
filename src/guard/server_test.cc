#include "guard/server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <future>
#include <nlohmann/json.hpp>

#include "base/temp_dir.h"
#include "guard/client.h"
#include "guard/engine_test_support.h"

namespace flyball::guard {
namespace {

using nlohmann::json;

/// A client of bare sockets: the test decides when the server looks.
class RawClient {
 public:
  explicit RawClient(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(path.begin(), path.end(), address.sun_path);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  void send(std::string_view text) {
    EXPECT_EQ(::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT),
              static_cast<ssize_t>(text.size()));
  }
  /// Empty when nothing is there; "closed" when the server hung up.
  std::string receive() {
    char block[1 << 16];
    const ssize_t n = ::recv(socket_.get(), block, sizeof block, MSG_DONTWAIT);
    if (n == 0) return "closed";
    return n < 0 ? "" : std::string(block, static_cast<std::size_t>(n));
  }
  void close() { socket_ = Descriptor(); }
  int get() const { return socket_.get(); }

 private:
  Descriptor socket_;
};

class ServerTest : public EngineTest {
 protected:
  ServerTest() {
    start();
    options.path = folder.file("guard.sock");
  }
  void listen() {
    server.reset();
    auto listening = Server::listen(*engine, clock, options);
    ASSERT_TRUE(listening) << (listening ? "" : listening.error().message());
    server = *std::move(listening);
  }
  json ask(RawClient& client, const std::string& line) {
    client.send(line + "\n");
    server->turn(Seconds(0));
    server->turn(Seconds(0));
    return json::parse(client.receive(), nullptr, false);
  }
  json acquire(RawClient& client, const char* authority = "job") {
    return ask(client, std::string(R"({"v":1,"id":1,"verb":"acquire","kind":"saving","authority":")") + authority +
                           R"(","devices":["GPU-a","GPU-b"],"purpose":"test","future_field":[1]})");
  }
  json write(RawClient& client, const json& lease, int milliwatts) {
    return ask(client, json{{"v", 1},
                            {"id", 2},
                            {"verb", "write"},
                            {"lease", lease},
                            {"writes", {{{"device", "GPU-a"}, {"power_limit_mw", milliwatts}}}}}
                           .dump());
  }

  TempDir folder;
  ServerOptions options;
  std::unique_ptr<Server> server;
};

TEST_F(ServerTest, LeaseWriteReleaseOverTheSocket) {
  listen();
  struct stat info {};
  ASSERT_EQ(::stat(options.path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660u);
  RawClient client(options.path);
  const json lease = acquire(client);
  ASSERT_EQ(lease["ok"], true) << lease;
  const json written = write(client, lease["lease"], 600000);
  EXPECT_EQ(written["writes"][0]["state"], "applied") << written;
  EXPECT_EQ(requested(a), watts(600));
  const json released = ask(client, json{{"v", 1}, {"id", 3}, {"verb", "release"}, {"lease", lease["lease"]}}.dump());
  EXPECT_EQ(released["restores"][0]["restored"], true) << released;
  EXPECT_EQ(requested(a), watts(700));
}

TEST_F(ServerTest, AClosedSocketGivesBackAtOnce) {
  listen();
  RawClient client(options.path);
  write(client, acquire(client)["lease"], 600000);
  ASSERT_EQ(requested(a), watts(600));
  client.close();
  server->turn(Seconds(0));
  EXPECT_EQ(requested(a), watts(700));
  EXPECT_EQ(server->clients(), 0u);
}

TEST_F(ServerTest, AnExitedProcessGivesBackAlthoughItsSocketIsOpenElsewhere) {
  listen();
  int leave[2];  // closing its end lets the child exit
  int stay[2];   // the same for the grandchild
  ASSERT_EQ(::pipe2(leave, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(stay, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // connects, hands its socket on to a grandchild, and lives until told
    ::close(leave[1]);
    ::close(stay[1]);
    RawClient client(options.path);
    client.send("{\"v\":1,\"id\":1,\"verb\":\"acquire\",\"devices\":[\"GPU-a\"]}\n");
    char byte;
    if (::fork() == 0) {
      (void)!::read(stay[0], &byte, 1);
    } else {
      (void)!::read(leave[0], &byte, 1);
    }
    ::_exit(0);
  }
  for (int i = 0; i < 400 && engine->leases() == 0; ++i) server->turn(Seconds(0.05));
  EXPECT_EQ(engine->leases(), 1u);
  ::close(leave[1]);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  for (int i = 0; i < 400 && engine->leases() != 0; ++i) server->turn(Seconds(0.05));
  EXPECT_EQ(engine->leases(), 0u);
  ::close(stay[1]);
  ::close(leave[0]);
  ::close(stay[0]);
}

TEST_F(ServerTest, HostileLinesAreErrorsAndTheClientStays) {
  listen();
  RawClient client(options.path);
  const std::string deep = "{\"v\":1,\"verb\":\"hello\",\"x\":" + std::string(50, '[') + std::string(50, ']') + "}";
  for (const std::string& line :
       {std::string("nonsense"), std::string("[]"), std::string("{}"), deep,
        std::string(R"({"v":2,"id":1,"verb":"hello"})"), std::string(R"({"v":1,"id":1,"verb":"drop_tables"})"),
        std::string(R"({"v":1,"id":-1,"verb":"hello"})"),
        std::string(R"({"v":1,"id":1,"verb":"acquire","devices":["0"]})"),
        std::string(R"({"v":1,"id":1,"verb":"renew","lease":99})")}) {
    const json answer = ask(client, line);
    EXPECT_EQ(answer["ok"], false) << line << " got " << answer;
    EXPECT_FALSE(answer["error"]["what"].get<std::string>().empty());
  }
  EXPECT_EQ(ask(client, R"({"v":1,"id":7,"verb":"hello"})")["id"], 7);
}

TEST_F(ServerTest, ALineWithoutEndDropsItsClient) {
  listen();
  RawClient client(options.path);
  RawClient other(options.path);
  const std::string block(1 << 16, 'x');
  for (int i = 0; i < 20; ++i) {
    (void)!::send(client.get(), block.data(), block.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    server->turn(Seconds(0));
  }
  EXPECT_EQ(server->clients(), 1u);
  EXPECT_EQ(ask(other, R"({"v":1,"id":1,"verb":"hello"})")["ok"], true);
}

TEST_F(ServerTest, AClientThatDoesNotReadIsDropped) {
  options.longest_output = 100'000'000;
  listen();
  RawClient client(options.path);
  std::string many;
  for (int i = 0; i < 2000; ++i) many += "{\"v\":1,\"id\":1,\"verb\":\"status\"}\n";
  client.send(many);
  server->turn(Seconds(0));
  server->turn(Seconds(0));
  EXPECT_EQ(server->clients(), 1u);
  clock.advance(Seconds(6));
  server->turn(Seconds(0));
  EXPECT_EQ(server->clients(), 0u);
}

TEST_F(ServerTest, TooManyClientsAreTurnedAway) {
  options.most_clients = 2;
  listen();
  RawClient first(options.path), second(options.path), third(options.path);
  server->turn(Seconds(0));
  EXPECT_EQ(third.receive(), "closed");
  EXPECT_EQ(server->clients(), 2u);
}

TEST_F(ServerTest, AuthorityComesFromTheKernelNotFromTheRequest) {
  options.rules.site_uids.clear();
  listen();
  RawClient client(options.path);
  const json refused = acquire(client, "site");
  EXPECT_EQ(refused["error"]["code"], "refused") << refused;
  EXPECT_EQ(acquire(client, "job")["ok"], true);
  EXPECT_EQ(ask(client, R"({"v":1,"id":1,"verb":"lift"})")["ok"], false);
  EXPECT_EQ(ask(client, R"({"v":1,"id":1,"verb":"meter","meter_w":1,"gpu_sum_w":1})")["ok"], false);
  EXPECT_EQ(ask(client, R"({"v":1,"id":1,"verb":"allow","uid":0,"devices":["GPU-a"]})")["ok"], false);
}

TEST_F(ServerTest, AJobAsksOnlyForWhatItsUserIsAllowed) {
  options.rules.require_allowance = true;
  options.rules.site_uids = {::getuid()};
  listen();
  RawClient client(options.path);
  EXPECT_EQ(acquire(client)["ok"], true) << "the site needs no allowance";
  server.reset();
  options.rules.site_uids.clear();
  listen();
  RawClient job(options.path);
  const json refused = acquire(job);
  EXPECT_EQ(refused["error"]["code"], "refused") << refused;
}

TEST_F(ServerTest, ALeaseOfAnotherClientIsRefused) {
  options.rules.site_uids.clear();
  listen();
  RawClient owner(options.path);
  const json lease = acquire(owner)["lease"];
  RawClient thief(options.path);
  EXPECT_EQ(write(thief, lease, 600000)["ok"], false);
  EXPECT_EQ(requested(a), watts(700));
}

TEST_F(ServerTest, AStopLastsForWhoeverLostALeaseByIt) {
  listen();
  RawClient run(options.path);
  RawClient idle(options.path);
  RawClient operator_(options.path);
  write(run, acquire(run)["lease"], 600000);
  ASSERT_EQ(requested(a), watts(600));
  EXPECT_EQ(ask(idle, R"({"v":1,"id":1,"verb":"hello"})")["ok"], true);
  const json stopped = ask(operator_, R"({"v":1,"id":1,"verb":"restore","reason":"stop"})");
  EXPECT_EQ(stopped["restores"].size(), 2u) << stopped;
  EXPECT_EQ(requested(a), watts(700));
  const json again = acquire(run);
  EXPECT_EQ(again["error"]["code"], "refused") << again;
  EXPECT_NE(again["error"]["what"].get<std::string>().find("given back on request (user "), std::string::npos) << again;
  EXPECT_EQ(requested(a), watts(700));
  EXPECT_EQ(acquire(idle)["ok"], true) << "it was not stopped";
  run.close();
  idle.close();
  server->turn(Seconds(0));
  RawClient anew(options.path);
  EXPECT_EQ(acquire(anew)["ok"], true) << "a new run is a new decision";
  EXPECT_EQ(ask(anew, R"({"v":1,"id":1,"verb":"restore","reason":"my own"})")["ok"], true);
  EXPECT_EQ(acquire(anew)["ok"], true) << "whoever stops itself may go on";
}

TEST_F(ServerTest, AnUnrenewedLeaseEndsWhileTheSocketStaysOpen) {
  listen();
  RawClient client(options.path);
  write(client, acquire(client)["lease"], 600000);
  clock.advance(Seconds(10.5));
  server->turn(Seconds(0));
  EXPECT_EQ(requested(a), watts(700));
}

TEST_F(ServerTest, TheClientIsALimitAuthority) {
  listen();
  std::atomic<bool> done = false;
  auto used = std::async(std::launch::async, [&]() -> Result<> {
    const auto finish = [&](Result<> result) { return done = true, result; };
    auto client = GuardClient::connect(options.path, Seconds(20));
    if (!client) return finish(fail(client.error()));
    LimitAuthority& authority = **client;
    LeaseRequest request;
    request.devices = {a};
    const auto lease = authority.acquire(request);
    if (!lease) return finish(fail(lease.error()));
    if (const auto renewed = authority.renew(*lease); !renewed) return finish(renewed);
    const auto written = authority.write(*lease, {{a, watts(600), {}}});
    if (!written || written->front().state != WriteState::applied || *written->front().enforced != watts(600)) {
      return finish(fail(ErrorCode::failed, "not applied"));
    }
    const auto restored = authority.restore_all("test");
    if (!restored || restored->size() != 1 || !restored->front().restored) {
      return finish(fail(ErrorCode::failed, "not restored"));
    }
    return finish(authority.renew(*lease));
  });
  while (!done) server->turn(Seconds(0.01));
  const auto last = used.get();
  ASSERT_FALSE(last);
  EXPECT_NE(last.error().what.find("is over"), std::string::npos) << last.error().message();
}

TEST(GuardClient, NoGuardNamesTheRemedy) {
  TempDir folder;
  const auto client = GuardClient::connect(folder.file("none"));
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().exit_code(), 3);
  EXPECT_NE(client.error().remedy.find("sudo flyball-guard restore"), std::string::npos);
}

}  // namespace
}  // namespace flyball::guard
