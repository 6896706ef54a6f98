#pragma once
// Peers of the meters' tests: other people's servers, started on loopback and ended with the test.

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/filesystem.h"

extern char** environ;

namespace flyball::meter {

inline bool has_program(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

/// A port that was free a moment ago, for servers that take no port 0.
inline int free_port(int type) {
  const int s = ::socket(AF_INET, type, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(s, reinterpret_cast<sockaddr*>(&address), size) != 0) ADD_FAILURE() << "no free port";
  ::getsockname(s, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(s);
  return ntohs(address.sin_port);
}

class Peer {
 public:
  explicit Peer(const std::vector<std::string>& arguments) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    out_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    std::vector<char*> argv;
    for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    if (::posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
  }
  ~Peer() { stop(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void stop() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    pid_ = -1;
    if (out_ >= 0) ::close(out_);
    out_ = -1;
  }

  /// What it prints, up to a line end; empty after a minute.
  std::string line() {
    std::string text;
    pollfd wait{out_, POLLIN, 0};
    while (::poll(&wait, 1, 60'000) > 0) {
      char c = 0;
      if (::read(out_, &c, 1) != 1 || c == '\n') break;
      text += c;
    }
    return text;
  }

  /// Asks until the answer is yes; false after a minute.
  template <class Question>
  static bool wait_until(Question&& question) {
    SystemClock clock;
    for (const MonoTime until = clock.now() + Seconds(60); clock.now() < until;) {
      if (question()) return true;
      clock.sleep_until(clock.now() + Seconds(0.05));
    }
    return false;
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

/// Runs a program to its end; its exit status.
inline int run_to_end(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  int status = -1;
  if (::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ) == 0) ::waitpid(pid, &status, 0);
  posix_spawn_file_actions_destroy(&actions);
  return status;
}

inline void write_file(const std::string& path, std::string_view text) {
  ASSERT_TRUE(system_filesystem().write_atomically(path, text)) << path;
}

}  // namespace flyball::meter
