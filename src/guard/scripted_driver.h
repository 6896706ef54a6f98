#pragma once
// A driver for tests: boards that obey, refuse, lie, hang, get lost, are limited from outside and written by others,
// as the test says. Header-only, linked into no program.

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "core/driver.h"

namespace flyball::guard {

struct ScriptedBoard {
  static constexpr Milliwatts kLie{7'000};  ///< what `writes_other` adds
  enum class Setter { obeys, refuses, ignores, writes_other, applies_late, times_out_and_applies };

  Milliwatts requested{700'000};
  Milliwatts minimum{200'000};
  Milliwatts maximum{700'000};
  Milliwatts factory_default{700'000};
  std::optional<Milliwatts> outside;  ///< a BMC's cap: enforced is the lower
  bool enforces_above = false;        ///< enforced stays at the maximum whatever is asked
  bool persistence = true;
  bool shared = false;
  DeviceState state = DeviceState::ok;
  Setter setter = Setter::obeys;
  bool unreadable = false;
  std::optional<Milliwatts> garbled;  ///< what the next reads show instead of the request
  bool garbage_range = false;
  std::optional<Milliwatts> late;  ///< set by a call that applies late; see ScriptedDriver::land_late
  bool clocks_locked = false;
  int locks = 0;  ///< calls that locked
  Hertz clock{1.4e9}, lock{1.4e9};
  std::vector<Milliwatts> writes;  ///< every value that a setter was called with

  Milliwatts enforced() const {
    if (enforces_above) return maximum;
    return outside ? std::min(*outside, requested) : requested;
  }
};

class ScriptedDriver final : public Driver {
 public:
  explicit ScriptedDriver(int boards) {
    for (int i = 0; i < boards; ++i) boards_[DeviceId::of("GPU-" + std::string(1, static_cast<char>('a' + i)))] = {};
  }

  ScriptedBoard& board(const DeviceId& id) { return boards_.at(id); }
  std::vector<DeviceId> ids() const {
    std::vector<DeviceId> ids;
    for (const auto& [id, board] : boards_) ids.push_back(id);
    return ids;
  }
  /// Limits are back at their defaults, locks and stuck calls are gone: a driver in use cannot be unloaded.
  void reload() {
    load_ = "load-" + std::to_string(++loads_);
    for (auto& [id, board] : boards_) {
      board.requested = board.factory_default;
      board.clocks_locked = false;
      board.late.reset();
    }
  }
  void reboot() {
    boot_ = "boot-" + std::to_string(++loads_);
    reload();
  }
  void land_late(const DeviceId& id) {
    auto& board = boards_.at(id);
    if (board.late) board.requested = *board.late;
    board.late.reset();
  }
  bool not_ready = false;
  bool epoch_unknown = false;  ///< which loading this is cannot be told; the rest works
  std::function<void(const DeviceId&, Milliwatts)> before_write;  ///< a test's look at each setter call

  std::string name() const override { return "scripted"; }
  Result<DriverEpoch> epoch() override {
    if (not_ready || epoch_unknown) return fail(ErrorCode::failed, "the driver is not loaded");
    return DriverEpoch{boot_, load_, "1.0"};
  }
  Result<std::vector<DeviceInfo>> devices() override {
    if (not_ready) return fail(ErrorCode::failed, "the driver is not loaded");
    std::vector<DeviceInfo> infos;
    for (const auto& [id, board] : boards_) infos.push_back({id, "Scripted", "", board.state, board.shared, false});
    return infos;
  }
  Result<GpuReading> read(const DeviceId& device) override {
    FLYBALL_ASSIGN(ScriptedBoard * board, find(device));
    GpuReading reading;
    reading.device = device;
    reading.power_average = board->enforced().watts() * 0.9;
    reading.sm_clock = board->clocks_locked ? std::min(board->clock, board->lock) : board->clock;
    return reading;
  }
  Result<PowerLimits> limits(const DeviceId& device) override {
    FLYBALL_ASSIGN(ScriptedBoard * board, find(device));
    PowerLimits limits;
    limits.requested = board->garbled.value_or(board->requested);
    limits.enforced = board->garbled.value_or(board->enforced());
    board->garbled.reset();
    limits.minimum = board->garbage_range ? Milliwatts(4'294'967'295) : board->minimum;
    limits.maximum = board->garbage_range ? Milliwatts(0) : board->maximum;
    limits.factory_default = board->factory_default;
    limits.persistence = board->persistence;
    return limits;
  }
  Result<Capabilities> capabilities(const DeviceId& device) override {
    FLYBALL_ASSIGN(ScriptedBoard * board, find(device));
    (void)board;
    return Capabilities{};
  }
  Result<> set_power_limit(const DeviceId& device, Milliwatts limit) override {
    if (before_write) before_write(device, limit);
    FLYBALL_ASSIGN(ScriptedBoard * board, find(device));
    board->writes.push_back(limit);
    if (limit < board->minimum || limit > board->maximum) return fail(ErrorCode::failed, "out of range", device.text());
    switch (board->setter) {
      case ScriptedBoard::Setter::obeys:
        board->requested = limit;
        return {};
      case ScriptedBoard::Setter::refuses:
        return fail(ErrorCode::failed, "no permission", device.text());
      case ScriptedBoard::Setter::ignores:
        return {};
      case ScriptedBoard::Setter::writes_other:
        board->requested = std::min(board->maximum, limit + ScriptedBoard::kLie);
        return {};
      case ScriptedBoard::Setter::applies_late:
        board->late = limit;
        return {};
      case ScriptedBoard::Setter::times_out_and_applies:
        board->requested = limit;
        return fail(ErrorCode::failed, "the call did not come back in time", device.text());
    }
    return {};
  }
  Result<> lock_clocks(const DeviceId& device, ClockRange range) override {
    FLYBALL_ASSIGN(ScriptedBoard * board, find(device));
    board->clocks_locked = true;
    board->lock = range.high;
    ++board->locks;
    return {};
  }
  Result<> reset_clocks(const DeviceId& device) override {
    FLYBALL_ASSIGN(ScriptedBoard * board, find(device));
    board->clocks_locked = false;
    return {};
  }

 private:
  Result<ScriptedBoard*> find(const DeviceId& device) {
    const auto found = boards_.find(device);
    if (not_ready || found == boards_.end()) return fail(ErrorCode::failed, "the driver is not loaded", device.text());
    if (found->second.state != DeviceState::ok) {
      return fail(ErrorCode::failed, "the board is " + std::string(to_string(found->second.state)), device.text());
    }
    if (found->second.unreadable) return fail(ErrorCode::failed, "the call failed", device.text());
    return &found->second;
  }

  std::map<DeviceId, ScriptedBoard> boards_;
  std::string boot_ = "boot-0";
  std::string load_ = "load-0";
  int loads_ = 0;
};

}  // namespace flyball::guard
