// `flyball run` in this process, from its line to its output; the program as a whole is tested in tests/.
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

}  // namespace
}  // namespace flyball::cli
