#pragma once
// Real processes for the tests of the guard: flyball-fakegpu owns the boards, flyball-guard guards them, and this test
// plays the service manager. Everything lives in a folder of its own; every process is ended by its own id.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/temp_dir.h"
#include "guard/client.h"

namespace flyball {

inline std::string build_folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path().string(); }

/// Ends with the scope, if it has not yet.
class Process {
 public:
  Process() = default;
  /// stdout to `out` when given.
  explicit Process(const std::vector<std::string>& words, int out = -1) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    if (out >= 0) ::dup2(out, STDOUT_FILENO);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(arguments.front(), arguments.data());
    ::_exit(127);
  }
  static Process adopt(pid_t pid) {
    Process process;
    process.pid_ = pid;
    return process;
  }
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Process& operator=(Process&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~Process() { end(SIGKILL); }
  pid_t pid() const { return pid_; }
  bool running() {
    if (pid_ <= 0) return false;
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
    pid_ = -1;
    return false;
  }
  /// The exit code, or 128 + signal.
  int wait() {
    int status = 0;
    if (pid_ <= 0 || ::waitpid(pid_, &status, 0) != pid_) return -1;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int end(int signal) {
    if (pid_ <= 0) return -1;
    ::kill(pid_, signal);
    return wait();
  }

 private:
  pid_t pid_ = -1;
};

inline void nap(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

class GuardRig {
 public:
  explicit GuardRig(int gpus, const std::vector<std::string>& more = {}) {
    ::setenv("FLYBALL_FAKEGPU", page().c_str(), 1);
    std::vector<std::string> words = {build_folder() + "/flyball-fakegpu", "--gpus", std::to_string(gpus), "--page",
                                      page()};
    words.insert(words.end(), more.begin(), more.end());
    fake_ = Process(words, log("fakegpu.out"));
    wait_until([&] { return !boards().empty(); }, Seconds(60), "flyball-fakegpu is not ready");
  }
  ~GuardRig() {
    guard_.end(SIGKILL);
    fake_.end(SIGTERM);
    ::unsetenv("FLYBALL_FAKEGPU");
  }

  std::string page() const { return folder_.file("page"); }
  std::string socket() const { return folder_.file("guard.sock"); }
  std::string file(const std::string& name) const { return folder_.file(name); }
  Process& guard() { return guard_; }

  std::vector<std::string> guard_words(const std::string& command) const {
    return {build_folder() + "/flyball-guard",
            command,
            "--journal",
            file("journal"),
            "--audit",
            file("audit"),
            "--socket",
            socket(),
            "--nvml-library",
            build_folder() + "/fakegpu/libnvidia-ml.so.1"};
  }
  void start_guard(Seconds patience = Seconds(60), const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = guard_words("serve");
    words.insert(words.end(), more.begin(), more.end());
    guard_ = Process(words, log("guard.out"));
    wait_until([&] { return guard::GuardClient::connect(socket()).has_value(); }, patience, "the guard is not ready");
  }
  int run_guard(const std::string& command) { return Process(guard_words(command), log("command.out")).wait(); }

  /// The truth, as the owner of the boards tells it: UUID and requested limit.
  std::vector<std::pair<DeviceId, std::int64_t>> boards() {
    std::vector<std::pair<DeviceId, std::int64_t>> all;
    const auto status = nlohmann::json::parse(fakegpu({"status", "--json"}), nullptr, false);
    if (!status.is_object() || !status.contains("gpus")) return all;
    for (const auto& gpu : status["gpus"]) {
      all.emplace_back(DeviceId::of(gpu["uuid"].get<std::string>()), gpu["limit_requested_mw"].get<std::int64_t>());
    }
    return all;
  }
  std::vector<DeviceId> ids() {
    std::vector<DeviceId> all;
    for (const auto& [id, limit] : boards()) all.push_back(id);
    return all;
  }
  /// One command to the owner of the boards; its output.
  std::string fakegpu(const std::vector<std::string>& command) {
    std::vector<std::string> words = {build_folder() + "/flyball-fakegpu"};
    words.insert(words.end(), command.begin(), command.end());
    words.insert(words.end(), {"--page", page()});
    const std::string path = file("fakegpu.answer");
    std::filesystem::remove(path);
    const int out = log("fakegpu.answer");
    Process(words, out).wait();
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// Real time, generous: for what must come, however slow the machine is.
  template <class Condition>
  bool wait_until(Condition condition, Seconds patience, const std::string& what) {
    const SystemClock clock;
    const MonoTime end = clock.now() + patience;
    while (clock.now() < end) {
      if (condition()) return true;
      nap(20);
    }
    ADD_FAILURE() << what;
    return false;
  }

  /// A file that takes what a process prints.
  int log(const std::string& name) {
    const int fd = ::open(file(name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    descriptors_.push_back(Descriptor(fd));
    if (descriptors_.size() > 16) descriptors_.erase(descriptors_.begin());
    return fd;
  }

 private:
  TempDir folder_;
  std::vector<Descriptor> descriptors_;
  Process fake_;
  Process guard_;
};

}  // namespace flyball
