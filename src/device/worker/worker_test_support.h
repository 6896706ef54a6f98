#pragma once
// A driver that hangs, dies and lies on command, and children that run it; for this room's tests only.

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "core/driver.h"
#include "core/unidentified.h"
#include "device/worker/process.h"
#include "device/worker/serve.h"

namespace flyball::worker {

inline const DeviceId kA = DeviceId::of("GPU-aaaa");
inline const DeviceId kB = DeviceId::of("GPU-bbbb");

enum class Fault : int { none, hang, die, driver_error, other_device, slow };

/// What the test tells its workers while they run, in memory that all of them share.
struct Switchboard {
  std::atomic<bool> open_a_hangs{false};  ///< for whoever opens A: all of A's workers, and whoever lists
  std::atomic<Fault> on_read_a{Fault::none};
  std::atomic<Fault> on_list{Fault::none};
  std::atomic<Fault> on_open{Fault::none};
  std::atomic<std::int64_t> limit_a{700'000};
  std::atomic<pid_t> reader_of_a{0};
};

inline void suffer(Fault fault) {
  if (fault == Fault::hang) {
    for (;;) ::pause();
  }
  if (fault == Fault::die) ::raise(SIGKILL);
  if (fault == Fault::slow) ::poll(nullptr, 0, 500);
}

/// The driver inside the workers of these tests.
class InnerDriver final : public Driver {
 public:
  explicit InnerDriver(Switchboard& board, std::string which = "all") : board_(board), which_(std::move(which)) {}
  std::string name() const override { return "inner"; }
  Result<DriverEpoch> epoch() override { return DriverEpoch{"boot", "load", "1"}; }
  Result<std::vector<DeviceInfo>> devices() override {
    const bool opens_a = which_ == "all" || which_ == "at:0" || which_ == kA.text();
    if (opens_a && board_.open_a_hangs) suffer(Fault::hang);
    suffer(board_.on_open);
    suffer(board_.on_list);
    if (board_.on_list == Fault::driver_error) return fail(ErrorCode::unsupported, "no driver here", {}, "load it");
    DeviceInfo a{kA, "A", "", DeviceState::ok, false, false};
    DeviceInfo b{kB, "B", "", DeviceState::ok, true, false};
    if (which_ == "none") a.id = unidentified_device(1), b.id = unidentified_device(2);
    if (which_ == "at:0" || which_ == kA.text()) return std::vector<DeviceInfo>{a};
    if (which_ == "at:1" || which_ == kB.text()) return std::vector<DeviceInfo>{b};
    return std::vector<DeviceInfo>{a, b};
  }
  Result<GpuReading> read(const DeviceId& device) override {
    GpuReading reading;
    reading.device = device;
    reading.power_average = Watts(device == kA ? 100 : 200);
    if (device == kA) {
      board_.reader_of_a = ::getpid();
      suffer(board_.on_read_a);
      if (board_.on_read_a == Fault::other_device) reading.device = kB;
    }
    if (device != kA && device != kB) return fail(ErrorCode::input, "no such GPU", device.text());
    return reading;
  }
  Result<PowerLimits> limits(const DeviceId&) override {
    PowerLimits limits;
    limits.enforced = Milliwatts(board_.limit_a);
    return limits;
  }
  Result<Capabilities> capabilities(const DeviceId&) override { return Capabilities{Status::ok, {}, {}, {}, {}, {}}; }
  Result<> set_power_limit(const DeviceId& device, Milliwatts limit) override {
    if (limit.value() < 100'000) return fail(ErrorCode::refused, "below the minimum", device.text(), "ask for more");
    board_.limit_a = limit.value();
    return {};
  }
  Result<> lock_clocks(const DeviceId&, ClockRange range) override {
    if (range.low != Hertz(1e9) || range.high != Hertz(2e9)) return fail(ErrorCode::input, "wrong clocks");
    return {};
  }
  Result<> reset_clocks(const DeviceId&) override { return fail(ErrorCode::unsupported, "no clocks to reset"); }

 private:
  Switchboard& board_;
  std::string which_;
};

/// Children that run a function instead of executing a program.
class ForkHost : public ProcessHost {
 public:
  using Body = std::function<int(int descriptor, std::uint64_t generation)>;
  explicit ForkHost(Body b) : body(std::move(b)) {}

  Result<Child> spawn(std::uint64_t generation, const std::string& which) override {
    boards = which;
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return fail(ErrorCode::failed, "pair");
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(pair[0]);
      ::_exit(become_worker(parent) ? body(pair[1], generation) : 9);
    }
    ::close(pair[1]);
    ++spawned;
    return Child{pid, pair[0]};
  }
  bool reap(pid_t pid) override { return !stuck && ProcessHost::reap(pid); }
  Pulse pulse(pid_t pid) override { return starved ? Pulse{true, {}, {}} : ProcessHost::pulse(pid); }

  Body body;
  std::string boards;  ///< of the child that is made, for its body
  int spawned = 0;
  bool stuck = false;    ///< the kernel lets go of no killed child
  bool starved = false;  ///< children look as if they got no processor
};

}  // namespace flyball::worker
