#include "device/nvml/nvml_error.h"

#include <fmt/format.h>

#include <utility>

namespace flyball::nvml {
namespace {

struct Meaning {
  Return code;
  const char* name;
  ErrorCode kind;
  const char* what;
  const char* remedy;
};

constexpr Meaning kMeanings[] = {
    {kUninitialized, "UNINITIALIZED", ErrorCode::failed, "the library was re-initialised under this process",
     "nothing: it is opened again by itself"},
    {kInvalidArgument, "INVALID_ARGUMENT", ErrorCode::input, "the driver does not accept the value", ""},
    {kNotSupported, "NOT_SUPPORTED", ErrorCode::unsupported, "this board or driver does not support it", ""},
    {kNoPermission, "NO_PERMISSION", ErrorCode::failed, "no permission",
     "limits are written by flyball-guard, which runs as root; in a container, give it the device files"},
    {kNotFound, "NOT_FOUND", ErrorCode::input, "no such device", "list the devices with `flyball status`"},
    {kInsufficientPower, "INSUFFICIENT_POWER", ErrorCode::failed, "the board's power cables are not properly attached",
     "check the auxiliary power connectors"},
    {kDriverNotLoaded, "DRIVER_NOT_LOADED", ErrorCode::unsupported, "the NVIDIA kernel driver is not loaded",
     "load it with `modprobe nvidia` and look at `dmesg` if that fails; it is probed for again by itself"},
    {kTimeout, "TIMEOUT", ErrorCode::failed, "the driver timed out", "look for Xid messages in `dmesg`"},
    {kIrqIssue, "IRQ_ISSUE", ErrorCode::failed, "the kernel reports an interrupt problem with a GPU",
     "look for NVRM messages in `dmesg`"},
    {kFunctionNotFound, "FUNCTION_NOT_FOUND", ErrorCode::unsupported, "this version of the library lacks the call",
     "a newer driver may have it"},
    {kGpuIsLost, "GPU_IS_LOST", ErrorCode::failed, "the GPU has fallen off the bus",
     "look for Xid 79 in `dmesg`; drain the node and power-cycle it"},
    {kResetRequired, "RESET_REQUIRED", ErrorCode::failed, "the GPU must be reset before it can be used",
     "drain it, then `nvidia-smi --gpu-reset`"},
    {kOperatingSystem, "OPERATING_SYSTEM", ErrorCode::failed, "the operating system blocks the device",
     "check the device cgroup and the mode of /dev/nvidia*"},
    {kVersionMismatch, "LIB_RM_VERSION_MISMATCH", ErrorCode::unsupported,
     "the management library and the loaded kernel driver are of different versions",
     "the driver was upgraded without a reload: reboot, or unload and load the nvidia modules"},
    {kInUse, "IN_USE", ErrorCode::failed, "the GPU is in use", ""},
    {kNoData, "NO_DATA", ErrorCode::failed, "the driver has no data yet", ""},
    {kDeprecated, "DEPRECATED", ErrorCode::unsupported, "this driver has withdrawn the call", ""},
    {kNotReady, "NOT_READY", ErrorCode::unsupported, "the driver is not ready yet",
     "it is probed for again by itself; on NVSwitch systems check that the fabric manager runs"},
    {kGpuNotFound, "GPU_NOT_FOUND", ErrorCode::unsupported, "the driver finds no GPU",
     "check that `lspci -d 10de:` lists the boards"},
    {kUnknown, "UNKNOWN", ErrorCode::failed, "the driver reports an internal error",
     "look for Xid messages in `dmesg`"},
};

const Meaning* find(Return code) {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.code == code) return &meaning;
  }
  return nullptr;
}

}  // namespace

std::string return_name(Return code) {
  const Meaning* meaning = find(code);
  return meaning != nullptr ? meaning->name : fmt::format("code {}", static_cast<int>(code));
}

Status status_of(Return code) {
  switch (code) {
    case kSuccess:
      return Status::ok;
    case kNotSupported:
    case kFunctionNotFound:
    case kDeprecated:
      return Status::not_supported;
    case kNoPermission:
      return Status::no_permission;
    case kGpuIsLost:
      return Status::lost;
    case kNoData:
      return Status::missing;
    default:
      return Status::failed;
  }
}

bool ends_session(Return code) {
  return code == kUninitialized || code == kDriverNotLoaded || code == kVersionMismatch;
}

Error error_of(Return code, std::string_view call, std::string where) {
  const Meaning* meaning = find(code);
  if (meaning == nullptr) {
    return {ErrorCode::failed, fmt::format("cannot {}: the driver answers {}", call, return_name(code)),
            std::move(where), "look for NVRM messages in `dmesg`"};
  }
  return {meaning->kind, fmt::format("cannot {}: {} (NVML {})", call, meaning->what, meaning->name), std::move(where),
          meaning->remedy};
}

}  // namespace flyball::nvml
