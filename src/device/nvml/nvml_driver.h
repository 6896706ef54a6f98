#pragma once
// Driver over NVIDIA's management library. Bound at run time; every effect of the library's life (absent, mismatched,
// replaced under us, re-initialised) is a state and an error with a remedy, never an end of the process.

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/filesystem.h"
#include "core/driver.h"
#include "device/nvml/nvml_session.h"

namespace flyball::nvml {

struct NvmlOptions {
  std::string library = kDefaultLibrary;  ///< a file, or a bare name for the system's search
  std::string boot_id_path = "/proc/sys/kernel/random/boot_id";
  /// Exists while the driver is loaded, anew each time. Kernel folders of this kind are numbered in the order of
  /// creation and numbers do not come again, so the inode names one loading, to every process alike.
  std::string module_path = "/sys/module/nvidia";
  /// A folder for each board by its PCI address, with a file that names its UUID.
  std::string gpus_path = "/proc/driver/nvidia/gpus";
  Selection selection = {};
};

class NvmlDriver final : public Driver {
 public:
  /// `driver_load` names the present loading of the driver, or gives an empty text when that cannot be told.
  NvmlDriver(NvmlLoader loader, Clock& clock, Filesystem& files, std::function<std::string()> driver_load,
             std::string boot_id_path = NvmlOptions().boot_id_path, Selection selection = {});

  std::string name() const override { return "nvml"; }
  Result<DriverEpoch> epoch() override;
  Result<std::vector<DeviceInfo>> devices() override;
  /// While the driver is away, boards that are known answer with state `not_ready`.
  Result<GpuReading> read(const DeviceId& device) override;
  Result<PowerLimits> limits(const DeviceId& device) override;
  Result<Capabilities> capabilities(const DeviceId& device) override;
  /// Refused outside the range that the driver states at this moment, or when it states none. Never clamped here.
  Result<> set_power_limit(const DeviceId& device, Milliwatts limit) override;
  Result<> lock_clocks(const DeviceId& device, ClockRange range) override;
  Result<> reset_clocks(const DeviceId& device) override;

 private:
  /// Runs `act(board, ended)`; once more on a fresh session if the old one ended under it.
  template <class T, class Act>
  Result<T> on_board(const DeviceId& device, Act act);
  Result<Board*> board(const DeviceId& device);
  Error unknown_device(const DeviceId& device);
  Result<> set(const DeviceId& device, const char* what, const std::function<Return(Board&)>& act);

  Clock& clock_;
  Filesystem& files_;
  std::function<std::string()> driver_load_;
  std::string boot_id_path_;
  NvmlSession session_;
};

/// The PCI address of a board as the kernel's driver tells it in `folder`, without opening the board; else empty.
std::string pci_address_of(const std::string& folder, const DeviceId& device);

/// The machine's own: dlopen, system clock and files.
std::unique_ptr<Driver> make_nvml_driver(const NvmlOptions& options, Clock& clock);

}  // namespace flyball::nvml
