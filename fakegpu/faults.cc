#include "fakegpu/faults.h"

#include <fmt/format.h>

#include <cstring>

#include "base/text.h"
#include "fakegpu/lib/nvml_api.h"

namespace flyball::fakegpu {

namespace {

struct CallName {
  fg_call call;
  std::string_view name;
};
constexpr CallName kCalls[] = {
    {FG_CALL_POWER, "power"},
    {FG_CALL_ENERGY, "energy"},
    {FG_CALL_LIMIT, "limit"},
    {FG_CALL_ENFORCED, "enforced"},
    {FG_CALL_CONSTRAINTS, "constraints"},
    {FG_CALL_DEFAULT_LIMIT, "default_limit"},
    {FG_CALL_SET_LIMIT, "set_limit"},
    {FG_CALL_LOCK_CLOCKS, "lock_clocks"},
    {FG_CALL_RESET_CLOCKS, "reset_clocks"},
    {FG_CALL_FIELDS, "fields"},
    {FG_CALL_UTILIZATION, "utilization"},
    {FG_CALL_TEMPERATURE, "temperature"},
    {FG_CALL_CLOCK, "clock"},
    {FG_CALL_THROTTLE, "throttle"},
    {FG_CALL_FAN, "fan"},
    {FG_CALL_MEMORY, "memory"},
    {FG_CALL_STATE, "state"},
    {FG_CALL_IDENTITY, "identity"},
    {FG_CALL_PERSISTENCE, "persistence"},
    {FG_CALL_SET_PERSISTENCE, "set_persistence"},
    {FG_CALL_MIG, "mig"},
    {FG_CALL_HANDLE, "handle"},
};

struct CodeName {
  std::uint16_t code;
  std::string_view name;
};
constexpr CodeName kCodes[] = {
    {NVML_SUCCESS, "SUCCESS"},
    {NVML_ERROR_UNINITIALIZED, "UNINITIALIZED"},
    {NVML_ERROR_INVALID_ARGUMENT, "INVALID_ARGUMENT"},
    {NVML_ERROR_NOT_SUPPORTED, "NOT_SUPPORTED"},
    {NVML_ERROR_NO_PERMISSION, "NO_PERMISSION"},
    {NVML_ERROR_NOT_FOUND, "NOT_FOUND"},
    {NVML_ERROR_INSUFFICIENT_SIZE, "INSUFFICIENT_SIZE"},
    {NVML_ERROR_INSUFFICIENT_POWER, "INSUFFICIENT_POWER"},
    {NVML_ERROR_DRIVER_NOT_LOADED, "DRIVER_NOT_LOADED"},
    {NVML_ERROR_TIMEOUT, "TIMEOUT"},
    {NVML_ERROR_IRQ_ISSUE, "IRQ_ISSUE"},
    {NVML_ERROR_GPU_IS_LOST, "GPU_IS_LOST"},
    {NVML_ERROR_RESET_REQUIRED, "RESET_REQUIRED"},
    {NVML_ERROR_OPERATING_SYSTEM, "OPERATING_SYSTEM"},
    {NVML_ERROR_LIB_RM_VERSION_MISMATCH, "LIB_RM_VERSION_MISMATCH"},
    {NVML_ERROR_IN_USE, "IN_USE"},
    {NVML_ERROR_MEMORY, "MEMORY"},
    {NVML_ERROR_NO_DATA, "NO_DATA"},
    {NVML_ERROR_NOT_READY, "NOT_READY"},
    {NVML_ERROR_UNKNOWN, "UNKNOWN"},
};

template <class Table>
std::string names(const Table& table) {
  std::string all;
  for (const auto& entry : table) all += fmt::format("{}{}", all.empty() ? "" : " ", entry.name);
  return all;
}

}  // namespace

Result<std::vector<fg_call>> parse_calls(std::string_view name) {
  std::vector<fg_call> found;
  for (const CallName& entry : kCalls) {
    const bool setter = entry.call == FG_CALL_SET_LIMIT || entry.call == FG_CALL_LOCK_CLOCKS ||
                        entry.call == FG_CALL_RESET_CLOCKS || entry.call == FG_CALL_SET_PERSISTENCE;
    if (name == entry.name || name == "all" || (name == "setters" && setter)) found.push_back(entry.call);
  }
  if (!found.empty()) return found;
  return fail(ErrorCode::input, fmt::format("there is no call '{}'", name.substr(0, 40)), {},
              fmt::format("use one of: {} setters all", names(kCalls)));
}

Result<std::uint16_t> parse_return_code(std::string_view name) {
  for (const CodeName& entry : kCodes) {
    if (name == entry.name) return entry.code;
  }
  const auto number = parse_int(name);
  if (number && *number >= 0 && *number <= 0xffff) return static_cast<std::uint16_t>(*number);
  return fail(ErrorCode::input, fmt::format("there is no return code '{}'", name.substr(0, 40)), {},
              fmt::format("use a number or one of: {}", names(kCodes)));
}

Result<> CallFaults::break_field(std::uint32_t field, std::uint16_t code, bool poison) {
  for (fg_field_fault& entry : fields_) {
    if (entry.field != 0 && entry.field != field) continue;
    entry = {field, code, static_cast<std::uint16_t>(poison ? 1 : 0)};
    return {};
  }
  return fail(ErrorCode::input, fmt::format("at most {} fields can be broken at a time", FG_MAX_FIELD_FAULTS), {},
              "clear some first");
}

void CallFaults::write(fg_gpu& record) const {
  std::memcpy(record.fault_code, codes_, sizeof codes_);
  std::memcpy(record.fault_mode, modes_, sizeof modes_);
  std::memcpy(record.fault_value, values_, sizeof values_);
  std::memcpy(record.field_fault, fields_, sizeof fields_);
}

}  // namespace flyball::fakegpu
