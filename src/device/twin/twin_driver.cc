#include "device/twin/twin_driver.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace flyball::device {

namespace {

Milliwatts minimum_of(const twin::Gpu& gpu) { return Milliwatts::from(gpu.parameters().minimum_limit); }
Milliwatts maximum_of(const twin::Gpu& gpu) { return Milliwatts::from(gpu.parameters().maximum_limit); }

}  // namespace

TwinDriver::TwinDriver(twin::Machine& machine, Clock& clock) : machine_(machine), clock_(clock) {
  for (twin::Gpu& gpu : machine_.gpus()) boards_[gpu.id()].gpu = &gpu;
}

TwinDriver::Board& TwinDriver::board(const DeviceId& device) {
  const auto found = boards_.find(device);
  if (found == boards_.end()) {
    log::error("twin", "there is no board {} in this machine", device.text());
    std::abort();
  }
  return found->second;
}

void TwinDriver::follow_clock() { machine_.advance_to(clock_.now()); }

Result<TwinDriver::Board*> TwinDriver::begin(const DeviceId& device) {
  follow_clock();
  const auto found = boards_.find(device);
  if (found == boards_.end()) {
    return fail(ErrorCode::input, "no such board", device.text(), "list the boards with `flyball status`");
  }
  Board& board = found->second;
  const Seconds hang = board.faults.hang_time;
  const Seconds took = hang > Seconds(0) ? hang : board.faults.call_time;
  if (took > Seconds(0)) {
    clock_.sleep_until(clock_.now() + took);
    follow_clock();
  }
  if (hang > Seconds(0)) {
    return fail(ErrorCode::failed, fmt::format("the driver call did not return for {}", format(hang)), device.text());
  }
  if (!loaded_) {
    return fail(ErrorCode::failed, "the driver is not loaded", device.text(), "load the driver");
  }
  return &board;
}

Result<TwinDriver::Board*> TwinDriver::begin_write(const DeviceId& device) {
  FLYBALL_ASSIGN(Board * board, begin(device));
  const TwinFaults& faults = board->faults;
  if (board->gpu->lost()) return fail(ErrorCode::failed, "the GPU is lost", device.text(), "reset it or its node");
  if (faults.set_unsupported) return fail(ErrorCode::unsupported, "this board cannot be set", device.text());
  if (faults.no_write_permission) {
    return fail(ErrorCode::refused, "no permission to set limits", device.text(), "run the guard as root");
  }
  if (faults.setter_fails) return fail(ErrorCode::failed, "the driver refused this time", device.text());
  ++writes_;
  return board;
}

Result<DriverEpoch> TwinDriver::epoch() {
  follow_clock();
  if (!loaded_) return fail(ErrorCode::failed, "the driver is not loaded", {}, "load the driver");
  return DriverEpoch{fmt::format("twin-boot-{}", boots_), fmt::format("load-{}", loads_), "twin"};
}

Result<std::vector<DeviceInfo>> TwinDriver::devices() {
  follow_clock();
  if (!loaded_) return fail(ErrorCode::failed, "the driver is not loaded", {}, "load the driver");
  std::vector<DeviceInfo> all;
  std::size_t index = 0;
  for (const twin::Gpu& gpu : std::as_const(machine_).gpus()) {
    DeviceInfo info;
    info.id = gpu.id();
    info.name = gpu.parameters().name;
    info.pci_bus = fmt::format("00000000:{:02X}:00.0", 0x10 + index++ % 0xe0);
    info.state = gpu.lost() ? DeviceState::lost : DeviceState::ok;
    all.push_back(std::move(info));
  }
  return all;
}

Result<GpuReading> TwinDriver::read(const DeviceId& device) {
  GpuReading r;
  r.device = device;
  r.taken = clock_.now();
  r.wall = clock_.wall();
  FLYBALL_ASSIGN(const Board* board, begin(device));
  r.call_time = clock_.now() - r.taken;
  if (board->faults.reads_fail) return fail(ErrorCode::failed, "the driver could not read this time", device.text());
  if (board->gpu->lost()) {
    r.state = DeviceState::lost;
    r.power_average = Sample<Watts>::absent(Status::lost);
    r.power_instant = Sample<Watts>::absent(Status::lost);
    r.energy = Sample<Joules>::absent(Status::lost);
    return r;
  }
  fill_power(*board, r);
  fill_state(*board, r);
  return r;
}

void TwinDriver::fill_power(const Board& board, GpuReading& r) {
  const twin::Sensor& sensor = board.gpu->sensor();
  const twin::GpuParameters& gpu = board.gpu->parameters();
  const auto power = [&](Watts shown) -> Sample<Watts> {
    if (board.faults.power_unsupported) return Sample<Watts>::absent(Status::not_supported);
    if (board.faults.garbage_power) return *board.faults.garbage_power;
    return Milliwatts::from(shown).watts();
  };
  // A board that does not average has one field, and that field is the power of the moment.
  const bool averages = gpu.sensor_average > Seconds(0);
  r.power_average = averages ? power(sensor.average()) : Sample<Watts>::absent(Status::not_supported);
  r.power_instant =
      gpu.has_instant_power || !averages ? power(sensor.instant()) : Sample<Watts>::absent(Status::not_supported);
  const bool counts = gpu.has_energy_counter && !board.faults.energy_unsupported;
  r.energy = counts ? Sample<Joules>(sensor.counter()) : Sample<Joules>::absent(Status::not_supported);
}

void TwinDriver::fill_state(const Board& board, GpuReading& r) {
  const twin::GpuTruth state = board.gpu->truth();
  // Whole per cent, degrees and megahertz, as NVML has them.
  r.utilisation_fraction = std::round(state.utilisation_fraction * 100) / 100;
  r.temperature = Celsius(std::round(state.temperature.value()));
  r.sm_clock = Hertz(std::round(state.sm_clock.value() / 1e6) * 1e6);
  r.memory_clock = state.memory_clock;
  r.throttle = state.throttle;
  r.fan_fraction = board.gpu->parameters().has_fan ? Sample<double>(std::round(state.fan_fraction * 100) / 100)
                                                   : Sample<double>::absent(Status::not_supported);
  if (board.faults.limits_unsupported) {
    r.limit_requested = Sample<Milliwatts>::absent(Status::not_supported);
    r.limit_enforced = Sample<Milliwatts>::absent(Status::not_supported);
  } else {
    r.limit_requested = board.faults.garbage_limit.value_or(board.gpu->requested_limit());
    r.limit_enforced = board.faults.garbage_limit.value_or(board.gpu->enforced_limit());
  }
}

Result<PowerLimits> TwinDriver::limits(const DeviceId& device) {
  FLYBALL_ASSIGN(const Board* board, begin(device));
  if (board->faults.reads_fail) return fail(ErrorCode::failed, "the driver could not read this time", device.text());
  PowerLimits limits;
  if (board->gpu->lost() || board->faults.limits_unsupported) {
    const Status why = board->gpu->lost() ? Status::lost : Status::not_supported;
    limits.requested = limits.enforced = limits.minimum = limits.maximum = limits.factory_default =
        Sample<Milliwatts>::absent(why);
    limits.persistence = Sample<bool>::absent(why);
    return limits;
  }
  const twin::Gpu& gpu = *board->gpu;
  limits.requested = board->faults.garbage_limit.value_or(gpu.requested_limit());
  limits.enforced = board->faults.garbage_limit.value_or(gpu.enforced_limit());
  limits.minimum = minimum_of(gpu);
  limits.maximum = maximum_of(gpu);
  limits.factory_default = Milliwatts::from(gpu.parameters().default_limit);
  limits.persistence = persistence_;
  return limits;
}

Result<Capabilities> TwinDriver::capabilities(const DeviceId& device) {
  FLYBALL_ASSIGN(const Board* board, begin(device));
  const TwinFaults& faults = board->faults;
  const twin::GpuParameters& gpu = board->gpu->parameters();
  const auto when = [](bool has) { return has ? Status::ok : Status::not_supported; };
  Capabilities c;
  if (board->gpu->lost()) {
    c.read_power = c.read_instant_power = c.read_energy = c.read_limits = c.write_limit = c.lock_clocks = Status::lost;
    return c;
  }
  c.read_power = when(!faults.power_unsupported);
  c.read_instant_power = when(!faults.power_unsupported && (gpu.has_instant_power || gpu.sensor_average <= Seconds(0)));
  c.read_energy = when(!faults.energy_unsupported && gpu.has_energy_counter);
  c.read_limits = when(!faults.limits_unsupported);
  c.write_limit = when(!faults.set_unsupported);
  c.lock_clocks = when(!faults.set_unsupported);
  if (faults.no_write_permission && c.write_limit == Status::ok) c.write_limit = c.lock_clocks = Status::no_permission;
  return c;
}

Result<> TwinDriver::set_power_limit(const DeviceId& device, Milliwatts limit) {
  FLYBALL_ASSIGN(const Board* board, begin_write(device));
  const Milliwatts low = minimum_of(*board->gpu);
  const Milliwatts high = maximum_of(*board->gpu);
  if (limit < low || limit > high) {
    return fail(ErrorCode::input,
                fmt::format("limit {} mW is outside {} to {} mW", limit.value(), low.value(), high.value()),
                device.text(), "ask for a limit inside the board's range");
  }
  if (!board->faults.setter_lies) board->gpu->set_limit(limit);
  return {};
}

Result<> TwinDriver::lock_clocks(const DeviceId& device, ClockRange range) {
  FLYBALL_ASSIGN(const Board* board, begin_write(device));
  if (!(range.low >= Hertz(0) && range.low <= range.high && range.high > Hertz(0))) {
    return fail(ErrorCode::input, fmt::format("clock range {} to {} is empty", format(range.low), format(range.high)),
                device.text(), "give low <= high");
  }
  if (!board->faults.setter_lies) board->gpu->lock_clocks(range);
  return {};
}

Result<> TwinDriver::reset_clocks(const DeviceId& device) {
  FLYBALL_ASSIGN(const Board* board, begin_write(device));
  if (!board->faults.setter_lies) board->gpu->reset_clocks();
  return {};
}

TwinFaults& TwinDriver::faults(const DeviceId& device) { return board(device).faults; }

void TwinDriver::foreign_write(const DeviceId& device, Milliwatts limit) {
  follow_clock();
  board(device).gpu->set_limit(limit);
}

void TwinDriver::set_bmc_ceiling(const DeviceId& device, std::optional<Milliwatts> ceiling) {
  follow_clock();
  board(device).gpu->set_external_ceiling(ceiling);
}

void TwinDriver::set_brake(const DeviceId& device, bool on) {
  follow_clock();
  board(device).gpu->set_brake(on);
}

void TwinDriver::set_lost(const DeviceId& device, bool lost) {
  follow_clock();
  board(device).gpu->set_lost(lost);
}

void TwinDriver::reload_driver() {
  follow_clock();
  ++loads_;
  if (persistence_) return;
  for (twin::Gpu& gpu : machine_.gpus()) gpu.reload_driver();
}

void TwinDriver::reboot() {
  follow_clock();
  ++boots_;
  ++loads_;
  for (twin::Gpu& gpu : machine_.gpus()) gpu.reload_driver();
}

}  // namespace flyball::device
