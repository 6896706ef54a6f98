// ctest: needs flyball flyball-guard flyball-fakegpu flyball_fakegpu_library
// `flyball run --source nvml` as an operator runs it: eight fake GPUs, the guard as a process of its own, real time.

#include "base/filesystem.h"
#include "guard/client.h"
#include "live_rig.h"

namespace flyball {
namespace {

TEST_F(LiveRun, LowersForItsTimeAccountsAndGivesBack) {
  rig.start_guard();
  Process run = start({"--policy", "static:500W", "--duration", "8s"});
  wait_until_lowered();
  EXPECT_EQ(run.wait(), 0);
  EXPECT_TRUE(all_back()) << "before it ends, not after";
  const json made = result();
  ASSERT_TRUE(made.is_object());
  EXPECT_EQ(made["schema"], "flyball.run/1");
  EXPECT_EQ(made["restored"], true);
  EXPECT_GT(made["energy_j"].get<double>(), 8 * 8 * 90.0) << "eight boards of at least 90 W";
  EXPECT_GT(made["tokens"].get<double>(), 0) << "the fake job tells its progress";
  EXPECT_GE(made["writes"].get<int>(), 8);
  EXPECT_EQ(made["saved_fraction"], nullptr) << "nothing was run to compare with";
  EXPECT_NE(made["plant"].get<std::string>().find("8 x NVIDIA H100"), std::string::npos) << made["plant"];
}

TEST_F(LiveRun, ASignalEndsItRestored) {
  rig.start_guard();
  for (const auto& [signal, code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    Process run = start({"--policy", "static:500W"});
    wait_until_lowered();
    EXPECT_EQ(run.end(signal), code);
    EXPECT_TRUE(all_back());
    EXPECT_EQ(result()["interrupted"], true);
    EXPECT_EQ(result()["restored"], true);
  }
}

TEST_F(LiveRun, KilledItsLimitsComeBack) {
  rig.start_guard();
  Process run = start({"--policy", "static:500W"});
  wait_until_lowered();
  EXPECT_EQ(run.end(SIGKILL), 128 + SIGKILL);
  wait_until_back();
}

TEST_F(LiveRun, OutlivesItsGuard) {
  rig.start_guard();
  Process run = start({"--policy", "static:500W"});
  wait_until_lowered();
  rig.guard().end(SIGKILL);
  EXPECT_EQ(rig.run_guard("restore"), 0);
  EXPECT_TRUE(all_back());
  rig.start_guard(kPatience);
  wait_until_lowered();
  EXPECT_EQ(run.end(SIGINT), 130);
  EXPECT_TRUE(all_back()) << result()["findings"];
}

TEST_F(LiveRun, StoppedByAnOperatorItOnlyWatchesFromThenOn) {
  rig.start_guard();
  Process run = start({"--policy", "static:500W"});
  wait_until_lowered();
  EXPECT_EQ(flyball({"restore"}).wait(), 0);
  EXPECT_TRUE(all_back());
  const auto asked_in_vain = [&] {
    const auto audit = system_filesystem().read(rig.file("audit"), 1 << 24);
    return audit && audit->find("given back on request") != std::string::npos;
  };
  rig.wait_until(asked_in_vain, kPatience, "the run does not ask again");
  EXPECT_TRUE(all_back()) << "a stop that lasts until the next renewal is none";
  EXPECT_EQ(run.end(SIGINT), 130);
  EXPECT_TRUE(all_back());
  const std::string findings = result()["findings"].dump();
  EXPECT_NE(findings.find("all limits were given back on request"), std::string::npos) << findings;
}

TEST_F(LiveRun, WithoutAGuardItOnlyWatches) {
  EXPECT_EQ(start({"--duration", "4s"}).wait(), 3) << "refused, naming the guard";
  EXPECT_EQ(start({"--observe-only", "--duration", "4s"}).wait(), 0);
  EXPECT_TRUE(all_back());
  EXPECT_EQ(result()["writes"], 0);
}

TEST_F(LiveRun, AHungBoardCostsTheOthersNothing) {
  rig.start_guard();
  Process run = start({"--policy", "static:500W", "--duration", "30s"});
  wait_until_lowered();
  const auto ids = rig.ids();
  rig.fakegpu({"fault", "hang", "all", "--gpu", ids[3].text()});
  EXPECT_EQ(run.wait(), 5) << "one limit could not be given back";
  const auto boards = rig.boards();
  for (std::size_t i = 0; i < boards.size(); ++i) EXPECT_EQ(boards[i].second, i == 3 ? 500'000 : 700'000) << i;
  rig.fakegpu({"fault", "clear"});
  wait_until_back();
}

TEST_F(LiveRun, SweepRunsOnTheJobsOwnProgress) {
  rig.start_guard();
  Process run = start({"--policy", "sweep", "--max-loss", "0.05", "--duration", "20s"});
  EXPECT_EQ(run.wait(), 0);
  EXPECT_TRUE(all_back());
  EXPECT_GE(result()["decisions"].get<int>(), 4);
}

}  // namespace
}  // namespace flyball
