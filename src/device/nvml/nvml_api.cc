#include "device/nvml/nvml_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <initializer_list>

namespace flyball::nvml {
namespace {

class DynamicLibrary final : public NvmlLibrary {
 public:
  explicit DynamicLibrary(void* handle) : handle_(handle) { bind_all(); }
  ~DynamicLibrary() override {
    api_ = {};
    ::dlclose(handle_);
  }
  const NvmlApi& api() const override { return api_; }

 private:
  /// The first name that the library knows; newer names stand first.
  template <class R, class... Args>
  void bind(std::function<R(Args...)>& entry, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (void* symbol = ::dlsym(handle_, name)) {
        entry = reinterpret_cast<R (*)(Args...)>(symbol);
        return;
      }
    }
  }

  void bind_all() {
    bind(api_.init, {"nvmlInit_v2"});
    bind(api_.shutdown, {"nvmlShutdown"});
    bind(api_.driver_version, {"nvmlSystemGetDriverVersion"});
    bind(api_.count, {"nvmlDeviceGetCount_v2"});
    bind(api_.handle_by_index, {"nvmlDeviceGetHandleByIndex_v2"});
    bind(api_.handle_by_uuid, {"nvmlDeviceGetHandleByUUID"});
    bind(api_.handle_by_pci, {"nvmlDeviceGetHandleByPciBusId_v2"});
    bind(api_.uuid, {"nvmlDeviceGetUUID"});
    bind(api_.name, {"nvmlDeviceGetName"});
    bind(api_.pci_info, {"nvmlDeviceGetPciInfo_v3"});
    bind(api_.architecture, {"nvmlDeviceGetArchitecture"});
    bind(api_.mig_mode, {"nvmlDeviceGetMigMode"});
    bind(api_.mig_parent, {"nvmlDeviceGetDeviceHandleFromMigDeviceHandle"});
    bind(api_.field_values, {"nvmlDeviceGetFieldValues"});
    bind(api_.power_usage, {"nvmlDeviceGetPowerUsage"});
    bind(api_.energy, {"nvmlDeviceGetTotalEnergyConsumption"});
    bind(api_.utilization, {"nvmlDeviceGetUtilizationRates"});
    bind(api_.temperature, {"nvmlDeviceGetTemperature"});
    bind(api_.clock, {"nvmlDeviceGetClockInfo"});
    bind(api_.fan, {"nvmlDeviceGetFanSpeed"});
    bind(api_.throttle_reasons,
         {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
    bind(api_.limit_requested, {"nvmlDeviceGetPowerManagementLimit"});
    bind(api_.limit_enforced, {"nvmlDeviceGetEnforcedPowerLimit"});
    bind(api_.limit_constraints, {"nvmlDeviceGetPowerManagementLimitConstraints"});
    bind(api_.limit_default, {"nvmlDeviceGetPowerManagementDefaultLimit"});
    bind(api_.persistence, {"nvmlDeviceGetPersistenceMode"});
    bind(api_.set_limit, {"nvmlDeviceSetPowerManagementLimit"});
    bind(api_.set_locked_clocks, {"nvmlDeviceSetGpuLockedClocks"});
    bind(api_.reset_locked_clocks, {"nvmlDeviceResetGpuLockedClocks"});
    bind(api_.stand_in_load, {"flyball_stand_in_load"});
  }

  void* handle_;
  NvmlApi api_;
};

}  // namespace

NvmlLoader nvml_loader(std::string path) {
  return [path = std::move(path)]() -> Result<std::unique_ptr<NvmlLibrary>> {
    void* handle = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* why = ::dlerror();
      return fail(ErrorCode::unsupported,
                  fmt::format("NVIDIA's management library cannot be loaded ({})", why != nullptr ? why : path), path,
                  "install the NVIDIA driver with its management library, or name the file with --nvml-library");
    }
    return std::make_unique<DynamicLibrary>(handle);
  };
}

}  // namespace flyball::nvml
