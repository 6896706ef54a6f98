#pragma once
// A recording behind the interface of real hardware, for whoever wants to see again what was seen: reads only, in the
// time of a clock that the owner moves.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "core/driver.h"
#include "series/series.h"

namespace flyball::device {

class ReplayDriver final : public Driver {
 public:
  /// Plays what `recording` holds at `clock.wall()`. The clock outlives the driver. Without a series of a GPU's power
  /// there is nothing to play.
  static Result<ReplayDriver> create(series::Recording recording, const Clock& clock);

  std::string name() const override { return "recording"; }
  Result<DriverEpoch> epoch() override;
  Result<std::vector<DeviceInfo>> devices() override;
  /// The last point of each signal at or before now; `stale` once it is older than three of its periods, `missing`
  /// before the first. `taken` is the time of the newest of them.
  Result<GpuReading> read(const DeviceId& device) override;
  /// As read then. The range of the board is not in a recording, so nothing may be written.
  Result<PowerLimits> limits(const DeviceId& device) override;
  Result<Capabilities> capabilities(const DeviceId& device) override;
  Result<> set_power_limit(const DeviceId& device, Milliwatts limit) override;
  Result<> lock_clocks(const DeviceId& device, ClockRange range) override;
  Result<> reset_clocks(const DeviceId& device) override;

  /// From the first point to the last.
  WallTime begins() const { return begins_; }
  WallTime ends() const { return ends_; }

 private:
  struct Track {
    std::vector<series::Point> points;
    Seconds period;        ///< median distance
    std::size_t next = 0;  ///< first point after the time of the last read
  };
  struct Board {
    Scope scope = Scope::board;
    std::unordered_map<Signal, Track> tracks;
  };

  explicit ReplayDriver(const Clock& clock) : clock_(clock) {}
  Result<Board*> find(const DeviceId& device);
  Sample<double> value(Board& board, Signal signal, WallTime& newest) const;

  const Clock& clock_;
  std::vector<DeviceId> order_;
  std::unordered_map<DeviceId, Board> boards_;
  WallTime begins_;
  WallTime ends_;
};

}  // namespace flyball::device
