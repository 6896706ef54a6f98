#pragma once
// The owner's side of one worker: its start, its deadline, its end, and its successors.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/device.h"
#include "device/worker/wire.h"

namespace flyball::worker {

/// A running child and our end of the pair. The caller owns both.
struct Child {
  pid_t pid = -1;
  int descriptor = -1;
};

/// What the kernel says of a child: tells one that gets no processor from one that is stuck in a call.
struct Pulse {
  bool ready = false;  ///< runs, or waits for a processor; a call that is stuck sleeps
  Seconds ran;         ///< processor time since its start
  Seconds waited;      ///< for a processor, since its start
};

/// Makes and ends worker processes; tests make their own kinds.
class ProcessHost {
 public:
  virtual ~ProcessHost() = default;
  /// `boards`: which of them the child opens, see nvml::Selection::text.
  virtual Result<Child> spawn(std::uint64_t generation, const std::string& boards) = 0;
  virtual void kill(pid_t pid);
  /// Takes note of a child's end without waiting for it. True once it is gone.
  virtual bool reap(pid_t pid);
  /// All zero where the kernel does not tell: then every delay is the call's own.
  virtual Pulse pulse(pid_t pid);
};

/// Executes this very program again as `PROGRAM worker …` (see serve.h). The image is the running one even after an
/// upgrade replaced the file. Children die with the *thread* that makes them: use it from one that lives on.
std::shared_ptr<ProcessHost> exec_host(std::string library);

struct WorkerOptions {
  /// A driver call takes 10 to 20 ms and a read makes twelve of them, so this is six times the longest that is usual;
  /// and a node whose eight boards all hang is known for it in 12 s, within the 15 s that a restore may take.
  Seconds call_deadline{1.5};
  /// Time in which the worker was ready and got no processor is not the driver's: a call on a starved machine is given
  /// up after so many deadlines at the latest.
  double most_starved = 4;
  /// Opening the driver wakes every board when persistence is off, 1 to 3 s each (nvidia-persistenced's manual).
  Seconds start_deadline{30};
  /// How long boards that are opened one by one are waited for together; 1 to 3 s each is usual.
  Seconds settle{5};
  /// The lister is waited for so long before the boards are looked at one by one beside it. Absent = for its whole
  /// start, so that a list is not guessed from parts while it may still come whole.
  std::optional<Seconds> list_patience = {};
  /// Pauses before a successor is started, doubled while it does not get well.
  Seconds first_pause{1};
  Seconds last_pause{60};
  /// Killed workers that the kernel does not let go of. With so many stuck on one GPU no more are started.
  std::size_t max_stuck = 3;
};

/// What a screen or `doctor` may know about one worker.
struct WorkerHealth {
  DeviceState state = DeviceState::not_ready;  ///< ok, hung (a deadline passed), or not_ready (starting, crashed)
  std::uint64_t generation = 0;                ///< 0: never started
  std::uint64_t abandoned = 0;                 ///< workers given up so far
  std::size_t stuck = 0;                       ///< of these, killed and still not gone
};

class WorkerProcess {
 public:
  WorkerProcess(std::string label, std::string boards, std::shared_ptr<ProcessHost> host, Clock& clock,
                const WorkerOptions& options);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Starts the child if there is none and may be one; does not wait for it.
  Result<> start();
  /// Starts it and waits for it until then at most (of the system's clock). Calls after that wait for no start.
  void open(MonoTime until);
  /// One request and its answer (kind `value` or `error`). An error here means that the worker, not the driver,
  /// failed. Waits for the deadline at most; for a successor's start it does not wait at all.
  Result<Message> call(Operation operation, const Request& request);

  /// It has opened its driver and was not given up since.
  bool running() const { return stage_ == Stage::running; }
  WorkerHealth health();

 private:
  enum class Stage { none, starting, running };

  Result<> be_running(std::optional<MonoTime> until = {});
  Result<Message> exchange(const Message& request);
  Result<Message> await_answer();
  /// The next message before `until` (of the system's clock).
  Result<Message> receive(MonoTime until);
  /// Gives the child up: kills it, refuses whatever it may still say, and sets the pause. Returns the reason.
  Error abandon(DeviceState why, std::string what);
  void reap();

  std::string label_;
  std::string boards_;
  std::shared_ptr<ProcessHost> host_;
  Clock& clock_;        ///< of the pauses
  SystemClock system_;  ///< of the deadlines: processes run in real time
  WorkerOptions options_;
  Stage stage_ = Stage::none;
  Child child_;
  std::uint64_t generation_ = 0;
  std::uint64_t sequence_ = 0;
  MonoTime start_until_;
  bool first_start_ = true;
  DeviceState trouble_ = DeviceState::not_ready;
  std::optional<Error> last_failure_;
  Seconds pause_;
  MonoTime next_start_;
  std::uint64_t abandoned_ = 0;
  std::vector<pid_t> killed_;
};

}  // namespace flyball::worker
