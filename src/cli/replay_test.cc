// `flyball record`, `replay` and `run --record` as a user meets them.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/golden.h"
#include "base/memory_filesystem.h"
#include "base/temp_dir.h"
#include "cli/app.h"

namespace flyball::cli {
namespace {

class Replay : public testing::Test {
 protected:
  int run(std::vector<std::string> words) {
    words.insert(words.begin(), {"flyball", "-q", "--state-dir", dir_.path()});
    std::vector<const char*> argv;
    for (const std::string& w : words) argv.push_back(w.c_str());
    SystemClock clock;
    return run_program(static_cast<int>(argv.size()), argv.data(), system_filesystem(), clock);
  }
  std::string text(std::vector<std::string> words, int code = 0) {
    const std::string out = dir_.file("out");
    (void)::unlink(out.c_str());
    words.insert(words.end(), {"--output", out});
    EXPECT_EQ(run(words), code);
    return system_filesystem().read(out, 1 << 24).value_or("");
  }
  nlohmann::json json(std::vector<std::string> words, int code = 0) {
    words.emplace_back("--json");
    const std::string made = text(std::move(words), code);
    return nlohmann::json::parse(made.empty() ? "null" : made);
  }
  std::string file(const std::string& name) { return dir_.file(name); }

  TempDir dir_;
};

TEST_F(Replay, ARecordedRunComesOutAgainAndTheDocumentSaysSo) {
  ASSERT_EQ(run({"run", "--duration", "30min", "--seed", "2", "--record", file("r.fbr"), "--output", file("o")}), 0);
  auto made = json({"replay", file("r.fbr"), "--policy", "recorded"});
  EXPECT_EQ(made["audit"]["decisions_recorded"], 180);
  EXPECT_EQ(made["audit"]["decisions_identical"], 180);
  EXPECT_TRUE(made["saved_fraction"].is_null());
  EXPECT_EQ(made["writes"], 0);
  made["file"] = "r.fbr";
  EXPECT_EQ(golden_difference("cli/replay_policy.json", made.dump(2) + "\n"), "");
  const std::string shown = text({"replay", file("r.fbr"), "--policy", "recorded"});
  EXPECT_TRUE(shown.starts_with("What the policy would have proposed.")) << shown;
  EXPECT_NE(shown.find("neither a saving nor a loss"), std::string::npos);
  EXPECT_NE(shown.find("all 180 recorded decisions came out again"), std::string::npos);
  EXPECT_EQ(shown.find("Saved"), std::string::npos);
}

TEST_F(Replay, WhatARecordingHoldsIsShown) {
  ASSERT_EQ(run({"record", "--duration", "2min", "--seed", "1", "--output", file("r.fbr")}), 0);
  auto made = json({"replay", file("r.fbr")});
  made["file"] = "r.fbr";
  for (auto& session : made["sessions"]) session["writer"] = "flyball";
  EXPECT_EQ(golden_difference("cli/replay.json", made.dump(2) + "\n"), "");
  ASSERT_EQ(run({"replay", file("r.fbr"), "--to", "csv", "--output", file("points.csv"), "--events", file("ev.csv")}),
            0);
  const auto energy = [&](const std::string& from) {
    return json({"analyze", "energy", from})["runs"][0]["energy_j"].get<double>();
  };
  EXPECT_DOUBLE_EQ(energy(file("r.fbr")), energy(file("points.csv"))) << "exported, it is the same";
  EXPECT_GT(json({"analyze", "energy", file("r.fbr")})["runs"][0]["tokens"].get<double>(), 0);
}

TEST_F(Replay, WrongUseIsRefused) {
  ASSERT_EQ(run({"record", "--duration", "1min", "--output", file("r.fbr")}), 0);
  EXPECT_EQ(run({"replay", file("r.fbr"), "--policy", "recorded"}), 2) << "it is of no run of the loop";
  EXPECT_EQ(run({"replay", file("r.fbr"), "--policy", "none", "--to", "csv"}), 2);
  EXPECT_EQ(run({"replay", file("r.fbr"), "--policy", "recorded", "--alpha", "3"}), 2);
  EXPECT_EQ(run({"replay", file("r.fbr"), "--policy", "none", "--decision", "0s"}), 2);
  EXPECT_EQ(run({"replay", file("absent.fbr"), "--policy", "none"}), 2);
  EXPECT_EQ(run({"run", "--duration", "1min", "--record", file("r.fbr")}), 2) << "a recording is not written over";
  EXPECT_EQ(run({"record", "--duration", "1min", "--output", file("r.fbr")}), 2) << "simulated time would begin again";
  EXPECT_EQ(run({"record", "--duration", "1min"}), 2);
  EXPECT_EQ(run({"record", "--interval", "1ms", "--output", file("x.fbr")}), 2);
}

TEST_F(Replay, MetersAreRecordedByTheirProfiles) {
  for (const std::string id : {"rack1", "rack2"}) {
    std::ofstream(file(id + ".csv")) << "kw,c\n19,21\n20.5,22.5\n";
    std::ofstream(file(id + ".conf")) << "[meter]\nid = \"" << id
                                      << "\"\nprotocol = \"csv\"\nsource = \"test\"\naddress = \"" << file(id + ".csv")
                                      << "\"\nscope = \"rack\"\n"
                                      << "[point.power]\nquantity = \"power\"\nunit = \"kW\"\ncolumn = \"kw\"\n"
                                      << "[point.inlet]\nquantity = \"temperature\"\nunit = \"degC\"\ncolumn = \"c\"\n";
  }
  const std::vector<std::string> meters = {"record",     "--source", "meters",   "--interval", "0.1s",
                                           "--duration", "1s",       "--output", file("m.fbr")};
  std::vector<std::string> both = meters;
  both.insert(both.end(), {"--meter", file("rack1.conf"), "--meter", file("rack2.conf")});
  ASSERT_EQ(run(both), 0);
  const auto account = json({"analyze", "energy", file("m.fbr")})["runs"][0];
  EXPECT_NEAR(account["energy_j"].get<double>() / account["duration_s"].get<double>(), 41'000, 1);
  EXPECT_EQ(run(meters), 2) << "no meter is named";
  EXPECT_EQ(run({"record", "--meter", file("rack1.conf"), "--output", file("n.fbr")}), 2) << "the twin has none";
  both.insert(both.end(), {"--meter", file("rack2.conf")});
  EXPECT_EQ(run(both), 2) << "twice the same";
}

/// Runs the command in a child until `ready`, sends the signal, and gives what waitpid says.
int end_by(int signal, const std::function<int()>& command, const std::function<bool()>& ready) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(command());
  for (int i = 0; i < 6000 && !ready(); ++i) ::usleep(10'000);
  EXPECT_TRUE(ready());
  ::kill(child, signal);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_F(Replay, ARecordingSurvivesHoweverItsProgramEnds) {
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    SCOPED_TRACE(signal);
    const std::string path = file(fmt::format("{}.fbr", signal));
    // Long enough not to end by itself: a month of simulated time.
    const auto record = [&] { return run({"record", "--duration", "30d", "--interval", "0.5s", "--output", path}); };
    const auto begun = [&] {
      std::ifstream in(path, std::ios::ate | std::ios::binary);
      return in && in.tellg() > 30'000;
    };
    const int status = end_by(signal, record, begun);
    const auto made = json({"replay", path});
    EXPECT_GT(made["points_ok"].get<std::uint64_t>(), 1000u);
    ASSERT_EQ(made["sessions"].size(), 1u);
    if (signal == SIGKILL) {
      EXPECT_TRUE(WIFSIGNALED(status));
      EXPECT_EQ(made["sessions"][0]["closed"], false);
    } else {
      EXPECT_TRUE(WIFEXITED(status));
      EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
      EXPECT_EQ(made["sessions"][0]["reason"], "stopped by a signal");
      EXPECT_EQ(made["cut"], false);
    }
    // Cut anywhere in its tail, what is whole before it is still read.
    const std::string bytes = *system_filesystem().read(path, std::size_t{1} << 28);
    std::ofstream(file("torn.fbr"), std::ios::binary) << bytes.substr(0, bytes.size() - 7);
    const auto torn = json({"replay", file("torn.fbr")});
    EXPECT_GT(torn["points_ok"].get<std::uint64_t>(), 1000u);
  }
}

/// The machine's files, but what is written goes to a disk that can be full.
class SmallDisk final : public Filesystem {
 public:
  MemoryFilesystem disk;
  Result<std::string> read(const std::string& path, std::size_t limit) override {
    return disk.exists(path) ? disk.read(path, limit) : system_filesystem().read(path, limit);
  }
  Result<std::string> read_head(const std::string& path, std::size_t bytes) override {
    return disk.read_head(path, bytes);
  }
  bool exists(const std::string& path) override { return disk.exists(path) || system_filesystem().exists(path); }
  Result<std::unique_ptr<AppendFile>> open_append(const std::string& path) override { return disk.open_append(path); }
  Result<> write_atomically(const std::string& path, std::string_view bytes) override {
    return disk.write_atomically(path, bytes);
  }
  Result<> rename(const std::string& from, const std::string& to) override { return disk.rename(from, to); }
  Result<> remove(const std::string& path) override { return disk.remove(path); }
  Result<> make_folders(const std::string&) override { return {}; }
  Result<std::vector<std::string>> list(const std::string& folder) override { return system_filesystem().list(folder); }
};

TEST_F(Replay, AFullDiskDoesNotLoseWhatIsThere) {
  SmallDisk files;
  VirtualClock clock;
  const std::vector<const char*> words = {"flyball", "-q", "record", "--duration", "2h", "--output", "/small/r.fbr"};
  files.disk.set_space_left(20'000);
  testing::internal::CaptureStderr();
  const int code = run_program(static_cast<int>(words.size()), words.data(), files, clock);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, 1) << "points that could not be kept are no success";
  std::ofstream(file("r.fbr"), std::ios::binary) << files.disk.content("/small/r.fbr");
  const auto made = json({"replay", file("r.fbr")});
  EXPECT_GT(made["points_ok"].get<std::uint64_t>(), 1000u);
  // What it says of the file is what is in it.
  const std::string csv = text({"replay", file("r.fbr"), "--to", "csv"});
  EXPECT_NE(said.find("the file holds " + std::to_string(std::count(csv.begin(), csv.end(), '\n') - 1) + " of "),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("the last of 2026-01-01T00:"), std::string::npos) << said;
}

TEST_F(Replay, AFullDiskLeavesNoHalfOfASimulatedBuilding) {
  SmallDisk files;
  VirtualClock clock;
  const std::vector<const char*> words = {"flyball",  "-q",           "record",     "--scenario", "facility-1000",
                                          "--output", "/small/b.csv", "--duration", "13d"};
  files.disk.set_space_left(3 << 20);
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_program(static_cast<int>(words.size()), words.data(), files, clock), 1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("/small/b.csv: "), std::string::npos) << said;
  EXPECT_NE(said.find("nothing was written"), std::string::npos) << said;
  EXPECT_EQ(files.disk.list("/small")->size(), 0u) << "neither under its name nor under another";
  files.disk.set_space_left(static_cast<std::size_t>(-1));
  std::vector<const char*> shorter = words;
  shorter.back() = "1h";
  EXPECT_EQ(run_program(static_cast<int>(shorter.size()), shorter.data(), files, clock), 0);
  EXPECT_EQ(*files.disk.list("/small"), std::vector<std::string>{"b.csv"});
}

TEST_F(Replay, LongTelemetryIsAnalyzedInChaptersAsInOne) {
  // 210,000 points: two chapters. In each hour twelve evaluations between steps of ten seconds.
  const auto rows = [&](int from, int to) {
    std::string text = "time,gpu,power_w\n";
    for (int i = from; i < to; ++i) {
      const double power = i % 600 >= 560 ? 520 : i % 20 < 13 ? 600 : 420;
      text += fmt::format("{}.{},GPU-a,{}\n", 1'715'960'300 + i / 2, i % 2 * 5, power + (i * 7919) % 5);
    }
    return text;
  };
  std::ofstream(file("long.csv")) << rows(0, 210'000);
  std::ofstream(file("a.csv")) << rows(0, 105'000);
  std::ofstream(file("b.csv")) << rows(105'000, 210'000);
  const auto energy = json({"analyze", "energy", file("long.csv")})["runs"][0];
  EXPECT_EQ(energy["coverage_fraction"], 1);
  EXPECT_EQ(energy["holes"], 0);
  double sum = 0;
  for (int i = 0; i < 210'000; ++i)
    sum += ((i % 600 >= 560 ? 520
             : i % 20 < 13  ? 600
                            : 420) +
            static_cast<double>((i * 7919LL) % 5)) *
           (i == 0 || i == 209'999 ? 0.25 : 0.5);
  EXPECT_NEAR(energy["energy_j"].get<double>(), sum, 1e-6 * sum);
  const auto parts = json({"analyze", "energy", file("b.csv"), file("a.csv")})["runs"][0];
  EXPECT_NEAR(parts["energy_j"].get<double>(), sum, 1e-6 * sum) << "the order of the files does not matter";
  const auto windows = json({"analyze", "windows", file("long.csv"), "--budget", "590W", "--window", "0.5s", "--window",
                             "10s"})["runs"][0]["windows"];
  EXPECT_EQ(windows[0]["tumbling"]["judged"], 210'000);
  EXPECT_NEAR(windows[0]["violation_fraction"].get<double>(), 560.0 / 600 * 13 / 20, 0.001);
  EXPECT_EQ(windows[1]["violation_fraction"], 0);
  const auto phases = json({"analyze", "phases", file("long.csv")})["runs"][0];
  int evaluations = 0;
  for (const auto& phase : phases["phases"]) evaluations += phase["label"] == "evaluation" ? 1 : 0;
  EXPECT_EQ(evaluations, 350);
  EXPECT_NE(phases["note"].get<std::string>().find("2 chapters"), std::string::npos);
}

}  // namespace
}  // namespace flyball::cli
