#pragma once
// A recording behind the interface of real hardware, for whoever wants to see again what was seen: reads only, in the
// time of a clock that the owner moves. Points are fed as their time comes, so that a recording of any size is played
// in constant memory.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "core/driver.h"
#include "series/series.h"

namespace flyball::device {

class ReplayDriver final : public Driver {
 public:
  /// The clock outlives the driver; its wall time is the recording's.
  explicit ReplayDriver(const Clock& clock) : clock_(clock) {}

  /// Before the first read: what the recording holds. `period` is its usual distance of points, 0 if there is none.
  /// False where the series says nothing that is played: no signal of a board, or a second source of a signal, which
  /// is not mixed into the first.
  bool add_series(const series::SeriesKey& key, Seconds period);
  /// Without this nothing can be played: boards with a series of power.
  std::size_t boards() const;
  /// The range that the board had then.
  void set_range(const DeviceId& device, Milliwatts minimum, Milliwatts maximum);
  /// A point of a series that was added, in order of time for each, not after `clock.wall()`.
  void feed(const series::SeriesKey& key, const series::Point& point);

  std::string name() const override { return "recording"; }
  Result<DriverEpoch> epoch() override;
  Result<std::vector<DeviceInfo>> devices() override;
  /// What was fed since the last read; a signal without a new point is `unchanged`, once it is older than three of its
  /// periods `stale`, before its first point `missing`. `taken` is the time of the newest of the new points. Where
  /// every new point says `failed`, so does the read.
  Result<GpuReading> read(const DeviceId& device) override;
  /// As read then. Without a range in the recording nothing may be written.
  Result<PowerLimits> limits(const DeviceId& device) override;
  Result<Capabilities> capabilities(const DeviceId& device) override;
  Result<> set_power_limit(const DeviceId& device, Milliwatts limit) override;
  Result<> lock_clocks(const DeviceId& device, ClockRange range) override;
  Result<> reset_clocks(const DeviceId& device) override;

 private:
  struct Track {
    Seconds period;
    std::optional<series::Point> last;
    bool fresh = false;  ///< fed since the last read
  };
  struct Board {
    Scope scope = Scope::board;
    std::unordered_map<Signal, Track> tracks;
    Sample<Milliwatts> minimum, maximum;
    bool has_power() const { return tracks.contains(Signal::power_average) || tracks.contains(Signal::power_instant); }
  };

  Result<Board*> find(const DeviceId& device);
  Sample<double> value(const Board& board, Signal signal) const;

  const Clock& clock_;
  std::vector<DeviceId> order_;
  std::unordered_map<DeviceId, Board> boards_;
};

}  // namespace flyball::device
