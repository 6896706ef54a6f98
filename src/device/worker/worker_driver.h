#pragma once
// Driver whose calls cannot hang its caller: an inner driver runs in one child process per GPU, and one more that only
// lists. A call that does not come back costs its deadline once; its GPU is then `hung`, its worker abandoned and
// replaced, and the other GPUs go on. What is written while a worker is abandoned may or may not have happened: the
// guard verifies every write by reading.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/driver.h"
#include "device/worker/process.h"

namespace flyball::worker {

class WorkerDriver final : public Driver {
 public:
  /// `name` is the inner driver's. Not thread-safe; used and destroyed by the thread that made it.
  WorkerDriver(std::string name, std::shared_ptr<ProcessHost> host, Clock& clock, WorkerOptions options = {});

  std::string name() const override { return name_; }
  /// Starts a worker for each at once, before any listing, and waits for them a little: those that do not open by then
  /// are asked again later and hold up nobody. For the boards of a journal.
  void expect(const std::vector<DeviceId>& devices);

  /// Of the lister or, while it does not answer, of any worker that is well; the boards are looked at one by one for
  /// that where none is known yet.
  Result<DriverEpoch> epoch() override;
  /// If the lister does not answer, the boards as last seen, each with the state of its own worker. If it never has,
  /// because a board hangs it (or holds it up for longer than `list_patience`), the boards one by one: what hangs is
  /// then listed as hung, by the name it is expected under or as unidentified.
  Result<std::vector<DeviceInfo>> devices() override;
  /// Of a hung GPU: a reading without values whose state is `hung`.
  Result<GpuReading> read(const DeviceId& device) override;
  Result<PowerLimits> limits(const DeviceId& device) override;
  Result<Capabilities> capabilities(const DeviceId& device) override;
  Result<> set_power_limit(const DeviceId& device, Milliwatts limit) override;
  Result<> lock_clocks(const DeviceId& device, ClockRange range) override;
  Result<> reset_clocks(const DeviceId& device) override;

  /// Of the GPU's worker; of the lister for an empty id.
  WorkerHealth health(const DeviceId& device);

 private:
  bool is_own(const DeviceId& device) const;
  void take(std::vector<DeviceInfo> list);
  std::optional<DriverEpoch> epoch_of_any();
  struct Probe {
    std::unique_ptr<WorkerProcess> worker;
    DeviceInfo seen;
  };
  Result<> list_one_by_one();
  static void look(Probe& probe);
  WorkerProcess& worker_of(const DeviceId& device);
  Result<> set(Operation operation, const Request& request);

  std::string name_;
  std::shared_ptr<ProcessHost> host_;
  Clock& clock_;
  WorkerOptions options_;
  WorkerProcess lister_;
  std::vector<DeviceInfo> known_;
  std::vector<DeviceId> expected_;
  // While the lister cannot list:
  std::unique_ptr<WorkerProcess> counter_;  ///< opens no board
  std::vector<Probe> probes_;               ///< by index; each opens one board
  std::map<DeviceId, std::unique_ptr<WorkerProcess>> workers_;
};

/// `driver.expect`, if it is one of these.
void expect(Driver& driver, const std::vector<DeviceId>& devices);

/// NVML in worker processes of this very program; in the program itself if its main does not begin with
/// is_worker_program() (see serve.h), as in tests.
std::unique_ptr<Driver> make_nvml_in_workers(const std::string& library, Clock& clock, WorkerOptions options = {});

}  // namespace flyball::worker
