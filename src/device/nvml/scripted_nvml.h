#pragma once
// A management library made of a script, for tests: boards in any order, each call able to fail or lie, sessions that
// end under the caller. A handle of an ended session that is used again is counted: that must never happen.

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "device/nvml/nvml_api.h"

namespace flyball::nvml {

struct ScriptedBoard {
  std::string uuid;
  std::string name = "NVIDIA H100 80GB HBM3";
  std::string bus = "00000000:1B:00.0";
  unsigned device_and_vendor = 0x233010de;
  unsigned architecture = 9;
  bool mig = false;
  FieldValue average{kFieldPowerAverage, 0, 0, 0, kUnsignedInt, kSuccess, {.as_uint = 501'000}};
  FieldValue instant{kFieldPowerInstant, 0, 0, 0, kUnsignedInt, kSuccess, {.as_uint = 512'000}};
  bool has_module_scope = false;
  unsigned usage_mw = 499'000;
  unsigned long long energy_mj = 1'000'000;
  unsigned busy_percent = 97;
  unsigned celsius = 61;
  unsigned sm_mhz = 1755;
  unsigned memory_mhz = 2619;
  unsigned fan_percent = 0;
  unsigned long long throttle = 4;
  unsigned requested_mw = 700'000;
  unsigned enforced_mw = 700'000;
  unsigned minimum_mw = 200'000;
  unsigned maximum_mw = 700'000;
  unsigned default_mw = 700'000;
  unsigned persistence = 1;
  unsigned locked_low_mhz = 0;
  unsigned locked_high_mhz = 0;
  bool lost_at_enumeration = false;
  std::map<std::string, Return> failing;  ///< by name of the table's entry; "*" = every call on this board
};

class ScriptedNvml {
 public:
  std::vector<ScriptedBoard> boards;
  bool library_present = true;
  Return init_result = kSuccess;
  std::string version = "550.54.15";
  std::set<std::string> absent;           ///< entries that this library does not have
  std::map<std::string, Return> failing;  ///< calls on no board: "count", "driver_version"
  int loads = 0;
  int inits = 0;
  int stale_handles = 0;
  int setter_calls = 0;
  int searches = 0;              ///< by UUID
  std::set<std::string> opened;  ///< boards whose handle was asked for

  /// From now on every handle given out is void and every call says `UNINITIALIZED`, until init is called again.
  void end_session() { ended_ = true; }

  NvmlLoader loader() {
    return [this]() -> Result<std::unique_ptr<NvmlLibrary>> {
      ++loads;
      if (!library_present) return fail(ErrorCode::unsupported, "library absent", {}, "install the driver");
      return std::make_unique<Library>(table());
    };
  }

 private:
  struct Library final : NvmlLibrary {
    explicit Library(NvmlApi t) : table(std::move(t)) {}
    const NvmlApi& api() const override { return table; }
    NvmlApi table;
  };

  /// Handles carry the number of the session that gave them out.
  static constexpr std::uintptr_t kPerSession = 4096;
  DeviceHandle handle_of(std::size_t index) const {
    return reinterpret_cast<DeviceHandle>(session_ * kPerSession + index + 1);
  }

  Return enter(const char* entry) const {
    if (ended_) return kUninitialized;
    const auto it = failing.find(entry);
    return it == failing.end() ? kSuccess : it->second;
  }

  template <class Act>
  Return on(DeviceHandle handle, const char* entry, Act act) {
    if (const Return code = enter(entry); code != kSuccess) return code;
    const auto number = reinterpret_cast<std::uintptr_t>(handle);
    if (number / kPerSession != session_ || number % kPerSession > boards.size()) {
      ++stale_handles;
      return kInvalidArgument;
    }
    ScriptedBoard& board = boards[number % kPerSession - 1];
    for (const char* key : {"*", entry}) {
      if (const auto it = board.failing.find(key); it != board.failing.end()) return it->second;
    }
    act(board);
    return kSuccess;
  }

  static void copy(const std::string& text, char* out, unsigned bytes) { std::strncpy(out, text.c_str(), bytes - 1); }

  /// An entry that copies one number of the board.
  template <class T>
  std::function<Return(DeviceHandle, T*)> number(const char* entry, T ScriptedBoard::*member) {
    return [this, entry, member](DeviceHandle h, T* out) {
      return on(h, entry, [&](ScriptedBoard& b) { *out = b.*member; });
    };
  }

  NvmlApi table() {
    NvmlApi t;
    bind_system(t);
    bind_identity(t);
    bind_sensors(t);
    bind_limits(t);
    drop(t);
    return t;
  }

  void bind_system(NvmlApi& t) {
    t.init = [this] {
      ++inits;
      if (init_result != kSuccess) return init_result;
      ended_ = false;
      ++session_;
      return kSuccess;
    };
    t.shutdown = [] { return kSuccess; };
    t.driver_version = [this](char* out, unsigned n) { return copy(version, out, n), enter("driver_version"); };
    t.count = [this](unsigned* out) { return *out = static_cast<unsigned>(boards.size()), enter("count"); };
    t.handle_by_index = [this](unsigned i, DeviceHandle* out) {
      if (const Return code = enter("handle_by_index"); code != kSuccess) return code;
      if (boards.at(i).lost_at_enumeration) return kGpuIsLost;
      opened.insert(boards.at(i).uuid);
      return *out = handle_of(i), kSuccess;
    };
  }

  void bind_identity(NvmlApi& t) {
    t.handle_by_uuid = [this](const char* uuid, DeviceHandle* out) {
      ++searches;
      for (std::size_t i = 0; i < boards.size(); ++i) {
        if ("MIG-of-" + boards[i].uuid != uuid && boards[i].uuid != uuid) continue;
        opened.insert(boards[i].uuid);
        return *out = handle_of(i), kSuccess;
      }
      return kNotFound;
    };
    t.handle_by_pci = [this](const char* address, DeviceHandle* out) {
      for (std::size_t i = 0; i < boards.size(); ++i) {
        if (boards[i].bus == address) return opened.insert(boards[i].uuid), *out = handle_of(i), kSuccess;
      }
      return kNotFound;
    };
    t.mig_parent = [](DeviceHandle slice, DeviceHandle* out) { return *out = slice, kSuccess; };
    t.uuid = [this](DeviceHandle h, char* out, unsigned n) {
      return on(h, "uuid", [&](ScriptedBoard& b) { copy(b.uuid, out, n); });
    };
    t.name = [this](DeviceHandle h, char* out, unsigned n) {
      return on(h, "name", [&](ScriptedBoard& b) { copy(b.name, out, n); });
    };
    t.pci_info = [this](DeviceHandle h, PciInfo* out) {
      return on(h, "pci_info", [&](ScriptedBoard& b) {
        copy(b.bus, out->bus_id, sizeof out->bus_id);
        out->device_and_vendor = b.device_and_vendor;
      });
    };
    t.architecture = number("architecture", &ScriptedBoard::architecture);
    t.mig_mode = [this](DeviceHandle h, unsigned* now, unsigned* later) {
      return on(h, "mig_mode", [&](ScriptedBoard& b) { *now = *later = b.mig ? 1 : 0; });
    };
  }

  void bind_sensors(NvmlApi& t) {
    t.field_values = [this](DeviceHandle h, int count, FieldValue* entries) {
      return on(h, "field_values", [&](ScriptedBoard& b) {
        for (int i = 0; i < count; ++i) answer(b, entries[i]);
      });
    };
    t.power_usage = number("power_usage", &ScriptedBoard::usage_mw);
    t.energy = number("energy", &ScriptedBoard::energy_mj);
    t.utilization = [this](DeviceHandle h, Utilization* out) {
      return on(h, "utilization", [&](ScriptedBoard& b) { *out = {b.busy_percent, 10}; });
    };
    t.temperature = [this](DeviceHandle h, unsigned, unsigned* out) {
      return on(h, "temperature", [&](ScriptedBoard& b) { *out = b.celsius; });
    };
    t.clock = [this](DeviceHandle h, unsigned which, unsigned* out) {
      return on(h, "clock", [&](ScriptedBoard& b) { *out = which == kClockSm ? b.sm_mhz : b.memory_mhz; });
    };
    t.fan = number("fan", &ScriptedBoard::fan_percent);
    t.throttle_reasons = number("throttle_reasons", &ScriptedBoard::throttle);
  }

  void bind_limits(NvmlApi& t) {
    t.limit_requested = number("limit_requested", &ScriptedBoard::requested_mw);
    t.limit_enforced = number("limit_enforced", &ScriptedBoard::enforced_mw);
    t.limit_default = number("limit_default", &ScriptedBoard::default_mw);
    t.persistence = number("persistence", &ScriptedBoard::persistence);
    t.limit_constraints = [this](DeviceHandle h, unsigned* low, unsigned* high) {
      return on(h, "limit_constraints", [&](ScriptedBoard& b) {
        *low = b.minimum_mw;
        *high = b.maximum_mw;
      });
    };
    t.set_limit = [this](DeviceHandle h, unsigned mw) {
      ++setter_calls;
      return on(h, "set_limit", [&](ScriptedBoard& b) { b.requested_mw = b.enforced_mw = mw; });
    };
    t.set_locked_clocks = [this](DeviceHandle h, unsigned low, unsigned high) {
      ++setter_calls;
      return on(h, "set_locked_clocks", [&](ScriptedBoard& b) {
        b.locked_low_mhz = low;
        b.locked_high_mhz = high;
      });
    };
    t.reset_locked_clocks = [this](DeviceHandle h) {
      ++setter_calls;
      return on(h, "reset_locked_clocks", [](ScriptedBoard& b) { b.locked_low_mhz = b.locked_high_mhz = 0; });
    };
  }

  void drop(NvmlApi& t) {
    if (absent.contains("field_values")) t.field_values = {};
    if (absent.contains("energy")) t.energy = {};
    if (absent.contains("set_limit")) t.set_limit = {};
    if (absent.contains("architecture")) t.architecture = {};
    if (absent.contains("uuid")) t.uuid = {};
  }

  static void answer(const ScriptedBoard& b, FieldValue& entry) {
    const unsigned scope = entry.scope;
    if (scope == kScopeModule && !b.has_module_scope) {
      entry.status = kInvalidArgument;
    } else if (entry.field == kFieldPowerAverage) {
      entry = b.average;
    } else {
      entry = b.instant;
    }
  }

  bool ended_ = false;
  std::uintptr_t session_ = 0;
};

}  // namespace flyball::nvml
