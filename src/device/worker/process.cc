#include "device/worker/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/filesystem.h"
#include "base/log.h"
#include "base/text.h"
#include "device/worker/serve.h"

namespace flyball::worker {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";
/// How long a destructor waits for a killed child: the kernel needs a moment, and for ever if a driver holds it.
constexpr int kLastWaitMilliseconds = 200;

/// Between fork and exec only what is safe after a fork of a program with threads.
[[noreturn]] void exec_worker(int descriptor, char* const* argv) {
  if (descriptor == kWorkerDescriptor) {
    ::fcntl(descriptor, F_SETFD, 0);
  } else {
    ::dup2(descriptor, kWorkerDescriptor);
  }
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // results are the owner's alone to print
  ::syscall(SYS_close_range, kWorkerDescriptor + 1, ~0U, 0U);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv(kThisProgram, argv);
  ::_exit(127);
}

class ExecHost final : public ProcessHost {
 public:
  explicit ExecHost(std::string library) : library_(std::move(library)) {}

  Result<Child> spawn(std::uint64_t generation, const std::string& boards) override {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
      return fail(ErrorCode::failed, fmt::format("cannot make a socket pair: {}", std::strerror(errno)), "worker");
    }
    std::string words[] = {"flyball-worker", "worker", std::to_string(::getpid()), std::to_string(generation), "nvml",
                           library_,         boards};
    char* argv[std::size(words) + 1] = {};
    for (std::size_t i = 0; i < std::size(words); ++i) argv[i] = words[i].data();
    const pid_t pid = ::fork();
    if (pid == 0) exec_worker(pair[1], argv);
    const int error = errno;
    ::close(pair[1]);
    if (pid < 0) {
      ::close(pair[0]);
      return fail(ErrorCode::failed, fmt::format("cannot start a process: {}", std::strerror(error)), "worker",
                  "raise the limit on processes (TasksMax= of the unit)");
    }
    return Child{pid, pair[0]};
  }

 private:
  std::string library_;
};

void wait_briefly(pid_t pid) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U));
  if (handle < 0) return;
  pollfd wait{handle, POLLIN, 0};
  ::poll(&wait, 1, kLastWaitMilliseconds);
  ::close(handle);
}

}  // namespace

void ProcessHost::kill(pid_t pid) { ::kill(pid, SIGKILL); }

Pulse ProcessHost::pulse(pid_t pid) {
  constexpr std::size_t kLine = 4096;
  Pulse pulse;
  // proc(5): the state follows the name, which is in parentheses and may hold any character.
  const auto stat = system_filesystem().read(fmt::format("/proc/{}/stat", pid), kLine);
  const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  pulse.ready = name_end != std::string::npos && stat->size() > name_end + 2 && (*stat)[name_end + 2] == 'R';
  // sched-stats(7) of the kernel: nanoseconds on a processor, nanoseconds waiting for one, number of turns.
  const auto sched = system_filesystem().read(fmt::format("/proc/{}/schedstat", pid), kLine);
  const auto words = sched ? split(trim(*sched), ' ') : std::vector<std::string_view>();
  const auto seconds = [&](std::size_t i) {
    const auto value = words.size() > i ? parse_int(words[i]) : Result<std::int64_t>(0);
    return Seconds(static_cast<double>(value.value_or(0)) * 1e-9);
  };
  pulse.ran = seconds(0);
  pulse.waited = seconds(1);
  return pulse;
}

bool ProcessHost::reap(pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; }

std::shared_ptr<ProcessHost> exec_host(std::string library) { return std::make_shared<ExecHost>(std::move(library)); }

WorkerProcess::WorkerProcess(std::string label, std::string boards, std::shared_ptr<ProcessHost> host, Clock& clock,
                             const WorkerOptions& options)
    : label_(std::move(label)),
      boards_(std::move(boards)),
      host_(std::move(host)),
      clock_(clock),
      options_(options),
      pause_(options.first_pause) {}

WorkerProcess::~WorkerProcess() {
  if (stage_ != Stage::none) {
    ::close(child_.descriptor);
    host_->kill(child_.pid);
    killed_.push_back(child_.pid);
  }
  for (const pid_t pid : killed_) {
    if (host_->reap(pid)) continue;
    wait_briefly(pid);
    host_->reap(pid);
  }
}

void WorkerProcess::reap() {
  std::erase_if(killed_, [&](pid_t pid) { return host_->reap(pid); });
}

Error WorkerProcess::abandon(DeviceState why, std::string what) {
  ::close(child_.descriptor);
  host_->kill(child_.pid);
  killed_.push_back(child_.pid);
  child_ = {};
  const bool opening = stage_ == Stage::starting;
  stage_ = Stage::none;
  trouble_ = why;
  ++abandoned_;
  next_start_ = clock_.now() + pause_;
  log::warning("worker", "{}: {}; worker {} abandoned, the next one in {} s at the earliest", label_, what, generation_,
               pause_.value());
  pause_ = std::min(pause_ * 2, options_.last_pause);
  last_failure_ =
      Error{ErrorCode::failed, std::move(what), label_,
            opening ? "look for Xid messages in `dmesg`; drain the node and reset the GPU that hangs, or reboot"
                    : "the GPU counts at its maximum until it answers again; look for Xid messages in "
                      "`dmesg`"};
  return *last_failure_;
}

Result<> WorkerProcess::start() {
  reap();
  if (stage_ != Stage::none) return {};
  if (last_failure_ && clock_.now() < next_start_) return fail(*last_failure_);
  if (killed_.size() >= options_.max_stuck) {
    return fail(ErrorCode::failed,
                fmt::format("{} abandoned workers are stuck in the driver, no more are started", killed_.size()),
                label_, "drain the node and reboot it");
  }
  auto child = host_->spawn(generation_ + 1, boards_);
  if (!child) {
    last_failure_ = child.error();
    next_start_ = clock_.now() + pause_;
    pause_ = std::min(pause_ * 2, options_.last_pause);
    return fail(*last_failure_);
  }
  child_ = *child;
  ++generation_;
  stage_ = Stage::starting;
  start_until_ = system_.now() + options_.start_deadline;
  return {};
}

void WorkerProcess::open(MonoTime until) { (void)be_running(until); }

Result<> WorkerProcess::be_running(std::optional<MonoTime> until) {
  FLYBALL_TRY(start());
  if (stage_ == Stage::running) return {};
  const MonoTime first = first_start_ ? start_until_ : system_.now();
  first_start_ = false;
  const auto hello = receive(std::min(until.value_or(first), start_until_));
  if (hello && hello->kind == Kind::hello) {
    stage_ = Stage::running;
    return {};
  }
  if (hello) return fail(abandon(DeviceState::not_ready, "the worker did not begin with a hello"));
  if (stage_ == Stage::none) return fail(hello.error());  // it ended or spoke nonsense
  if (system_.now() >= start_until_) {
    return fail(abandon(DeviceState::hung, fmt::format("opening the driver did not come back within {} s",
                                                       options_.start_deadline.value())));
  }
  return fail(ErrorCode::failed, fmt::format("worker {} is opening the driver", generation_), label_,
              "nothing: ask again");
}

Result<Message> WorkerProcess::receive(MonoTime until) {
  for (;;) {
    const double left = std::max(0.0, (until - system_.now()).value());
    pollfd wait{child_.descriptor, POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(left * 1000 + (left > 0 ? 1 : 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return fail(ErrorCode::failed, "no answer in time", label_);
    std::string bytes(kMaxMessageBytes, '\0');
    const ssize_t size = ::recv(child_.descriptor, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size <= 0) return fail(abandon(DeviceState::not_ready, "the worker process died"));
    bytes.resize(std::min(bytes.size(), static_cast<std::size_t>(size)));
    auto message = static_cast<std::size_t>(size) > kMaxMessageBytes
                       ? Result<Message>(fail(ErrorCode::failed, "a worker's message is too long"))
                       : decode(bytes);
    if (!message) return fail(abandon(DeviceState::not_ready, message.error().what));
    if (message->generation != generation_) {
      return fail(abandon(DeviceState::not_ready, fmt::format("an answer of generation {} came to generation {}",
                                                              message->generation, generation_)));
    }
    return message;
  }
}

/// The deadline counts what the call took: not the time for which the worker itself waited for a processor.
Result<Message> WorkerProcess::await_answer() {
  const Pulse before = host_->pulse(child_.pid);
  const MonoTime asked = system_.now();
  const MonoTime last = asked + options_.call_deadline * options_.most_starved;
  const Seconds slice = options_.call_deadline / 6;
  for (MonoTime until = asked + options_.call_deadline;;) {
    auto answer = receive(until);
    if (answer || stage_ == Stage::none) return answer;
    const Pulse now = host_->pulse(child_.pid);
    const Seconds own = now.ready ? now.ran - before.ran : until - asked - (now.waited - before.waited);
    if (own >= options_.call_deadline || until >= last) {
      return fail(abandon(DeviceState::hung, fmt::format("a call into the driver did not come back within {} s",
                                                         options_.call_deadline.value())));
    }
    until = std::min(last, until + std::clamp(options_.call_deadline - own, slice / 4, slice));
  }
}

Result<Message> WorkerProcess::exchange(const Message& request) {
  const std::string bytes = encode(request);
  ssize_t sent = -1;
  do {
    sent = ::send(child_.descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return fail(abandon(DeviceState::not_ready, "the worker process takes no request"));
  FLYBALL_ASSIGN(auto answer, await_answer());
  const bool fits = (answer.kind == Kind::value || answer.kind == Kind::error) && answer.sequence == request.sequence &&
                    answer.operation == request.operation;
  if (!fits) return fail(abandon(DeviceState::not_ready, "the worker answered another question"));
  return answer;
}

Result<Message> WorkerProcess::call(Operation operation, const Request& request) {
  FLYBALL_TRY(be_running());
  auto answer = exchange({Kind::request, operation, generation_, ++sequence_, put(request)});
  if (answer) {
    trouble_ = DeviceState::ok;
    pause_ = options_.first_pause;
    last_failure_.reset();
  }
  return answer;
}

WorkerHealth WorkerProcess::health() {
  reap();
  return {trouble_, generation_, abandoned_, killed_.size()};
}

}  // namespace flyball::worker
