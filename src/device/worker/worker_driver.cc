#include "device/worker/worker_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/unidentified.h"
#include "device/nvml/nvml_driver.h"
#include "device/worker/serve.h"

namespace flyball::worker {
namespace {

bool names(const std::vector<DeviceInfo>& list, const DeviceId& device) {
  return std::any_of(list.begin(), list.end(), [&](const DeviceInfo& info) { return info.id == device; });
}

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
      lister_(name_ + " lister", "all", host_, clock, options) {}

bool WorkerDriver::is_own(const DeviceId& device) const {
  return names(known_, device) || std::find(expected_.begin(), expected_.end(), device) != expected_.end();
}

WorkerProcess& WorkerDriver::worker_of(const DeviceId& device) {
  const auto found = workers_.find(device);
  if (found != workers_.end()) return *found->second;
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    if (device == unidentified_device(i + 1)) return *probes_[i].worker;
  }
  // Only boards that were listed get a process of their own; for others the lister has the driver's own refusal.
  if (!is_own(device) || is_unidentified(device)) return lister_;
  auto worker = std::make_unique<WorkerProcess>(device.text(), device.text(), host_, clock_, options_);
  return *workers_.emplace(device, std::move(worker)).first->second;
}

void WorkerDriver::expect(const std::vector<DeviceId>& devices) {
  expected_ = devices;
  if (expected_.size() > kMaxDevices) expected_.resize(kMaxDevices);
  for (const DeviceId& device : expected_) (void)worker_of(device).start();
  const MonoTime until = SystemClock().now() + options_.settle;
  for (const DeviceId& device : expected_) worker_of(device).open(until);
}

std::optional<DriverEpoch> WorkerDriver::epoch_of_any() {
  std::vector<WorkerProcess*> in_turn;
  if (lister_.running()) in_turn.push_back(&lister_);
  for (const auto& [device, worker] : workers_) {
    if (worker->running()) in_turn.push_back(worker.get());
  }
  for (const Probe& probe : probes_) {
    if (probe.worker->running()) in_turn.push_back(probe.worker.get());
  }
  for (WorkerProcess* worker : in_turn) {
    const auto answer = worker->call(Operation::epoch, {});
    if (!answer) continue;
    if (const auto epoch = value_of(*answer, get_epoch)) return *epoch;
  }
  return std::nullopt;
}

Result<DriverEpoch> WorkerDriver::epoch() {
  // The lister opens every board, so one that hangs holds it up; any worker that is well knows the loading too.
  if (const auto known = epoch_of_any()) return *known;
  const auto answer = lister_.call(Operation::epoch, {});
  if (answer) return value_of(*answer, get_epoch);
  if (lister_.health().state == DeviceState::hung && known_.empty() && list_one_by_one())
    if (const auto known = epoch_of_any()) return *known;
  return fail(answer.error());
}

/// What is known from now on, and a worker for each.
void WorkerDriver::take(std::vector<DeviceInfo> list) {
  known_ = std::move(list);
  if (known_.size() > kMaxDevices) known_.resize(kMaxDevices);
  std::erase_if(workers_, [&](const auto& entry) { return !is_own(entry.first); });
  for (const DeviceInfo& info : known_) (void)worker_of(info.id).start();  // all at once; each call waits for its own
}

/// Each board by its place, in a process of its own. Those that are expected and have not been found are among the ones
/// that do not answer, whichever is which.
Result<> WorkerDriver::list_one_by_one() {
  const MonoTime until = SystemClock().now() + (counter_ ? Seconds(0) : options_.settle);
  if (!counter_) counter_ = std::make_unique<WorkerProcess>(name_ + " counter", "none", host_, clock_, options_);
  counter_->open(until);
  FLYBALL_ASSIGN(const Message counted, counter_->call(Operation::devices, {}));
  FLYBALL_ASSIGN(const auto places, value_of(counted, get_devices));
  while (probes_.size() < std::min(places.size(), kMaxDevices)) {
    const std::string place = fmt::format("GPU at index {}", probes_.size());
    auto worker = std::make_unique<WorkerProcess>(place, fmt::format("at:{}", probes_.size()), host_, clock_, options_);
    (void)worker->start();
    const DeviceInfo unseen{unidentified_device(probes_.size() + 1), place, {}, DeviceState::not_ready, {}, {}};
    probes_.push_back({std::move(worker), unseen});
  }
  std::vector<DeviceInfo> list;
  std::vector<DeviceInfo> nameless;
  for (Probe& probe : probes_) {
    probe.worker->open(until);
    look(probe);
    auto& to = is_unidentified(probe.seen.id) ? nameless : list;
    if (!names(to, probe.seen.id)) to.push_back(probe.seen);
  }
  for (const DeviceId& device : expected_) {
    if (names(list, device)) continue;
    DeviceInfo info{device, {}, {}, DeviceState::hung, {}, {}};
    if (!nameless.empty()) {
      info = nameless.front();
      info.id = device;
      nameless.erase(nameless.begin());
    }
    list.push_back(std::move(info));
  }
  list.insert(list.end(), nameless.begin(), nameless.end());
  take(std::move(list));
  return {};
}

/// What is at its place now: as last seen, if it does not answer.
void WorkerDriver::look(Probe& probe) {
  const auto answer = probe.worker->call(Operation::devices, {});
  if (!answer) {
    const bool opening = probe.worker->health().abandoned == 0;
    probe.seen.state = opening ? DeviceState::not_ready : probe.worker->health().state;
    return;
  }
  const auto found = value_of(*answer, get_devices);
  if (!found || found->empty()) return;
  const DeviceId unseen = probe.seen.id;
  probe.seen = found->front();
  if (is_unidentified(probe.seen.id)) probe.seen.id = unseen;
}

Result<std::vector<DeviceInfo>> WorkerDriver::devices() {
  if (options_.list_patience && lister_.health().generation == 0)
    lister_.open(SystemClock().now() + *options_.list_patience);
  const auto answer = lister_.call(Operation::devices, {});
  if (answer) {
    FLYBALL_ASSIGN(auto list, value_of(*answer, get_devices));
    probes_.clear();
    counter_.reset();
    take(std::move(list));
  } else if (known_.empty() || counter_) {
    const WorkerHealth lister = lister_.health();
    const bool opening = options_.list_patience && lister.generation == 1 && lister.abandoned == 0;
    if ((lister.state != DeviceState::hung && !opening) || !list_one_by_one()) return fail(answer.error());
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
  if (known_.empty() && !is_own(device)) (void)devices();
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
  if (known_.empty() && !is_own(device)) (void)devices();
  FLYBALL_ASSIGN(const Message answer, worker_of(device).call(Operation::limits, {device, {}, {}}));
  return value_of(answer, get_limits);
}

Result<Capabilities> WorkerDriver::capabilities(const DeviceId& device) {
  if (known_.empty() && !is_own(device)) (void)devices();
  FLYBALL_ASSIGN(const Message answer, worker_of(device).call(Operation::capabilities, {device, {}, {}}));
  return value_of(answer, get_capabilities);
}

Result<> WorkerDriver::set(Operation operation, const Request& request) {
  if (known_.empty() && !is_own(request.device)) (void)devices();
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

void expect(Driver& driver, const std::vector<DeviceId>& devices) {
  if (auto* workers = dynamic_cast<WorkerDriver*>(&driver)) workers->expect(devices);
}

std::unique_ptr<Driver> make_nvml_in_workers(const std::string& library, Clock& clock, WorkerOptions options) {
  // A program that is not its own worker would run itself again, from the start.
  if (!can_be_worker_program()) return nvml::make_nvml_driver({.library = library}, clock);
  return std::make_unique<WorkerDriver>("nvml", exec_host(library), clock, options);
}

}  // namespace flyball::worker
