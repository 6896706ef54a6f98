#include "device/nvml/nvml_driver.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cmath>
#include <filesystem>

#include "base/log.h"
#include "base/text.h"
#include "device/nvml/nvml_error.h"
#include "device/nvml/nvml_read.h"

namespace flyball::nvml {
namespace {

constexpr std::size_t kBootIdBytes = 128;  ///< the kernel writes 37

/// Whole megahertz, as the library takes clocks; 0 if there is no such number.
unsigned megahertz(Hertz frequency) {
  const double mhz = std::round(frequency.value() / 1e6);
  return mhz >= 1 && mhz <= kMaxBelievableSmClock.value() / 1e6 ? static_cast<unsigned>(mhz) : 0;
}

Status worst_needed(Status a, Status b) { return a == Status::ok ? b : a; }

/// Whether a limit can be written, as far as that can be known without writing.
Status can_write(const NvmlApi& api, const Board& board, const PowerLimits& limits) {
  if (!api.set_limit) return Status::not_supported;
  if (board.write_denied) return Status::no_permission;
  return worst_needed(limits.minimum.status, limits.maximum.status);
}

Status can_lock(const NvmlApi& api, const Board& board) {
  if (!api.set_locked_clocks || !api.reset_locked_clocks) return Status::not_supported;
  if (board.architecture < kArchitectureVolta) return Status::not_supported;  // nvml.h: for Volta or newer
  return board.write_denied ? Status::no_permission : Status::ok;
}

}  // namespace

NvmlDriver::NvmlDriver(NvmlLoader loader, Clock& clock, Filesystem& files, std::function<std::string()> driver_load,
                       std::string boot_id_path, Selection selection)
    : clock_(clock),
      files_(files),
      driver_load_(std::move(driver_load)),
      boot_id_path_(std::move(boot_id_path)),
      session_(std::move(loader), clock, std::move(selection)) {}

Result<DriverEpoch> NvmlDriver::epoch() {
  FLYBALL_TRY(session_.ready());
  // A cheap call shows whether the session still holds; if not, it is opened again so that the answer is of now.
  unsigned count = 0;
  if (ends_session(call(session_.api().count, &count))) {
    session_.lose();
    FLYBALL_TRY(session_.ready());
  }
  FLYBALL_ASSIGN(const std::string boot, files_.read(boot_id_path_, kBootIdBytes));
  DriverEpoch epoch;
  epoch.boot_id = std::string(trim(boot));
  const auto& stand_in = session_.api().stand_in_load;
  epoch.driver_load = stand_in ? fmt::format("stand-in-{}", stand_in()) : driver_load_();
  // Where the loading has no name of its own, a driver that went away under us is a new one to this process.
  if (epoch.driver_load.empty() && session_.reopened() > 0) {
    epoch.driver_load = fmt::format("reopened-{}", session_.reopened());
  }
  epoch.version = session_.driver_version();
  return epoch;
}

Result<std::vector<DeviceInfo>> NvmlDriver::devices() {
  FLYBALL_TRY(session_.ready());
  if (const Result<> scanned = session_.scan(); !scanned) {
    session_.lose();
    FLYBALL_TRY(session_.ready());
  }
  std::vector<DeviceInfo> list;
  for (const Board& known : session_.boards()) list.push_back(known.info);
  return list;
}

Error NvmlDriver::unknown_device(const DeviceId& device) {
  if (!device.text().starts_with("MIG-")) {
    return {ErrorCode::input, "the driver knows no such GPU", device.text(), "list them with `flyball status`"};
  }
  DeviceHandle slice = nullptr;
  DeviceHandle parent = nullptr;
  std::array<char, kUuidBytes> uuid{};
  std::string whole = "its GPU";
  if (call(session_.api().handle_by_uuid, device.text().c_str(), &slice) == kSuccess &&
      call(session_.api().mig_parent, slice, &parent) == kSuccess &&
      call(session_.api().uuid, parent, uuid.data(), kUuidBytes) == kSuccess) {
    whole = uuid.data();
  }
  return {ErrorCode::unsupported, "power and limits belong to the whole GPU, not to a MIG instance", device.text(),
          fmt::format("use {}", whole)};
}

Result<Board*> NvmlDriver::board(const DeviceId& device) {
  FLYBALL_TRY(session_.ready());
  Board* found = session_.find(device);
  if (found == nullptr) {
    FLYBALL_TRY(session_.scan());  // it may have come since
    found = session_.find(device);
  }
  if (found == nullptr) return fail(unknown_device(device));
  return found;
}

template <class T, class Act>
Result<T> NvmlDriver::on_board(const DeviceId& device, Act act) {
  for (int attempt = 0;; ++attempt) {
    FLYBALL_ASSIGN(Board * target, board(device));
    if (target->handle == nullptr) return fail(error_of(kGpuIsLost, "reach the GPU", device.text()));
    Return ended = kSuccess;
    Result<T> result = act(*target, ended);
    if (ended == kSuccess) return result;
    log::warning("nvml", "the driver went away under this process (NVML {})", return_name(ended));
    session_.lose();
    if (attempt > 0) return fail(error_of(ended, "reach the driver", device.text()));
  }
}

Result<GpuReading> NvmlDriver::read(const DeviceId& device) {
  GpuReading reading;
  const auto begin = [&] {
    reading = GpuReading();
    reading.device = device;
    reading.taken = clock_.now();
    reading.wall = clock_.wall();
  };
  begin();
  const Result<bool> done = on_board<bool>(device, [&](Board& target, Return& ended) -> Result<bool> {
    begin();  // opening the library is not part of the call
    read_board(session_.api(), target, clock_, reading, ended);
    return true;
  });
  reading.call_time = clock_.now() - reading.taken;
  if (done) return reading;
  const Board* known = session_.find(device);
  if (known == nullptr) return fail(done.error());
  reading.state = session_.open() ? DeviceState::lost : DeviceState::not_ready;
  const Status why = session_.open() ? Status::lost : Status::failed;
  reading.power_average.status = reading.power_instant.status = why;
  reading.energy.status = reading.utilisation_fraction.status = reading.temperature.status = why;
  reading.sm_clock.status = reading.memory_clock.status = reading.fan_fraction.status = why;
  reading.limit_requested.status = reading.limit_enforced.status = reading.throttle.status = why;
  return reading;
}

Result<PowerLimits> NvmlDriver::limits(const DeviceId& device) {
  return on_board<PowerLimits>(device, [&](Board& target, Return& ended) -> Result<PowerLimits> {
    PowerLimits found = read_limits(session_.api(), target, ended);
    if (target.info.state == DeviceState::lost) {
      return fail(error_of(kGpuIsLost, "read the power limits", device.text()));
    }
    return found;
  });
}

Result<Capabilities> NvmlDriver::capabilities(const DeviceId& device) {
  return on_board<Capabilities>(device, [&](Board& target, Return& ended) -> Result<Capabilities> {
    GpuReading reading;
    read_board(session_.api(), target, clock_, reading, ended);
    const PowerLimits found = read_limits(session_.api(), target, ended);
    if (target.info.state == DeviceState::lost) {
      return fail(error_of(kGpuIsLost, "probe the GPU", device.text()));
    }
    Capabilities can;
    can.read_power = reading.power_average.status;
    can.read_instant_power = reading.power_instant.status;
    can.read_energy = reading.energy.status;
    can.read_limits = worst_needed(found.enforced.status, worst_needed(found.minimum.status, found.maximum.status));
    can.write_limit = can_write(session_.api(), target, found);
    can.lock_clocks = can_lock(session_.api(), target);
    return can;
  });
}

Result<> NvmlDriver::set(const DeviceId& device, const char* what, const std::function<Return(Board&)>& act) {
  const Result<bool> done = on_board<bool>(device, [&](Board& target, Return& ended) -> Result<bool> {
    const Return code = act(target);
    if (ends_session(code)) {
      ended = code;
      return true;
    }
    target.write_denied = code == kNoPermission;
    if (code == kGpuIsLost) target.info.state = DeviceState::lost;
    if (code != kSuccess) return fail(error_of(code, what, device.text()));
    return true;
  });
  if (!done) return fail(done.error());
  return {};
}

Result<> NvmlDriver::set_power_limit(const DeviceId& device, Milliwatts limit) {
  FLYBALL_ASSIGN(const PowerLimits now, limits(device));
  if (!now.minimum.ok() || !now.maximum.ok()) {
    return fail(ErrorCode::refused,
                fmt::format("the driver does not state the board's range of limits (minimum {}, maximum {})",
                            to_string(now.minimum.status), to_string(now.maximum.status)),
                device.text(), "this board can be observed, not limited");
  }
  if (limit < *now.minimum || limit > *now.maximum) {
    return fail(ErrorCode::refused,
                fmt::format("a limit of {} mW is outside the board's range of {} to {} mW", limit.value(),
                            now.minimum.value.value(), now.maximum.value.value()),
                device.text(), "ask for a limit within it");
  }
  return set(device, "set the power limit", [&](Board& target) {
    return call(session_.api().set_limit, target.handle, static_cast<unsigned>(limit.value()));
  });
}

Result<> NvmlDriver::lock_clocks(const DeviceId& device, ClockRange range) {
  const unsigned low = megahertz(range.low);
  const unsigned high = megahertz(range.high);
  if (low == 0 || high == 0 || low > high) {
    return fail(ErrorCode::input, fmt::format("{} to {} is no range of clocks", format(range.low), format(range.high)),
                device.text(), "give two frequencies in whole MHz, the lower first");
  }
  return set(device, "lock the clocks",
             [&](Board& target) { return call(session_.api().set_locked_clocks, target.handle, low, high); });
}

Result<> NvmlDriver::reset_clocks(const DeviceId& device) {
  return set(device, "reset the clocks",
             [&](Board& target) { return call(session_.api().reset_locked_clocks, target.handle); });
}

std::string pci_address_of(const std::string& folder, const DeviceId& device) {
  constexpr std::size_t kInformationBytes = 4096;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const auto text = system_filesystem().read((entry.path() / "information").string(), kInformationBytes);
    if (!text) continue;
    for (const std::string_view line : split(*text, '\n')) {
      if (line.starts_with("GPU UUID:") && trim(line.substr(9)) == device.text())
        return entry.path().filename().string();
    }
  }
  return {};
}

std::unique_ptr<Driver> make_nvml_driver(const NvmlOptions& options, Clock& clock) {
  const auto driver_load = [path = options.module_path]() -> std::string {
    struct stat about {};
    return ::stat(path.c_str(), &about) == 0 ? fmt::format("module-{}", about.st_ino) : std::string();
  };
  Selection selection = options.selection;
  selection.pci_address = [folder = options.gpus_path](const DeviceId& id) { return pci_address_of(folder, id); };
  return std::make_unique<NvmlDriver>(nvml_loader(options.library), clock, system_filesystem(), driver_load,
                                      options.boot_id_path, std::move(selection));
}

}  // namespace flyball::nvml
