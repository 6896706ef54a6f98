#include "device/worker/worker_driver.h"

#include <algorithm>

#include "device/nvml/nvml_driver.h"
#include "device/worker/serve.h"

namespace flyball::worker {
namespace {

/// The value of an answer, or the driver's error that it carries.
template <class T>
Result<T> value_of(const Message& answer, Result<T> (*get)(std::string_view)) {
  if (answer.kind == Kind::value) return get(answer.payload);
  FLYBALL_ASSIGN(Error error, get_error(answer.payload));
  return fail(std::move(error));
}

GpuReading without_values(const DeviceId& device, DeviceState state) {
  GpuReading reading;
  reading.device = device;
  reading.state = state;
  const Status why = Status::failed;
  reading.power_average.status = reading.power_instant.status = why;
  reading.energy.status = reading.utilisation_fraction.status = reading.temperature.status = why;
  reading.sm_clock.status = reading.memory_clock.status = reading.fan_fraction.status = why;
  reading.limit_requested.status = reading.limit_enforced.status = reading.throttle.status = why;
  return reading;
}

}  // namespace

WorkerDriver::WorkerDriver(std::string name, std::shared_ptr<ProcessHost> host, Clock& clock, WorkerOptions options)
    : name_(std::move(name)),
      host_(std::move(host)),
      clock_(clock),
      options_(options),
      lister_(name_ + " lister", host_, clock, options) {}

bool WorkerDriver::listed(const DeviceId& device) const {
  return std::any_of(known_.begin(), known_.end(), [&](const DeviceInfo& info) { return info.id == device; });
}

WorkerProcess& WorkerDriver::worker_of(const DeviceId& device) {
  const auto found = workers_.find(device);
  if (found != workers_.end()) return *found->second;
  // Only boards that were listed get a process of their own; for others the lister has the driver's own refusal.
  if (!listed(device)) return lister_;
  auto worker = std::make_unique<WorkerProcess>(device.text(), host_, clock_, options_);
  return *workers_.emplace(device, std::move(worker)).first->second;
}

Result<DriverEpoch> WorkerDriver::epoch() {
  auto answer = lister_.call(Operation::epoch, {});
  // The lister looks at every board, so one that hangs holds it up; any worker that is well knows the loading too.
  for (auto it = workers_.begin(); !answer && it != workers_.end(); ++it) {
    if (it->second->health().state == DeviceState::ok) answer = it->second->call(Operation::epoch, {});
  }
  if (!answer) return fail(answer.error());
  return value_of(*answer, get_epoch);
}

Result<std::vector<DeviceInfo>> WorkerDriver::devices() {
  const auto answer = lister_.call(Operation::devices, {});
  if (!answer && known_.empty()) return fail(answer.error());
  if (answer) {
    FLYBALL_ASSIGN(known_, value_of(*answer, get_devices));
    if (known_.size() > kMaxDevices) known_.resize(kMaxDevices);
    std::erase_if(workers_, [&](const auto& entry) { return !listed(entry.first); });
    for (const DeviceInfo& info : known_) (void)worker_of(info.id).start();  // all at once; each call waits for its own
  }
  std::vector<DeviceInfo> list = known_;
  for (DeviceInfo& info : list) {
    const WorkerHealth health = worker_of(info.id).health();
    const bool troubled = health.abandoned > 0 && health.state != DeviceState::ok;
    if (troubled && info.state == DeviceState::ok) info.state = health.state;
  }
  return list;
}

Result<GpuReading> WorkerDriver::read(const DeviceId& device) {
  if (known_.empty()) (void)devices();
  WorkerProcess& worker = worker_of(device);
  const MonoTime begin = clock_.now();
  const WallTime wall = clock_.wall();
  const auto answer = worker.call(Operation::read, {device, {}, {}});
  if (answer) {
    FLYBALL_ASSIGN(GpuReading reading, value_of(*answer, get_reading));
    if (reading.device == device) return reading;
    return fail(ErrorCode::failed, "the worker read another GPU: " + reading.device.text(), device.text());
  }
  if (&worker == &lister_) return fail(answer.error());
  GpuReading reading = without_values(device, worker.health().state);
  if (reading.state == DeviceState::ok) reading.state = DeviceState::not_ready;
  reading.taken = begin;
  reading.wall = wall;
  reading.call_time = clock_.now() - begin;
  return reading;
}

Result<PowerLimits> WorkerDriver::limits(const DeviceId& device) {
  if (known_.empty()) (void)devices();
  FLYBALL_ASSIGN(const Message answer, worker_of(device).call(Operation::limits, {device, {}, {}}));
  return value_of(answer, get_limits);
}

Result<Capabilities> WorkerDriver::capabilities(const DeviceId& device) {
  if (known_.empty()) (void)devices();
  FLYBALL_ASSIGN(const Message answer, worker_of(device).call(Operation::capabilities, {device, {}, {}}));
  return value_of(answer, get_capabilities);
}

Result<> WorkerDriver::set(Operation operation, const Request& request) {
  if (known_.empty()) (void)devices();
  FLYBALL_ASSIGN(const Message answer, worker_of(request.device).call(operation, request));
  if (answer.kind == Kind::value) return {};
  FLYBALL_ASSIGN(Error error, get_error(answer.payload));
  return fail(std::move(error));
}

Result<> WorkerDriver::set_power_limit(const DeviceId& device, Milliwatts limit) {
  return set(Operation::set_power_limit, {device, limit, {}});
}

Result<> WorkerDriver::lock_clocks(const DeviceId& device, ClockRange range) {
  return set(Operation::lock_clocks, {device, {}, range});
}

Result<> WorkerDriver::reset_clocks(const DeviceId& device) { return set(Operation::reset_clocks, {device, {}, {}}); }

WorkerHealth WorkerDriver::health(const DeviceId& device) {
  return device.empty() ? lister_.health() : worker_of(device).health();
}

std::unique_ptr<Driver> make_nvml_in_workers(const std::string& library, Clock& clock, WorkerOptions options) {
  // A program that is not its own worker would run itself again, from the start.
  if (!can_be_worker_program()) return nvml::make_nvml_driver({.library = library}, clock);
  return std::make_unique<WorkerDriver>("nvml", exec_host(library), clock, options);
}

}  // namespace flyball::worker
