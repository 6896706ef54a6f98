// ctest: needs flyball flyball-guard flyball-fakegpu flyball_fakegpu_library
// The program flyball-guard and its unit, as a service manager and an operator see them.

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <regex>

#include "../shell.h"
#include "guard/audit_log.h"
#include "guard_rig.h"

namespace flyball {
namespace {

using guard::WriteState;

/// The library may take 30 s to open before it is taken for hung, and successors come after up to 60 s.
constexpr Seconds kSlowStart{180};

class GuardProgram : public ::testing::Test {
 protected:
  GuardProgram() : rig(2), ids(rig.ids()) {}
  template <class T>
  static T need(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message());
    return *std::move(result);
  }
  /// A lease that has lowered both boards.
  std::unique_ptr<guard::GuardClient> lowered() {
    auto client = need(guard::GuardClient::connect(rig.socket()));
    guard::LeaseRequest request;
    request.devices = ids;
    const auto lease = need(client->acquire(request));
    const auto outcomes =
        need(client->write(lease, {{ids[0], Milliwatts(600'000), {}}, {ids[1], Milliwatts(610'000), {}}}));
    for (const auto& outcome : outcomes) EXPECT_EQ(outcome.state, WriteState::applied) << outcome.reason;
    return client;
  }
  std::int64_t limit(std::size_t board) { return rig.boards().at(board).second; }
  std::string output(const std::string& name) {
    std::ifstream in(rig.file(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  GuardRig rig;
  std::vector<DeviceId> ids;
};

TEST_F(GuardProgram, StopGivesBack) {
  rig.start_guard();
  const auto client = lowered();
  EXPECT_EQ(limit(0), 600'000);
  EXPECT_EQ(rig.guard().end(SIGTERM), 0);
  EXPECT_EQ(limit(0), 700'000);
  EXPECT_EQ(limit(1), 700'000);
  const auto audit = guard::verify_audit_files(system_filesystem(), rig.file("audit"));
  ASSERT_TRUE(audit);
  EXPECT_TRUE(audit->sound()) << audit->problems.front().text;
  EXPECT_GT(audit->lines, 6u);
}

TEST_F(GuardProgram, StopSaysWhatIsNotBack) {
  rig.start_guard();
  const auto client = lowered();
  rig.fakegpu({"fault", "return", "set_limit", "NO_PERMISSION", "--gpu", ids[0].text()});
  EXPECT_EQ(rig.guard().end(SIGTERM), 5);
  EXPECT_EQ(limit(0), 600'000);
  EXPECT_EQ(limit(1), 700'000) << "one failing restore keeps no other";
  rig.fakegpu({"fault", "clear"});
  EXPECT_EQ(rig.run_guard("restore"), 0) << "the journal keeps what is owed";
  EXPECT_EQ(limit(0), 700'000);
}

TEST_F(GuardProgram, OneGuardAMachine) {
  rig.start_guard();
  const auto client = lowered();
  EXPECT_EQ(rig.run_guard("serve"), 3);
  EXPECT_EQ(limit(0), 600'000);
  EXPECT_EQ(rig.run_guard("restore"), 0) << "asks the one that runs";
  EXPECT_EQ(limit(0), 700'000);
  EXPECT_EQ(rig.run_guard("status"), 0);
  EXPECT_NE(output("command.out").find("flyball.guard_status/1"), std::string::npos);
}

TEST_F(GuardProgram, TheProgramWithoutPrivilegeSaysWhatWouldComeBackAndBringsItBack) {
  ASSERT_TRUE(system_filesystem().write_atomically(rig.file("flyball.toml"),
                                                   fmt::format("[guard]\nsocket = \"{}\"\n", rig.socket())));
  const std::string restore = build_folder() + "/flyball restore --config " + rig.file("flyball.toml");
  EXPECT_TRUE(shell(restore).ends_with("exit 3")) << "no guard runs";
  rig.start_guard();
  const auto client = lowered();
  const std::string plan = shell(restore + " --dry-run");
  EXPECT_NE(plan.find(ids[0].text() + ": would be given back, to 700.0 W\n"), std::string::npos) << plan;
  EXPECT_NE(plan.find(ids[1].text() + ": would be given back, to 700.0 W\n"), std::string::npos) << plan;
  EXPECT_NE(shell(restore + " --dry-run --json").find("flyball.guard_status/1"), std::string::npos);
  EXPECT_EQ(limit(0), 600'000);
  EXPECT_TRUE(shell(restore).ends_with("exit 0"));
  EXPECT_EQ(limit(0), 700'000);
  EXPECT_EQ(limit(1), 700'000);
  EXPECT_EQ(shell(restore + " --dry-run"), "nothing of ours is on any board\nexit 0");
}

TEST_F(GuardProgram, ASecondInstanceIsAGuardOfItsOwn) {
  rig.start_guard();
  const auto client = lowered();
  std::vector<std::string> words = rig.guard_words("serve");
  for (std::string& word : words) {
    if (word == rig.file("journal") || word == rig.file("audit") || word == rig.socket()) word += ".second";
  }
  Process second(words, rig.log("second.out"));
  rig.wait_until([&] { return guard::GuardClient::connect(rig.socket() + ".second").has_value(); }, kSlowStart,
                 "the second instance is not ready");
  EXPECT_EQ(need(need(guard::GuardClient::connect(rig.socket() + ".second"))->restore_all("test")).size(), 0u);
  EXPECT_EQ(limit(0), 600'000) << "it owes nothing of the first one's";
  EXPECT_EQ(second.end(SIGTERM), 0);
  EXPECT_EQ(limit(0), 600'000);
  EXPECT_EQ(rig.guard().end(SIGTERM), 0);
  EXPECT_EQ(limit(0), 700'000);
}

TEST_F(GuardProgram, RestoreWithoutAnythingToRestore) {
  EXPECT_EQ(rig.run_guard("restore"), 0);
  EXPECT_EQ(rig.run_guard("status"), 3) << "no guard runs";
  EXPECT_EQ(rig.run_guard("nonsense"), 2);
}

TEST_F(GuardProgram, AKilledGuardsLimitsComeBackByRestoreAlone) {
  rig.start_guard();
  const auto client = lowered();
  rig.guard().end(SIGKILL);
  EXPECT_EQ(limit(0), 600'000);
  EXPECT_EQ(rig.run_guard("restore"), 0);
  EXPECT_EQ(limit(0), 700'000);
}

TEST_F(GuardProgram, AHungBoardDoesNotKeepTheOther) {
  rig.start_guard();
  auto client = lowered();
  const std::size_t hung = ids[0] < ids[1] ? 0 : 1;  // boards are given back in the order of their names
  const std::size_t healthy = 1 - hung;
  rig.fakegpu({"fault", "hang", "all", "--gpu", ids[hung].text()});
  client.reset();
  rig.wait_until([&] { return limit(healthy) == 700'000; }, Seconds(30), "the healthy board is not given back");
  EXPECT_NE(limit(hung), 700'000);
  rig.fakegpu({"fault", "clear"});
  rig.wait_until([&] { return limit(hung) == 700'000; }, Seconds(90), "the board that hung is not given back");
}

TEST_F(GuardProgram, RestoreReachesTheOthersOfABoardThatHangsFromTheStart) {
  rig.start_guard();
  auto client = lowered();
  rig.guard().end(SIGKILL);
  rig.fakegpu({"fault", "hang", "all", "--gpu", ids[0].text()});
  EXPECT_EQ(rig.run_guard("restore"), 5);
  EXPECT_EQ(limit(0), 600'000);
  EXPECT_EQ(limit(1), 700'000);
  EXPECT_NE(output("command.out").find(ids[0].text() + ": NOT given back"), std::string::npos) << output("command.out");
  EXPECT_NE(output("command.out").find(ids[1].text() + ": given back"), std::string::npos) << output("command.out");
  rig.fakegpu({"fault", "clear"});
  EXPECT_EQ(rig.run_guard("restore"), 0) << "the journal keeps what is owed";
  EXPECT_EQ(limit(0), 700'000);
}

TEST_F(GuardProgram, AGuardThatStartsWhileABoardHangsServesTheOthers) {
  rig.start_guard();
  auto client = lowered();
  rig.guard().end(SIGKILL);
  client.reset();
  rig.fakegpu({"fault", "hang", "all", "--gpu", ids[0].text()});
  rig.start_guard(kSlowStart);
  EXPECT_EQ(limit(0), 600'000);
  EXPECT_EQ(limit(1), 700'000);
  const auto states = [&] {
    std::map<std::string, std::string> all;
    if (rig.run_guard("status") != 0) return all;
    const auto status = nlohmann::json::parse(output("command.out"), nullptr, false);
    for (const auto& board : status.at("boards")) all[board.at("device")] = board.at("state");
    return all;
  };
  const std::map<std::string, std::string> one_hangs = {{ids[0].text(), "hung"}, {ids[1].text(), "ok"}};
  EXPECT_TRUE(rig.wait_until([&] { return states() == one_hangs; }, kSlowStart, "the board is not called hung"));
  const auto alarmed = [&] {
    return rig.run_guard("status") == 0 && output("command.out").find("failures in a row") != std::string::npos;
  };
  EXPECT_TRUE(rig.wait_until(alarmed, kSlowStart, "no alarm")) << output("command.out");
  client = need(guard::GuardClient::connect(rig.socket(), kSlowStart));
  guard::LeaseRequest request;
  request.devices = {ids[1]};
  const auto lease = need(client->acquire(request));
  EXPECT_EQ(need(client->write(lease, {{ids[1], Milliwatts(650'000), {}}}))[0].state, WriteState::applied);
  EXPECT_EQ(limit(1), 650'000);
  rig.fakegpu({"fault", "clear"});
  rig.wait_until([&] { return limit(0) == 700'000; }, kSlowStart, "the board that hung is not given back");
  const std::map<std::string, std::string> well = {{ids[0].text(), "ok"}, {ids[1].text(), "ok"}};
  EXPECT_TRUE(rig.wait_until([&] { return states() == well; }, kSlowStart, "not every board is well"));
}

TEST_F(GuardProgram, TheWatchdogIsFed) {
  const Descriptor manager(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = rig.file("notify");
  std::copy(path.begin(), path.end(), address.sun_path);
  ASSERT_EQ(::bind(manager.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  ::setenv("WATCHDOG_USEC", "500000", 1);
  rig.start_guard();
  ::unsetenv("NOTIFY_SOCKET");
  ::unsetenv("WATCHDOG_USEC");
  const auto next = [&] {
    pollfd polled{manager.get(), POLLIN, 0};
    if (::poll(&polled, 1, 30'000) != 1) return std::string("nothing");
    char block[256];
    const ssize_t n = ::recv(manager.get(), block, sizeof block, 0);
    return std::string(block, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  };
  EXPECT_EQ(next(), "READY=1");
  EXPECT_EQ(next(), "WATCHDOG=1");
  EXPECT_EQ(next(), "WATCHDOG=1");
  EXPECT_EQ(rig.guard().end(SIGTERM), 0);
}

TEST(GuardBinary, LinksNothingThatIsNotItsBusiness) {
  const std::string guard = build_folder() + "/flyball-guard";
  const std::string linked = shell("readelf -d " + guard + " && ldd " + guard);
  if (linked.find("NEEDED") == std::string::npos) GTEST_SKIP() << "readelf is not here: " << linked;
  for (const char* library :
       {"curl", "nats", "netsnmp", "sqlite", "modbus", "boost", "prometheus", "torch", "onnx", "zmq"}) {
    EXPECT_EQ(linked.find(std::string("lib") + library), std::string::npos) << library << "\n" << linked;
  }
  EXPECT_EQ(linked.find("libnvidia-ml"), std::string::npos) << "found at run time, in the workers";
}

TEST(GuardUnit, IsAcceptedByTheServiceManager) {
  if (std::system("command -v systemd-analyze >/dev/null 2>&1") != 0) GTEST_SKIP() << "systemd-analyze is not here";
  const TempDir folder;
  std::ifstream in("deploy/systemd/flyball-guard.service");
  ASSERT_TRUE(in) << "run from the repository's folder";
  const std::string unit(std::istreambuf_iterator<char>(in), {});
  for (const char* line : {"ExecStopPost=/usr/bin/flyball-guard restore", "StartLimitIntervalSec=0", "Restart=always",
                           "WatchdogSec=", "OOMScoreAdjust=-", "After=local-fs.target nvidia-persistenced.service"}) {
    EXPECT_NE(unit.find(line), std::string::npos) << line;
  }
  std::ofstream(folder.file("flyball-guard.service"))
      << std::regex_replace(unit, std::regex("/usr/bin/flyball-guard"), build_folder() + "/flyball-guard");
  const std::string verdict = shell("systemd-analyze verify --man=no " + folder.file("flyball-guard.service"));
  EXPECT_EQ(verdict, "exit 0");
}

}  // namespace
}  // namespace flyball
