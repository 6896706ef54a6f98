#include "meter/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/clock.h"
#include "base/text.h"

extern char** environ;

namespace flyball::meter {
namespace {

constexpr std::size_t kMostOutput = 1 << 20;
/// How long a killed child may take to go; the kernel needs a moment. One that it does not let go is left behind.
constexpr Seconds kLastWait(0.2);

struct Pipe {
  int read = -1;
  int write = -1;
  bool open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  void close_write() {
    if (write >= 0) ::close(write);
    write = -1;
  }
  ~Pipe() {
    close_write();
    if (read >= 0) ::close(read);
  }
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> made;
  made.reserve(texts.size() + 1);
  for (const std::string& text : texts) made.push_back(const_cast<char*>(text.c_str()));
  made.push_back(nullptr);
  return made;
}

std::vector<std::string> environment_with(const std::vector<std::string>& variables) {
  std::vector<std::string> made;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view one(*at);
    if (!one.starts_with("LC_") && !one.starts_with("LANG")) made.emplace_back(one);
  }
  made.emplace_back("LC_ALL=C");
  made.insert(made.end(), variables.begin(), variables.end());
  return made;
}

int spawn(const std::vector<std::string>& arguments, const std::vector<std::string>& variables, const Pipe& out,
          const Pipe& error, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error.write, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  const auto environment = environment_with(variables);
  const int code = ::posix_spawnp(&pid, arguments.front().c_str(), &actions, &attributes, pointers(arguments).data(),
                                  pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return code;
}

/// False once the pipe is at its end.
bool take(int descriptor, std::string& to) {
  std::array<char, 16384> bytes{};
  const ssize_t got = ::read(descriptor, bytes.data(), bytes.size());
  if (got > 0) to.append(bytes.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

enum class Ending { complete, late, too_long };

Ending collect(const Pipe& out, const Pipe& error, MonoTime until, const Clock& clock, ChildOutput& made) {
  std::array<pollfd, 2> pipes = {pollfd{out.read, POLLIN, 0}, pollfd{error.read, POLLIN, 0}};
  while (pipes[0].fd >= 0 || pipes[1].fd >= 0) {
    const double left = (until - clock.now()).value();
    if (left <= 0) return Ending::late;
    if (::poll(pipes.data(), pipes.size(), static_cast<int>(left * 1000) + 1) <= 0) continue;
    if (pipes[0].revents != 0 && !take(out.read, made.out)) pipes[0].fd = -1;
    if (pipes[1].revents != 0 && !take(error.read, made.error)) pipes[1].fd = -1;
    if (made.out.size() + made.error.size() > kMostOutput) return Ending::too_long;
  }
  return Ending::complete;
}

/// Until the child is gone, or the time is. A pid that is not reaped stays ours: no other process gets it.
bool reap(pid_t pid, MonoTime until, Clock& clock, int& status) {
  for (;;) {
    if (::waitpid(pid, &status, WNOHANG) != 0) return true;
    if (clock.now() >= until) return false;
    clock.sleep_until(clock.now() + Seconds(0.002));
  }
}

}  // namespace

Result<ChildOutput> run_child(const std::vector<std::string>& arguments, const std::vector<std::string>& variables,
                              Seconds deadline) {
  SystemClock clock;
  const MonoTime until = clock.now() + deadline;
  Pipe out;
  Pipe error;
  if (!out.open() || !error.open()) return fail(ErrorCode::failed, std::strerror(errno), arguments.front());
  pid_t pid = -1;
  if (const int code = spawn(arguments, variables, out, error, pid); code != 0) {
    return fail(code == ENOENT ? ErrorCode::unsupported : ErrorCode::failed, std::strerror(code), arguments.front(),
                "install it");
  }
  out.close_write();
  error.close_write();
  ChildOutput made;
  int status = 0;
  const Ending ending = collect(out, error, until, clock, made);
  bool gone = ending == Ending::complete && reap(pid, until, clock, status);
  const bool ended_itself = gone;
  if (!gone) {
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);
    gone = reap(pid, clock.now() + kLastWait, clock, status);
  }
  if (ending == Ending::too_long) return fail(ErrorCode::failed, "its output is longer than 1 MiB", arguments.front());
  if (!ended_itself) {
    return fail(ErrorCode::failed, fmt::format("no end within {}, {}", format(deadline), gone ? "killed" : "abandoned"),
                arguments.front(), "is the device reachable?");
  }
  made.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return made;
}

}  // namespace flyball::meter
