#pragma once
// `flyball run --source nvml` as an operator runs it: eight fake GPUs, the guard as a process of its own, real time.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/filesystem.h"
#include "guard_rig.h"

namespace flyball {

using nlohmann::json;

/// On a machine that gives the run no processor its telemetry has holes, and an interval with holes decides nothing.
inline constexpr Seconds kPatience{180};

class LiveRun : public ::testing::Test {
 protected:
  explicit LiveRun(const std::string& interval = "3s", const std::vector<std::string>& job = {})
      : rig(8, with_speed(job)) {
    EXPECT_TRUE(system_filesystem().write_atomically(
        rig.file("flyball.toml"), fmt::format("[guard]\nsocket = \"{}\"\n[run]\ninterval = \"{}\"\nsample = \"0.5s\"\n",
                                              rig.socket(), interval)));
  }
  static std::vector<std::string> with_speed(std::vector<std::string> job) {
    job.insert(job.end(), {"--speed", "20"});
    return job;
  }

  Process flyball(std::vector<std::string> words, const std::string& out = "flyball.out") {
    words.insert(words.begin(), build_folder() + "/flyball");
    words.insert(words.end(), {"--config", rig.file("flyball.toml"), "--state-dir", rig.file("state")});
    return Process(words, rig.log(out));
  }
  Process start(std::vector<std::string> words) {
    words.insert(words.begin(), {"run", "--source", "nvml", "--json"});
    words.insert(words.end(), {"--nvml-library", build_folder() + "/fakegpu/libnvidia-ml.so.1"});
    return flyball(words, "run.out");
  }
  json result() {
    return json::parse(system_filesystem().read(rig.file("run.out"), 1 << 24).value_or(""), nullptr, false);
  }
  int lowered() {
    const auto boards = rig.boards();
    return static_cast<int>(
        std::count_if(boards.begin(), boards.end(), [](const auto& b) { return b.second == 500'000; }));
  }
  bool all_back() {
    const auto boards = rig.boards();
    return boards.size() == 8 &&
           std::all_of(boards.begin(), boards.end(), [](const auto& b) { return b.second == 700'000; });
  }
  void wait_until_lowered() {
    rig.wait_until([&] { return lowered() == 8; }, kPatience, "the run lowers no limits");
  }
  void wait_until_back() {
    rig.wait_until([&] { return all_back(); }, kPatience, "not every limit is back");
  }

  GuardRig rig;
};

}  // namespace flyball
