// ctest: needs flyball flyball-guard flyball-fakegpu flyball_fakegpu_library
// One node from end to end, all as real processes in real time: eight fake GPUs and their job, the guard, and a run
// that measures by switchback what it saves. About a minute; FLYBALL_CAMPAIGN makes it ten and measures G5.

#include <cmath>
#include <fstream>
#include <sstream>

#include "../safety/live_rig.h"
#include "base/filesystem.h"
#include "guard/client.h"

namespace flyball {
namespace {

class NodeRun : public LiveRun {
 protected:
  NodeRun() : LiveRun("1s", {"--set", "job.evaluation_every=300", "--set", "job.evaluation_time=30s"}) {
    rig.start_guard();
  }
  std::vector<double> of_each_gpu(const char* key) {
    std::vector<double> all;
    const json made = result();
    for (const json& gpu : made["gpus"]) all.push_back(gpu[key].is_number() ? gpu[key].get<double>() : NAN);
    return all;
  }
};

TEST_F(NodeRun, MeasuresWhatItSavesAndReportsIt) {
  const bool campaign = std::getenv("FLYBALL_CAMPAIGN") != nullptr;
  const std::string page = rig.file("report.html");
  Process run = start({"--policy", "static:560W", "--switchback-share", "0.5", "--switchback-block",
                       campaign ? "10s" : "4s", "--duration", campaign ? "600s" : "56s", "--report", page});
  ASSERT_EQ(run.wait(), 0);
  EXPECT_TRUE(all_back());
  const json made = result();
  ASSERT_TRUE(made.is_object());
  EXPECT_EQ(made["restored"], true);
  EXPECT_GT(made["energy_j"].get<double>(), 0);
  EXPECT_GT(made["mean_power_w"].get<double>(), 8 * 90.0);
  EXPECT_GT(made["tokens"].get<double>(), 0);
  EXPECT_EQ(of_each_gpu("limit_found_w"), std::vector<double>(8, 700));
  EXPECT_EQ(of_each_gpu("limit_lowest_w"), std::vector<double>(8, 560));
  const std::string phases = made["phases"].dump();
  EXPECT_NE(phases.find("\"training\""), std::string::npos) << phases;
  EXPECT_NE(phases.find("\"evaluation\""), std::string::npos) << phases;
  const std::string html = system_filesystem().read(page, 1 << 26).value_or("");
  for (const char* part : {"<svg", "Limit", "Power", "Switchback", "evaluation"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  const json& switchback = made["switchback"];
  EXPECT_GE(switchback["block_s"].get<double>(), campaign ? 10 : 4) << switchback;
  if (switchback["verdict"] == "too_noisy") {
    EXPECT_EQ(made["saved_fraction"], nullptr) << "no number in its place";
    GTEST_SKIP() << "no saving was measured on so busy a machine: " << switchback["reason"];
  }
  EXPECT_EQ(switchback["verdict"], "saves") << switchback;
  const json& saved = made["saved_fraction"];
  EXPECT_LT(saved["low"].get<double>(), saved["value"].get<double>());
  EXPECT_LT(saved["value"].get<double>(), saved["high"].get<double>());
  EXPECT_GT(saved["low"].get<double>(), 0);
  const json& while_held = switchback["saved_fraction"];
  fmt::print(
      "bar: A8 live run on 8 fake GPUs (static:560W, {} + {} blocks of {} s): saved while control held = "
      "{:.2f} % ({:.2f} to {:.2f} at 95 %)\n",
      switchback["blocks_control"].get<int>(), switchback["blocks_original"].get<int>(),
      switchback["block_s"].get<double>(), 100 * while_held["value"].get<double>(),
      100 * while_held["low"].get<double>(), 100 * while_held["high"].get<double>());
}

TEST_F(NodeRun, EachGpuGetsTheLimitThatItsOwnReadingsAskFor) {
  const std::vector<std::size_t> idle = {1, 4, 6};
  const auto ids = rig.ids();
  for (const std::size_t gpu : idle) rig.fakegpu({"fault", "value", "utilization", "60", "--gpu", ids[gpu].text()});
  const auto differ = [&] {
    const auto boards = rig.boards();
    for (std::size_t i = 0; i < boards.size(); ++i) {
      const bool lowered = std::find(idle.begin(), idle.end(), i) != idle.end();
      if (lowered ? boards[i].second > 450'000 : boards[i].second != 700'000) return false;
    }
    return boards.size() == 8;
  };
  Process run = start({"--policy", "utilisation", "--switchback-share", "0"});
  rig.wait_until(differ, kPatience, "the limits are not those of each GPU");
  EXPECT_EQ(run.end(SIGINT), 130);
  EXPECT_TRUE(all_back());
  const auto lowest = of_each_gpu("limit_lowest_w");
  ASSERT_EQ(lowest.size(), 8u);
  for (std::size_t i = 0; i < lowest.size(); ++i) {
    const bool lowered = std::find(idle.begin(), idle.end(), i) != idle.end();
    EXPECT_EQ(lowest[i] < 600, lowered) << i << ": " << lowest[i];  // as seen at the ends of intervals
  }
}

struct Cost {
  Seconds processor;
  double resident_mib = 0;  ///< proportional: pages that several share count once
};

Cost cost_of(const std::string& pid) {
  Cost cost;
  const std::string stat = system_filesystem().read("/proc/" + pid + "/stat", 4096).value_or("");
  // proc(5): utime and stime are the 14th and 15th fields; the second is a name in parentheses.
  std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  cost.processor = Seconds((user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  std::istringstream memory(system_filesystem().read("/proc/" + pid + "/smaps_rollup", 1 << 16).value_or(""));
  for (std::string word; memory >> word;) {
    if (word == "Pss:") memory >> cost.resident_mib;
  }
  cost.resident_mib /= 1024;
  return cost;
}

/// Decides every ten seconds, as an operator's run does.
class NodeWatch : public LiveRun {
 protected:
  NodeWatch() : LiveRun("10s") {}
};

TEST_F(NodeWatch, CostsLittle) {
  if (std::getenv("FLYBALL_CAMPAIGN") == nullptr) GTEST_SKIP() << "a minute and a half; ./dev campaign measures it";
  Process run = start({"--observe-only"});
  nap(10'000);
  const std::string pid = std::to_string(run.pid());
  const auto with_workers = [&] {
    Cost cost = cost_of(pid);
    std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
    for (std::string child; children >> child;) {
      const Cost more = cost_of(child);
      cost.processor += more.processor;
      cost.resident_mib += more.resident_mib;
    }
    return cost;
  };
  const SystemClock clock;
  const MonoTime begin = clock.now();
  const Cost before = with_workers();
  nap(80'000);
  const Cost after = with_workers();
  const Seconds length = clock.now() - begin;
  EXPECT_EQ(run.end(SIGINT), 130);
  fmt::print(
      "bar: G5 `run --source nvml --observe-only`, 8 fake GPUs at 0.5 s, its workers included = {:.2f} % of a "
      "core; {:.1f} MiB (PSS)\n",
      100 * ((after.processor - before.processor) / length), after.resident_mib);
}

}  // namespace
}  // namespace flyball
