// The program itself, as users start and kill it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include "fakegpu/control.h"
#include "fakegpu/rig_test.h"

namespace flyball::fakegpu {
namespace {

using testing::HasSubstr;

constexpr int kPatienceMs = 30'000;

/// A child with its stdout in a pipe. Killed at the end if it still runs.
class Process {
 public:
  explicit Process(const std::vector<std::string>& words) {
    std::array<int, 2> pipe_ends{};
    EXPECT_EQ(pipe2(pipe_ends.data(), O_CLOEXEC), 0);
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(pipe_ends[1], STDOUT_FILENO);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    close(pipe_ends[1]);
    out_ = pipe_ends[0];
  }
  ~Process() {
    if (pid_ > 0) signal_and_wait(SIGKILL);
    close(out_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const { kill(pid_, number); }
  int signal_and_wait(int number) {
    signal(number);
    return wait();
  }
  /// Exit code, or minus the signal.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  /// Up to the end of a line, or of the output.
  std::string read(bool all) {
    std::string text;
    char c = 0;
    while (true) {
      pollfd waiting{out_, POLLIN, 0};
      if (poll(&waiting, 1, kPatienceMs) <= 0 || ::read(out_, &c, 1) <= 0) return text;
      if (c == '\n' && !all) return text;
      text += c;
    }
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

class ProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("FLYBALL_FAKEGPU", page_.c_str(), 1);
    setenv("LD_LIBRARY_PATH", (build_folder() / "fakegpu").c_str(), 1);
  }
  void TearDown() override {
    unsetenv("FLYBALL_FAKEGPU");
    unsetenv("LD_LIBRARY_PATH");
  }
  static std::string program() { return (build_folder() / "flyball-fakegpu").string(); }
  static std::string client() { return (build_folder() / "fakegpu" / "nvml_client").string(); }
  Process owner(std::vector<std::string> more = {"--paused"}) {
    std::vector<std::string> words{program(), "--gpus", "2", "--seed", "5"};
    words.insert(words.end(), more.begin(), more.end());
    return Process(words);
  }
  std::string ask(const Words& words) {
    const auto answer = send_command(control_path(page_), words);
    return answer ? *answer : answer.error().message();
  }

  TempDir folder_;
  std::string page_ = folder_.file("page");
};

TEST_F(ProcessTest, AClientThatKnowsOnlyNvmlReadsAndSets) {
  Process process = owner();
  ASSERT_EQ(process.read(false), page_);
  EXPECT_THAT(ask({"step", "30s"}), HasSubstr("30.0"));
  const std::string uuid = twin::board_id(5, 1).text();
  Process reader({client(), uuid, "350000"});
  const std::string text = reader.read(true);
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_THAT(text, HasSubstr(twin::board_id(5, 0).text() + " NVIDIA H100 80GB HBM3"));
  EXPECT_THAT(text, HasSubstr("enforced_mw=700000"));
  EXPECT_THAT(text, HasSubstr("enforced_mw=350000"));
  EXPECT_THAT(ask({"status"}), HasSubstr("\"setters\":1"));
  EXPECT_EQ(Process({client(), uuid, "1"}).wait(), 1) << "out of range";
}

TEST_F(ProcessTest, SigtermRemovesThePage) {
  Process process = owner();
  ASSERT_EQ(process.read(false), page_);
  EXPECT_EQ(process.signal_and_wait(SIGTERM), 143);
  EXPECT_NE(access(page_.c_str(), F_OK), 0);
  EXPECT_NE(access(control_path(page_).c_str(), F_OK), 0);
  EXPECT_EQ(Process({client()}).wait(), 1);
}

TEST_F(ProcessTest, StopEndsItAndOtherCommandsThenSayWhatToDo) {
  Process process = owner();
  ASSERT_EQ(process.read(false), page_);
  EXPECT_THAT(ask({"stop"}), HasSubstr("fakegpu_stop"));
  EXPECT_EQ(process.wait(), 0);
  EXPECT_THAT(ask({"status"}), HasSubstr("start one with"));
  EXPECT_EQ(Process({program(), "status"}).wait(), 1);
}

TEST_F(ProcessTest, AKilledOwnerIsGoneAtOnceAndItsPageIsTakenOver) {
  const Nvml nvml;
  for (int i = 0; i < 3; ++i) {
    Process process = owner();
    ASSERT_EQ(process.read(false), page_);
    ASSERT_EQ(NVML(nvml, nvmlInit_v2), NVML_SUCCESS);
    nvmlDevice_t gpu = nullptr;
    unsigned int value = 0;
    ASSERT_EQ(NVML(nvml, nvmlDeviceGetHandleByIndex_v2, 1U, &gpu), NVML_SUCCESS);
    EXPECT_EQ(NVML(nvml, nvmlDeviceGetPowerManagementLimit, gpu, &value), NVML_SUCCESS);
    EXPECT_EQ(value, 700'000U) << "a restart is a driver reload: nothing is left of the limit set before";
    EXPECT_EQ(NVML(nvml, nvmlDeviceSetPowerManagementLimit, gpu, 400'000U), NVML_SUCCESS);
    EXPECT_EQ(process.signal_and_wait(SIGKILL), -SIGKILL);
    EXPECT_EQ(access(page_.c_str(), F_OK), 0) << "a crash leaves the page";
    EXPECT_EQ(NVML(nvml, nvmlDeviceGetPowerManagementLimit, gpu, &value), NVML_ERROR_DRIVER_NOT_LOADED);
    EXPECT_EQ(NVML(nvml, nvmlShutdown), NVML_SUCCESS);
    EXPECT_EQ(NVML(nvml, nvmlInit_v2), NVML_ERROR_DRIVER_NOT_LOADED);
  }
}

TEST_F(ProcessTest, ASecondOwnerIsRefused) {
  Process first = owner();
  ASSERT_EQ(first.read(false), page_);
  EXPECT_EQ(owner().wait(), 1);
  EXPECT_THAT(ask({"jobs"}), HasSubstr("fakegpu_jobs")) << "and does no harm to the first";
}

TEST_F(ProcessTest, AStoppedOwnerTimesSettersOut) {
  Process process = owner();
  ASSERT_EQ(process.read(false), page_);
  process.signal(SIGSTOP);
  const Nvml nvml;
  ASSERT_EQ(NVML(nvml, nvmlInit_v2), NVML_SUCCESS);
  nvmlDevice_t gpu = nullptr;
  unsigned int value = 0;
  ASSERT_EQ(NVML(nvml, nvmlDeviceGetHandleByIndex_v2, 0U, &gpu), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvml, nvmlDeviceSetPowerManagementLimit, gpu, 400'000U), NVML_ERROR_TIMEOUT);
  EXPECT_EQ(NVML(nvml, nvmlDeviceGetPowerManagementLimit, gpu, &value), NVML_SUCCESS);
  process.signal(SIGCONT);
  EXPECT_EQ(NVML(nvml, nvmlDeviceSetPowerManagementLimit, gpu, 450'000U), NVML_SUCCESS);
  NVML(nvml, nvmlShutdown);
}

TEST_F(ProcessTest, RealTimeMovesByItself) {
  Process process = owner({"--speed", "50"});
  ASSERT_EQ(process.read(false), page_);
  // 50 job seconds a second: a step of 2 s is done soon. The wait is bounded by tries, each of which asks the owner.
  std::string jobs;
  for (int i = 0; i < 3000; ++i) {
    jobs = ask({"jobs"});
    if (jobs.find("\"steps\":0,") == std::string::npos) break;
    usleep(10'000);
  }
  EXPECT_THAT(jobs, HasSubstr("\"last_step_time_s\":0."));
}

TEST_F(ProcessTest, BadUsageIsRefusedBeforeAnythingIsMade) {
  for (const std::vector<std::string>& bad : {std::vector<std::string>{"--gpus", "0"},
                                              {"--gpus", "65"},
                                              {"--preset", "b9000"},
                                              {"--speed", "51"},
                                              {"--set", "gpu.idle=3W"},
                                              {"--set", "nonsense"},
                                              {"--frobnicate"},
                                              {"step"}}) {
    std::vector<std::string> words{program()};
    words.insert(words.end(), bad.begin(), bad.end());
    EXPECT_EQ(Process(words).wait(), 2) << bad.front();
  }
  EXPECT_NE(access(page_.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace flyball::fakegpu
