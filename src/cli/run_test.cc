// `flyball run` in this process, from its line to its output; the program as a whole is tested in tests/.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/filesystem.h"
#include "base/golden.h"
#include "base/temp_dir.h"
#include "cli/app.h"
#include "ledger/ledger.h"

namespace flyball::cli {
namespace {

struct Ran {
  int code = -1;
  std::string out;
};

/// Runs `flyball WORDS…` with a state folder of its own.
Ran flyball(const TempDir& dir, std::vector<std::string> words) {
  const std::string file = dir.file("out");
  words.insert(words.begin(), {"flyball"});
  words.insert(words.end(), {"--state-dir", dir.file("state"), "--output", file, "-q"});
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  VirtualClock clock;
  Ran ran;
  ran.code = run_program(static_cast<int>(argv.size()), argv.data(), system_filesystem(), clock);
  ran.out = system_filesystem().read(file, 1 << 24).value_or("");
  return ran;
}

/// What differs from run to run by where it was run.
std::string without_paths(const std::string& json) {
  auto made = nlohmann::ordered_json::parse(json);
  made["ledger"] = "ledger.db";
  return made.dump(2) + '\n';
}

TEST(Run, SameSeedSameBytes) {
  TempDir one, two;
  const std::vector<std::string> words = {"run", "--duration", "20min", "--seed", "4", "--json"};
  const Ran a = flyball(one, words), b = flyball(two, words);
  ASSERT_EQ(a.code, 0);
  EXPECT_EQ(without_paths(a.out), without_paths(b.out));
  EXPECT_EQ(a.out.find("{\n  \"schema\": \"flyball.run/1\""), 0u);
}

TEST(Run, IsWhatItWas) {
  TempDir dir;
  const Ran ran = flyball(dir, {"run", "--duration", "30min", "--seed", "1", "--json"});
  ASSERT_EQ(ran.code, 0);
  EXPECT_EQ(golden_difference("cli/run_30min.json", without_paths(ran.out)), "");
}

TEST(Run, NamesItsRowInTheLedger) {
  TempDir dir;
  const Ran ran =
      flyball(dir, {"run", "--duration", "5min", "--policy", "static:200W", "--report", dir.file("r.html")});
  ASSERT_EQ(ran.code, 0);
  EXPECT_NE(ran.out.find("ledger.db, run 1"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("as they were found"), std::string::npos);
  EXPECT_TRUE(system_filesystem().exists(dir.file("r.html")));
  auto ledger = ledger::Ledger::open_read_only(dir.file("state/ledger.db"));
  ASSERT_TRUE(ledger) << ledger.error().message();
  EXPECT_EQ(ledger->run(1)->start.policy, "static:200W");
}

TEST(Run, AStateFolderThatCannotBeWrittenCostsNoResult) {
  TempDir dir;
  ASSERT_TRUE(system_filesystem().write_atomically(dir.file("state"), "a file where a folder should be"));
  const Ran ran = flyball(dir, {"run", "--duration", "5min", "--json"});
  EXPECT_EQ(ran.code, 5);
  EXPECT_NE(ran.out.find("ledger.not_opened"), std::string::npos);
  EXPECT_NE(ran.out.find("\"saved_fraction\""), std::string::npos);
}

TEST(Run, DryRunWritesNothing) {
  TempDir dir;
  const Ran ran = flyball(dir, {"run", "--dry-run", "--report", dir.file("r.html")});
  EXPECT_EQ(ran.code, 0);
  EXPECT_FALSE(system_filesystem().exists(dir.file("state")));
  EXPECT_FALSE(system_filesystem().exists(dir.file("r.html")));
}

TEST(Run, AMetersBudgetBecomesOneForTheLimitsBehindIt) {
  TempDir dir;
  const auto with = [&](const std::string& budget, const std::string& meter) {
    const std::string config = fmt::format(
        "[run]\nbudget = \"{}\"\nbudget_meter = \"{}\"\n[site]\nnode_meter = \"node/ac\"\nnode_limit = \"5kW\"\n"
        "non_gpu_maximum = \"1.5kW\"\nlowest_supply_efficiency = 0.9\nhighest_supply_efficiency = 0.96\n"
        "overshoot = 0.1\nmeter_accuracy = 0.0\n",
        budget, meter);
    EXPECT_TRUE(system_filesystem().write_atomically(dir.file("f.toml"), config));
    return flyball(
        dir, {"run", "--scenario", "pretrain-8", "--duration", "10min", "--config", dir.file("f.toml"), "--json"});
  };
  const Ran ran = with("4.6kW", "node/ac");  // (4.6 kW × 0.9 − 1.5 kW) / 1.1
  ASSERT_EQ(ran.code, 0);
  EXPECT_NE(ran.out.find("\"limit_w\": 2400.0"), std::string::npos) << ran.out;
  EXPECT_EQ(with("1.6kW", "node/ac").code, 3) << "what is not GPUs may draw all of it";
  EXPECT_EQ(with("4.6kW", "rack/ac").code, 4) << "what is behind that meter is not stated";
}

TEST(Run, BadLinesEndWithTwo) {
  TempDir dir;
  for (const std::vector<std::string>& extra :
       std::vector<std::vector<std::string>>{{"--policy", "magic"},
                                             {"--scenario", "absent"},
                                             {"--duration", "6"},
                                             {"--max-loss", "2"},
                                             {"--set", "x=1"},
                                             {"--alpha", "1", "--max-loss", "0.01"},
                                             {"--seed", "-1"},
                                             {"--duration", "1s"}}) {
    std::vector<std::string> words = {"run"};
    words.insert(words.end(), extra.begin(), extra.end());
    EXPECT_EQ(flyball(dir, words).code, 2) << extra[0] << ' ' << extra[1];
  }
  EXPECT_EQ(flyball(dir, {"run", "--source", "abacus"}).code, 4);
}

TEST(Lists, NameWhatIsThere) {
  TempDir dir;
  EXPECT_NE(flyball(dir, {"policy", "list"}).out.find("static:WATTS"), std::string::npos);
  EXPECT_NE(flyball(dir, {"scenarios"}).out.find("v100-bert"), std::string::npos);
  EXPECT_NE(flyball(dir, {"scenarios", "a100-bloom-3b"}).out.find("gpu.idle_power"), std::string::npos);
}

TEST(Lists, AScenarioIsToldByItsHashAndEachValueBySource) {
  TempDir dir;
  const auto scenario = [&](const std::vector<std::string>& extra) {
    std::vector<std::string> words = {"scenarios", "pretrain-8", "--json"};
    words.insert(words.end(), extra.begin(), extra.end());
    const Ran ran = flyball(dir, words);
    EXPECT_EQ(ran.code, 0);
    return nlohmann::json::parse(ran.out)["scenarios"][0];
  };
  const auto found = scenario({}), changed = scenario({"--set", "absorbable_wait_fraction=0.05", "--set", "step_s=3"});
  EXPECT_EQ(found["sha256"].get<std::string>().size(), 64u);
  EXPECT_NE(found["sha256"], changed["sha256"]);
  EXPECT_EQ(changed["parameters"]["job.absorbable_wait_fraction"], "0.05");
  EXPECT_EQ(changed["parameters"]["job.step_time"], "3s");
  EXPECT_EQ(changed["parameter_sources"]["job.step_time"], "--set");
  EXPECT_EQ(found["licence"], "Apache-2.0");
  EXPECT_EQ(found["parameters"].size(), found["parameter_sources"].size());
  EXPECT_EQ(flyball(dir, {"scenarios", "pretrain-8", "--set", "wait_power_fraction=7"}).code, 2);
  EXPECT_EQ(flyball(dir, {"scenarios", "--set", "wait_power_fraction=0.3"}).code, 2) << "of which scenario?";
}

TEST(Record, BothMetersOfTheTwinsNodesAndHowTheyMove) {
  TempDir dir;
  const std::string file = dir.file("nodes.csv");
  const std::vector<std::string> words = {"record",     "--source", "twin-nodes", "--scenario",  "pretrain-8",
                                          "--duration", "5min",     "--set",      "gpus=16",     "--output",
                                          file,         "--json",   "-q",         "--state-dir", dir.file("state")};
  std::vector<const char*> argv{"flyball"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  VirtualClock clock;
  ASSERT_EQ(run_program(static_cast<int>(argv.size()), argv.data(), system_filesystem(), clock), 0);
  const std::string power = system_filesystem().read(file, 1 << 20).value_or("");
  EXPECT_EQ(power.find("run,node,time_ms,ac_w,dc_w\npretrain-8,1,"), 0u);
  EXPECT_NE(power.find("\npretrain-8,2,"), std::string::npos);
  const std::string events = system_filesystem().read(file + ".events.csv", 1 << 20).value_or("");
  EXPECT_NE(events.find(",run_start,"), std::string::npos);
  EXPECT_NE(events.find(",run_stop,"), std::string::npos);
  EXPECT_EQ(flyball(dir, {"record", "--source", "twin-nodes", "--duration", "1s"}).code, 2);
}

}  // namespace
}  // namespace flyball::cli
