#pragma once
// The calls of the management library as a table, so that tests script it and a missing symbol is an empty entry.

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "device/nvml/nvml_abi.h"

namespace flyball::nvml {

/// Every entry may be empty: that library does not have the call.
struct NvmlApi {
  std::function<Return()> init;
  std::function<Return()> shutdown;
  std::function<Return(char*, unsigned)> driver_version;
  std::function<Return(unsigned*)> count;
  std::function<Return(unsigned, DeviceHandle*)> handle_by_index;
  std::function<Return(const char*, DeviceHandle*)> handle_by_uuid;
  std::function<Return(const char*, DeviceHandle*)> handle_by_pci;
  std::function<Return(DeviceHandle, char*, unsigned)> uuid;
  std::function<Return(DeviceHandle, char*, unsigned)> name;
  std::function<Return(DeviceHandle, PciInfo*)> pci_info;
  std::function<Return(DeviceHandle, unsigned*)> architecture;
  std::function<Return(DeviceHandle, unsigned*, unsigned*)> mig_mode;  ///< current, pending
  std::function<Return(DeviceHandle, DeviceHandle*)> mig_parent;
  std::function<Return(DeviceHandle, int, FieldValue*)> field_values;
  std::function<Return(DeviceHandle, unsigned*)> power_usage;            ///< mW
  std::function<Return(DeviceHandle, unsigned long long*)> energy;       ///< mJ since the driver was loaded
  std::function<Return(DeviceHandle, Utilization*)> utilization;         ///< percent
  std::function<Return(DeviceHandle, unsigned, unsigned*)> temperature;  ///< °C
  std::function<Return(DeviceHandle, unsigned, unsigned*)> clock;        ///< MHz
  std::function<Return(DeviceHandle, unsigned*)> fan;                    ///< percent
  std::function<Return(DeviceHandle, unsigned long long*)> throttle_reasons;
  std::function<Return(DeviceHandle, unsigned*)> limit_requested;               ///< mW
  std::function<Return(DeviceHandle, unsigned*)> limit_enforced;                ///< mW
  std::function<Return(DeviceHandle, unsigned*, unsigned*)> limit_constraints;  ///< mW
  std::function<Return(DeviceHandle, unsigned*)> limit_default;                 ///< mW
  std::function<Return(DeviceHandle, unsigned*)> persistence;
  std::function<Return(DeviceHandle, unsigned)> set_limit;                    ///< mW
  std::function<Return(DeviceHandle, unsigned, unsigned)> set_locked_clocks;  ///< MHz
  std::function<Return(DeviceHandle)> reset_locked_clocks;
  /// Only in a stand-in (see fakegpu/): a number that names its present loading. The real driver's is in sysfs.
  std::function<unsigned long long()> stand_in_load;
};

/// A loaded library. The table lives as long as it; destroying it unloads, shutting down first is the caller's.
class NvmlLibrary {
 public:
  virtual ~NvmlLibrary() = default;
  virtual const NvmlApi& api() const = 0;
};

/// Called again for each attempt, so that a library that appears or is replaced later is found.
using NvmlLoader = std::function<Result<std::unique_ptr<NvmlLibrary>>()>;

constexpr const char* kDefaultLibrary = "libnvidia-ml.so.1";

/// dlopen of `path` (a file, or a bare name for the system's search). `unsupported` when it is not there.
NvmlLoader nvml_loader(std::string path = kDefaultLibrary);

}  // namespace flyball::nvml
