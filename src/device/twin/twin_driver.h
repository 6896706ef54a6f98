#pragma once
// The twin behind the interface of real hardware, in one process and in the clock's time, with everything that goes
// wrong in the field as a switch. What it reads comes through the twin's sensor model, never from its truth.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "core/driver.h"
#include "twin/machine.h"

namespace flyball::device {

/// Faults of one board's driver. The board itself (brake, BMC ceiling, lost) is told through TwinDriver.
struct TwinFaults {
  bool no_write_permission = false;
  bool power_unsupported = false;
  bool energy_unsupported = false;
  bool limits_unsupported = false;  ///< no constraints: must not be written
  bool set_unsupported = false;     ///< the setter alone
  bool setter_lies = false;         ///< success, and nothing happens
  bool setter_fails = false;        ///< an error, this time
  bool reads_fail = false;
  std::optional<Watts> garbage_power;       ///< shown in place of the reading
  std::optional<Milliwatts> garbage_limit;  ///< shown as the requested and enforced limit
  Seconds call_time{0};                     ///< each call takes that long on the clock
  Seconds hang_time{0};                     ///< > 0: each call takes that long and then fails
};

class TwinDriver final : public Driver {
 public:
  /// Both outlive the driver. The machine follows the clock: each call first advances it to `clock.now()`.
  TwinDriver(twin::Machine& machine, Clock& clock);

  std::string name() const override { return "twin"; }
  Result<DriverEpoch> epoch() override;
  Result<std::vector<DeviceInfo>> devices() override;
  Result<GpuReading> read(const DeviceId& device) override;
  Result<PowerLimits> limits(const DeviceId& device) override;
  Result<Capabilities> capabilities(const DeviceId& device) override;
  Result<> set_power_limit(const DeviceId& device, Milliwatts limit) override;
  Result<> lock_clocks(const DeviceId& device, ClockRange range) override;
  Result<> reset_clocks(const DeviceId& device) override;

  /// The faults of one board, to be changed at any time; an unknown board ends the program.
  TwinFaults& faults(const DeviceId& device);
  /// Another tool writes a limit now.
  void foreign_write(const DeviceId& device, Milliwatts limit);
  void set_bmc_ceiling(const DeviceId& device, std::optional<Milliwatts> ceiling);
  void set_brake(const DeviceId& device, bool on);
  void set_lost(const DeviceId& device, bool lost);
  /// Limits fall back to their defaults unless persistence is on; the epoch changes.
  void reload_driver();
  void set_persistence(bool on) { persistence_ = on; }
  /// As a reboot: epoch and limits are new whatever persistence says.
  void reboot();
  /// The driver is not loaded: every call fails until it is.
  void set_loaded(bool loaded) { loaded_ = loaded; }

  std::uint64_t writes() const { return writes_; }

 private:
  struct Board {
    twin::Gpu* gpu = nullptr;
    TwinFaults faults;
  };
  /// Advances the machine, lets the call take its time, and finds the board or says why not.
  Result<Board*> begin(const DeviceId& device);
  Result<Board*> begin_write(const DeviceId& device);
  Board& board(const DeviceId& device);
  void follow_clock();
  static void fill_power(const Board& board, GpuReading& reading);
  static void fill_state(const Board& board, GpuReading& reading);

  twin::Machine& machine_;
  Clock& clock_;
  std::unordered_map<DeviceId, Board> boards_;
  bool persistence_ = true;
  bool loaded_ = true;
  std::uint64_t boots_ = 1;
  std::uint64_t loads_ = 1;
  std::uint64_t writes_ = 0;
};

}  // namespace flyball::device
