// ctest: needs flyball
// Memory does not grow with what is read: a recording whose points would fill more than the bound is gone through.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/filesystem.h"
#include "base/memory_filesystem.h"
#include "base/temp_dir.h"
#include "series/recording_writer.h"

namespace flyball {
namespace {

constexpr int kBoards = 4;
constexpr int kInstants = 1'000'000;  // of 0.5 s; 24 bytes a point would be 92 MiB
constexpr double kMostMebibytes = 64;

struct Ran {
  int code = -1;
  double mebibytes = 0;
  std::string out;
};

class LargeRecording : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    // Every block is synced: on a slow disk that would take minutes.
    MemoryFilesystem memory;
    const auto writer = series::RecordingWriter::open(
        memory, "/long.fbr", {WallTime(1'767'225'600'000'000'000), MonoTime(), "", "test", "made", Seconds(0.5)});
    ASSERT_TRUE(writer);
    std::vector<std::uint32_t> series;
    for (int board = 0; board < kBoards; ++board)
      series.push_back((*writer)->begin_series({DeviceId::of("GPU-" + std::string(1, static_cast<char>('a' + board))),
                                                Signal::power_average, Scope::board, "test"}));
    for (int i = 0; i < kInstants; ++i) {
      // Steps of 8 s, an evaluation every 200 steps, and what is random enough for the eye.
      const bool evaluation = i % 3200 >= 3100;
      const double power = evaluation ? 520 : i % 16 < 10 ? 600 : 420;
      for (int board = 0; board < kBoards; ++board)
        ASSERT_TRUE((*writer)->point(series[static_cast<std::size_t>(board)], MonoTime(i * 500'000'000LL),
                                     power + (i + 2 * board) % 5, Status::ok));
    }
    ASSERT_TRUE((*writer)->close(MonoTime(kInstants * 500'000'000LL), "done"));
    const auto bytes = memory.read("/long.fbr", 1 << 30);
    ASSERT_TRUE(bytes);
    ASSERT_TRUE(system_filesystem().write_atomically(folder_->file("long.fbr"), *bytes));
  }
  static void TearDownTestSuite() { delete folder_; }

  static Ran run(std::vector<std::string> words) {
    const char* build = std::getenv("FLYBALL_BUILD");
    words.insert(words.begin(), std::string(build != nullptr ? build : "build/release") + "/flyball");
    words.insert(words.end(), {"--json", "--output", folder_->file("out.json")});
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    int status = 0;
    struct rusage usage {};
    Ran ran;
    if (::wait4(child, &status, 0, &usage) != child || !WIFEXITED(status)) return ran;
    ran.code = WEXITSTATUS(status);
    ran.mebibytes = static_cast<double>(usage.ru_maxrss) / 1024;
    ran.out = system_filesystem().read(folder_->file("out.json"), 64 << 20).value_or("null");
    return ran;
  }
  static std::string file() { return folder_->file("long.fbr"); }

  static TempDir* folder_;
};

TempDir* LargeRecording::folder_ = nullptr;

TEST_F(LargeRecording, ReplayShowsItInBoundedMemory) {
  const Ran ran = run({"replay", file()});
  ASSERT_EQ(ran.code, 0);
  EXPECT_LT(ran.mebibytes, kMostMebibytes);
  EXPECT_EQ(nlohmann::json::parse(ran.out)["points_ok"], kBoards * kInstants);
}

TEST_F(LargeRecording, ReplayRunsAPolicyOverItInBoundedMemory) {
  const Ran ran = run({"replay", file(), "--policy", "static:300W"});
  ASSERT_EQ(ran.code, 0);
  EXPECT_LT(ran.mebibytes, kMostMebibytes);
  EXPECT_EQ(nlohmann::json::parse(ran.out)["decisions"], kInstants / 20 - 1);
}

TEST_F(LargeRecording, EveryAnalysisOfItIsInBoundedMemory) {
  for (const char* what : {"energy", "windows", "ramps", "phases"}) {
    SCOPED_TRACE(what);
    std::vector<std::string> words = {"analyze", what, file()};
    if (std::string(what) == "windows") words.insert(words.end(), {"--budget", "2.2kW"});
    const Ran ran = run(words);
    ASSERT_EQ(ran.code, 0);
    EXPECT_LT(ran.mebibytes, kMostMebibytes);
    EXPECT_EQ(nlohmann::json::parse(ran.out)["points"], kBoards * kInstants);
  }
}

}  // namespace
}  // namespace flyball
