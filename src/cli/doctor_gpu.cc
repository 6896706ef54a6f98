#include "cli/doctor_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "core/unidentified.h"

namespace flyball::cli {
namespace {

/// A poll of a healthy board takes twelve calls of 10 to 20 ms at most; far more disturbs the job.
constexpr Seconds kSlowPoll{0.5};
/// Sensors of power show a mean over up to a second, and later.
constexpr Seconds kJobSettles{2.5};
constexpr std::size_t kSmallFileBytes = 64 * 1024;

/// Collects findings about one board, or about the machine for an empty id.
class Notes {
 public:
  Notes(WallTime now, DeviceId device) : now_(now), device_(std::move(device)) {}
  void add(Severity severity, std::string code, std::string what, std::string remedy) {
    found.push_back({severity, std::move(code), device_, std::move(what), std::move(remedy), now_, 1});
  }
  void info(std::string code, std::string what, std::string remedy = {}) {
    add(Severity::info, std::move(code), std::move(what), std::move(remedy));
  }
  void warning(std::string code, std::string what, std::string remedy) {
    add(Severity::warning, std::move(code), std::move(what), std::move(remedy));
  }
  void alarm(std::string code, std::string what, std::string remedy) {
    add(Severity::alarm, std::move(code), std::move(what), std::move(remedy));
  }
  std::vector<Finding> found;

 private:
  WallTime now_;
  DeviceId device_;
};

/// False when the board cannot be looked into any further.
bool note_state(Notes& notes, DeviceState state, bool unidentified = false) {
  switch (state) {
    case DeviceState::ok:
      return true;
    case DeviceState::lost:
      notes.alarm("gpu.lost", "the driver says that this GPU has fallen off the bus; its draw is still counted",
                  "look for Xid 79 in `dmesg`; drain the node and power-cycle it");
      return false;
    case DeviceState::hung:
      notes.alarm("gpu.hung", "a call into its driver does not come back; the GPU counts at its maximum",
                  "look for Xid messages in `dmesg`; drain the node and reset the GPU or reboot");
      return false;
    case DeviceState::not_ready:
      notes.warning(
          "gpu.not_ready",
          unidentified ? "the driver does not serve this GPU now: opening it has not come back, of others it has"
                       : "the driver does not serve this GPU now",
          "it is probed for again by itself; if doctor says the same in a minute, look for Xid messages in `dmesg`, "
          "drain the node and reset the GPU");
      return false;
  }
  return false;
}

void note_kind(Notes& notes, const DeviceInfo& info, const GpuReading& reading) {
  if (info.shared) {
    notes.info("gpu.shared",
               "split into MIG instances, each of which shows the whole board's power; a limit holds for all tenants",
               "let the site, not a job, set its limit");
  }
  if (info.module_scope) {
    notes.info(
        "gpu.module",
        "part of a module: its energy counter holds CPU and memory too, and a GPU limit does not bound the module",
        "energy is integrated from GPU power; meter the node for the rest");
  }
  if (!reading.power_average.ok() && !reading.power_instant.ok()) {
    notes.warning("gpu.no_power",
                  fmt::format("it reports no power (average: {}, instantaneous: {})",
                              to_string(reading.power_average.status), to_string(reading.power_instant.status)),
                  "use a meter outside; this GPU cannot be controlled by its own sensor");
  } else if (!reading.power_instant.ok()) {
    notes.info("gpu.power_source", "power is a trailing mean of about 1 s: faster swings are not seen");
  } else if (!reading.power_average.ok()) {
    notes.info("gpu.power_source", "power is instantaneous: periodic load aliases; the energy counter is preferred");
  }
  if (reading.energy.status == Status::not_supported && !info.module_scope) {
    notes.info("gpu.no_energy_counter", "it has no energy counter", "energy is integrated from power, and marked so");
  }
}

void note_reading(Notes& notes, const GpuReading& reading, bool shared) {
  std::string garbage;
  std::string failed;
  std::string denied;
  std::string absent;
  const auto look = [&](const auto& sample, const char* name, bool may_be_absent = true) {
    std::string* list = sample.status == Status::garbage         ? &garbage
                        : sample.status == Status::failed        ? &failed
                        : sample.status == Status::no_permission ? &denied
                        : sample.status == Status::not_supported ? &absent
                                                                 : nullptr;
    if (list == nullptr || (list == &absent && may_be_absent)) return;
    *list += list->empty() ? name : std::string(", ") + name;
  };
  look(reading.power_average, "average power");
  look(reading.power_instant, "instantaneous power");
  look(reading.energy, "energy");
  look(reading.utilisation_fraction, "utilisation", shared);
  look(reading.temperature, "temperature", false);
  look(reading.sm_clock, "clock", false);
  look(reading.limit_requested, "requested limit", false);
  look(reading.limit_enforced, "enforced limit", false);
  look(reading.throttle, "throttle reasons", false);
  if (!garbage.empty()) {
    notes.warning("gpu.garbage", "values that cannot be true: " + garbage,
                  "they are not used; if it stays, reset the GPU or update its driver");
  }
  if (!failed.empty()) {
    notes.warning("gpu.read_failed", "could not be read: " + failed, "look for Xid messages in `dmesg`");
  }
  if (!denied.empty()) {
    notes.warning("gpu.read_denied", "the driver refuses to let this user read: " + denied,
                  "run as a user of the host, and look for a restriction of the driver or the container");
  }
  if (!absent.empty()) {
    notes.warning(
        "gpu.not_told", "this board or driver does not tell: " + absent,
        "what it does not tell is not watched: without limits it is only observed, without throttle reasons a "
        "brake shows in the enforced limit alone");
  }
  if (reading.call_time > kSlowPoll) {
    notes.warning("gpu.slow_calls", fmt::format("one poll took {}", format(reading.call_time)),
                  "poll more rarely; look for another program that polls this GPU fast");
  }
}

/// The mean where the board tells one.
const Sample<Watts>& power_of(const GpuReading& reading) {
  return reading.power_average.ok() ? reading.power_average : reading.power_instant;
}

/// A job whose ranks wait for one another shows full utilisation at a seventh of its power (doc/fakegpu.md, hung-job).
bool seems_to_wait(const GpuReading& reading) {
  constexpr double kBusy = 0.95;
  constexpr double kLittle = 0.25;
  const Sample<Watts>& power = power_of(reading);
  if (!reading.utilisation_fraction.ok() || !power.ok() || !reading.limit_enforced.ok()) return false;
  return *reading.utilisation_fraction >= kBusy && *power <= (*reading.limit_enforced).watts() * kLittle;
}

void note_throttle(Notes& notes, const GpuReading& reading) {
  if (!reading.throttle.ok()) return;
  const ThrottleReasons reasons = *reading.throttle;
  if (reasons.external_brake()) {
    notes.alarm("gpu.power_brake", "the hardware power brake is on: power supply, BMC or building slows this board",
                "look into the BMC's event log and at the power supplies; learning pauses until it is gone");
  }
  if (reasons.thermal()) {
    notes.warning("gpu.thermal", "clocks are lowered because it is too hot", "check fans, coolant and inlet air");
  }
  const bool other_hardware = (reasons.bits & ThrottleReasons::kHardwareSlowdown) != 0;
  if (other_hardware && !reasons.external_brake() && !reasons.thermal()) {
    notes.warning("gpu.hardware_slowdown", "the hardware lowers the clocks and does not say why",
                  "check power cables and temperature");
  }
  if (reasons.software_power_cap()) {
    notes.info("gpu.power_cap_binds", "the power limit binds at this moment, as a limit should");
  }
}

void note_limits(Notes& notes, const PowerLimits& limits) {
  const auto& [requested, enforced, minimum, maximum, factory_default, persistence] = limits;
  if (!minimum.ok() || !maximum.ok()) {
    notes.warning("gpu.limits_unknown",
                  fmt::format("its range of limits is not known (minimum: {}, maximum: {})", to_string(minimum.status),
                              to_string(maximum.status)),
                  "it can be observed, not limited");
  }
  if (requested.ok() && enforced.ok() && *enforced < *requested) {
    notes.alarm("gpu.enforced_below_requested",
                fmt::format("{} is enforced though {} is requested: something outside the driver limits this board",
                            format(*enforced), format(*requested)),
                "look for a node power cap in the BMC; the enforced value is taken as the ceiling");
  }
  if (requested.ok() && factory_default.ok() && *requested != *factory_default) {
    notes.info("gpu.limit_not_default",
               fmt::format("its limit is {}, the factory default {}", format(*requested), format(*factory_default)),
               "if flyball holds no lease on it, someone else set this; it is kept as the value to restore");
  }
  if (persistence.ok() && !*persistence) {
    notes.warning("gpu.persistence_off", "persistence is off: with its last user gone the driver forgets the limit",
                  "run nvidia-persistenced (`systemctl enable --now nvidia-persistenced`)");
  }
}

/// Container runtimes often give root without the capability that the driver asks for.
bool lacks_sys_admin(Filesystem& files) {
  const auto status = files.read("/proc/self/status", kSmallFileBytes);
  if (!status) return false;
  for (const std::string_view line : split(*status, '\n')) {
    if (!line.starts_with("CapEff:")) continue;
    constexpr unsigned kSysAdminNibble = 21 / 4;  // capabilities(7): CAP_SYS_ADMIN is bit 21
    const std::string_view digits = trim(line.substr(7));
    if (digits.size() <= kSysAdminNibble) return false;
    const auto nibble = std::string_view("0123456789abcdef").find(digits[digits.size() - 1 - kSysAdminNibble]);
    return nibble != std::string_view::npos && (nibble & (1U << (21 % 4))) == 0;
  }
  return false;
}

void note_writing(Notes& notes, const GpuDoctorPlace& place, const Capabilities& can) {
  if (can.write_limit == Status::no_permission) {
    notes.warning("gpu.write_denied", "it can be read, but the driver refuses to set its limit",
                  "flyball-guard must run as root on the host, not in a container");
  } else if (can.write_limit == Status::not_supported) {
    notes.info("gpu.no_limits", "this board or driver cannot set a power limit", "it can be observed");
  } else if (place.is_root && lacks_sys_admin(place.files)) {
    notes.warning("gpu.write_doubtful", "root here lacks CAP_SYS_ADMIN: reads work, setting limits probably does not",
                  "run flyball-guard on the host");
  }
  if (can.lock_clocks == Status::not_supported) notes.info("gpu.no_locked_clocks", "its clocks cannot be locked");
}

/// Boards whose job seems to wait are added to `waiting`.
std::vector<Finding> examine(const GpuDoctorPlace& place, const DeviceInfo& info, std::vector<DeviceId>& waiting) {
  Notes notes(place.clock.wall(), info.id);
  if (is_unidentified(info.id)) {
    notes.warning("gpu.unidentified",
                  fmt::format("the board that the driver counts as {} has not told its UUID",
                              info.name.empty() ? info.id.text().substr(kUnidentifiedPrefix.size()) : info.name),
                  "compare `nvidia-smi -L` or `lspci -d 10de:` with the boards that are named here");
  }
  if (!note_state(notes, info.state, is_unidentified(info.id))) return notes.found;
  const auto reading = place.driver.read(info.id);
  if (!reading) {
    notes.warning("gpu.read_failed", reading.error().what, reading.error().remedy);
    return notes.found;
  }
  if (!note_state(notes, reading->state)) return notes.found;
  note_kind(notes, info, *reading);
  note_reading(notes, *reading, info.shared);
  if (seems_to_wait(*reading)) waiting.push_back(info.id);
  note_throttle(notes, *reading);
  if (const auto limits = place.driver.limits(info.id)) {
    note_limits(notes, *limits);
  } else {
    notes.warning("gpu.limits_unknown", limits.error().what, limits.error().remedy);
  }
  if (const auto can = place.driver.capabilities(info.id)) note_writing(notes, place, *can);
  return notes.found;
}

/// Looks again after kJobSettles at boards whose job seemed to wait: power and utilisation are means over different
/// spans, and the power of a job that has just begun is the last to rise.
std::vector<Finding> examine_waiting(const GpuDoctorPlace& place, const std::vector<DeviceId>& waiting) {
  if (waiting.empty()) return {};
  place.clock.sleep_until(place.clock.now() + kJobSettles);
  std::vector<Finding> found;
  for (const DeviceId& id : waiting) {
    const auto reading = place.driver.read(id);
    if (!reading || !seems_to_wait(*reading)) continue;
    Notes notes(place.clock.wall(), id);
    notes.warning("gpu.job_waits",
                  fmt::format("fully used, and yet it draws only {} of {}", format(*power_of(*reading)),
                              format(*reading->limit_enforced)),
                  "look at the job: one that waits in a collective for a rank that is gone looks like this");
    found.insert(found.end(), notes.found.begin(), notes.found.end());
  }
  return found;
}

void sort_by_urgency(std::vector<Finding>& found) {
  std::stable_sort(found.begin(), found.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
}

/// The names of running programs, as the kernel keeps them: 15 characters at most.
bool runs(Filesystem& files, std::string_view program) {
  const auto processes = files.list("/proc");
  if (!processes) return false;
  return std::any_of(processes->begin(), processes->end(), [&](const std::string& pid) {
    if (!parse_int(pid)) return false;
    const auto name = files.read("/proc/" + pid + "/comm", kSmallFileBytes);
    return name && trim(*name) == program.substr(0, 15);
  });
}

/// Units whose text sets limits, which is how sites do it by hand.
std::vector<std::string> units_that_set_limits(Filesystem& files) {
  std::vector<std::string> units;
  for (const std::string folder : {"/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}) {
    const auto names = files.list(folder);
    if (!names) continue;
    for (const std::string& name : *names) {
      if (!name.ends_with(".service")) continue;
      const auto text = files.read(fmt::format("{}/{}", folder, name), kSmallFileBytes);
      if (!text || text->find("nvidia-smi") == std::string::npos) continue;
      const bool sets = text->find(" -pl") != std::string::npos || text->find("--power-limit") != std::string::npos;
      if (sets && std::find(units.begin(), units.end(), name) == units.end()) units.push_back(name);
    }
  }
  return units;
}

}  // namespace

std::vector<Finding> doctor_gpus(const GpuDoctorPlace& place) {
  Notes machine(place.clock.wall(), {});
  const auto devices = place.driver.devices();
  if (!devices) {
    const bool nouveau = place.files.exists("/sys/module/nouveau") && !place.files.exists("/sys/module/nvidia");
    // Without boards or driver there is nothing to mend; a driver that is there and does not answer is broken.
    const bool absent = devices.error().code == ErrorCode::unsupported;
    machine.add(absent ? Severity::warning : Severity::alarm, "gpu.driver_unavailable", devices.error().what,
                nouveau ? "the nouveau module holds the boards: blacklist it and install NVIDIA's driver"
                        : devices.error().remedy);
    return machine.found;
  }
  if (devices->empty()) {
    machine.warning("gpu.none", "the driver is loaded and finds no GPU",
                    "check that `lspci -d 10de:` lists the boards and that this container may see them");
  }
  if (const auto epoch = place.driver.epoch()) {
    machine.info("gpu.driver",
                 fmt::format("{} driver {}, {} GPUs", place.driver.name(), epoch->version, devices->size()));
  }
  if (!place.is_root) {
    machine.info("gpu.unprivileged", "this program runs without privilege, as it should",
                 "limits are set through flyball-guard");
  }
  std::vector<DeviceId> waiting;
  for (const DeviceInfo& info : *devices) {
    const std::vector<Finding> found = examine(place, info, waiting);
    machine.found.insert(machine.found.end(), found.begin(), found.end());
  }
  const std::vector<Finding> found = examine_waiting(place, waiting);
  machine.found.insert(machine.found.end(), found.begin(), found.end());
  sort_by_urgency(machine.found);
  return machine.found;
}

std::vector<Finding> doctor_limit_writers(const GpuDoctorPlace& place) {
  Notes notes(place.clock.wall(), {});
  if (runs(place.files, "nvidia-powerd")) {
    notes.warning("writer.nvidia_powerd", "nvidia-powerd runs and moves limits by itself",
                  "stop it on machines whose limits flyball holds (`systemctl disable --now nvidia-powerd`)");
  }
  for (const std::string& unit : units_that_set_limits(place.files)) {
    notes.warning("writer.unit", fmt::format("the unit {} sets power limits with nvidia-smi", unit),
                  "start flyball-guard after it (After=), or remove it; a later change by it is reported as drift");
  }
  if (runs(place.files, "nv-hostengine")) {
    notes.info("writer.dcgm",
               "DCGM's host engine runs: it reads, and sets limits only where a policy or user asks it to",
               "set no power limit with `dcgmi config` on GPUs that flyball holds");
  }
  if (runs(place.files, "nvidia-persistenced")) {
    notes.info("writer.persistenced", "nvidia-persistenced runs: limits survive while no program uses a GPU");
  }
  sort_by_urgency(notes.found);
  return notes.found;
}

}  // namespace flyball::cli
