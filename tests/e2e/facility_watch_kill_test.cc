// ctest: needs flyball
// `flyball calibrate watch` is killed with -9 at random moments while its file grows: it tells the same, once.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "base/filesystem.h"
#include "base/random.h"
#include "base/temp_dir.h"

namespace flyball {
namespace {

/// A UPS whose loss rises by half after three days.
std::string rows(int from, int to) {
  std::string text;
  for (int minute = from; minute < to; ++minute) {
    Random random(static_cast<std::uint64_t>(minute) + 1);
    const double it = 500e3 + 500 * random.normal();
    const double loss = (minute >= 3 * 1440 ? 0.06 : 0.04) * it;
    text += fmt::format("{},{:.0f},{:.0f},{:.0f}\n", 1'767'225'600 + 60 * minute, it, it * 1.005,
                        it * 1.005 + loss + 200 * random.normal());
  }
  return text;
}

class WatchKilled : public testing::Test {
 protected:
  void SetUp() override {
    const char* build = std::getenv("FLYBALL_BUILD");
    program_ = std::string(build != nullptr ? build : "build/release") + "/flyball";
    if (!system_filesystem().exists(program_)) GTEST_SKIP() << program_ << " is not built";
  }
  pid_t start(const std::string& state, bool once) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
    ::execl(program_.c_str(), "flyball", "calibrate", "watch", folder_.file("in.csv").c_str(), "--state-dir",
            state.c_str(), "--reference", "1d", "--interval", "50ms", once ? "--once" : nullptr, nullptr);
    ::_exit(127);
  }
  int finish(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }
  /// All events of the one watch in this folder.
  std::string events(const std::string& state) {
    const auto names = system_filesystem().list(state);
    for (const std::string& name : names.value_or(std::vector<std::string>{}))
      if (name.starts_with("facility-watch-"))
        return system_filesystem().read(state + "/" + name + "/events.ndjson", 1 << 20).value_or("");
    return "no state";
  }

  TempDir folder_;
  std::string program_;
};

TEST_F(WatchKilled, TellsTheSameOnce) {
  const std::string header = "time,it_w,ups_out_w,ups_in_w\n", text = header + rows(0, 5 * 1440);
  std::ofstream(folder_.file("in.csv")) << text;
  ASSERT_EQ(finish(start(folder_.file("whole"), true)), 0);
  const std::string whole = events(folder_.file("whole"));
  ASSERT_NE(whole.find("\"found\""), std::string::npos) << whole;

  const char* const replay = std::getenv("FLYBALL_SEED");
  const std::uint64_t seed = replay == nullptr ? 11 : std::strtoull(replay, nullptr, 10);
  SCOPED_TRACE(fmt::format("replay: FLYBALL_SEED={} facility_watch_kill_test", seed));
  Random random(seed);
  std::ofstream(folder_.file("in.csv"), std::ios::trunc);
  const int kills = std::getenv("FLYBALL_CAMPAIGN") == nullptr ? 12 : 100;
  std::size_t at = 0;
  for (int i = 0; i < kills; ++i) {
    const pid_t child = start(folder_.file("killed"), false);
    // It grows while the watch reads; a row may be there in part.
    const std::size_t part =
        std::min(text.size() - at, text.size() / static_cast<std::size_t>(kills) + random.below(999));
    std::ofstream(folder_.file("in.csv"), std::ios::app) << text.substr(at, part);
    at += part;
    ::usleep(static_cast<useconds_t>(random.below(120'000)));
    ::kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(finish(child)));
  }
  std::ofstream(folder_.file("in.csv"), std::ios::app) << text.substr(at);
  ASSERT_EQ(finish(start(folder_.file("killed"), true)), 0);
  EXPECT_EQ(events(folder_.file("killed")), whole);
  fmt::print("bar: C6 a watch killed with -9, events lost or told twice = 0 after {} kills\n", kills);
}

}  // namespace
}  // namespace flyball
