#include "device/replay/replay_driver.h"

#include <fmt/format.h>

#include <algorithm>

namespace flyball::device {
namespace {

/// Older than so many periods is stale: a lost sample or two is usual, three are a hole.
constexpr double kStalePeriods = 3;

template <class T, class Make>
Sample<T> converted(const Sample<double>& value, Make make) {
  return value.ok() ? Sample<T>(make(*value)) : Sample<T>::absent(value.status);
}

Milliwatts to_milliwatts(double watts) { return Milliwatts::from(Watts(watts)); }

tl::unexpected<Error> read_only(const DeviceId& device) {
  return fail(ErrorCode::unsupported, "this is a recording: what happened cannot be changed", device.text());
}

}  // namespace

bool ReplayDriver::add_series(const series::SeriesKey& key, Seconds period) {
  if (key.signal == Signal::other || key.signal == Signal::tokens) return false;
  auto [board, is_new] = boards_.try_emplace(key.device);
  if (is_new) order_.push_back(key.device);
  const bool is_power = key.signal == Signal::power_average || key.signal == Signal::power_instant;
  if (is_power && !board->second.has_power()) board->second.scope = key.scope;
  return board->second.tracks.try_emplace(key.signal, Track{period, {}, false}).second;
}

std::size_t ReplayDriver::boards() const {
  return static_cast<std::size_t>(
      std::count_if(boards_.begin(), boards_.end(), [](const auto& board) { return board.second.has_power(); }));
}

void ReplayDriver::set_range(const DeviceId& device, Milliwatts minimum, Milliwatts maximum) {
  const auto found = boards_.find(device);
  if (found == boards_.end()) return;
  found->second.minimum = minimum;
  found->second.maximum = maximum;
}

void ReplayDriver::feed(const series::SeriesKey& key, const series::Point& point) {
  const auto board = boards_.find(key.device);
  if (board == boards_.end()) return;
  const auto track = board->second.tracks.find(key.signal);
  if (track == board->second.tracks.end()) return;
  track->second.last = point;
  track->second.fresh = true;
}

Result<DriverEpoch> ReplayDriver::epoch() { return DriverEpoch{"recording", "recording", ""}; }

Result<std::vector<DeviceInfo>> ReplayDriver::devices() {
  std::vector<DeviceInfo> all;
  for (const auto& id : order_) {
    if (!boards_.at(id).has_power()) continue;
    DeviceInfo info;
    info.id = id;
    info.name = "as recorded";
    info.module_scope = boards_.at(id).scope == Scope::module;
    all.push_back(std::move(info));
  }
  return all;
}

Result<ReplayDriver::Board*> ReplayDriver::find(const DeviceId& device) {
  const auto found = boards_.find(device);
  if (found != boards_.end()) return &found->second;
  return fail(ErrorCode::input, "the recording does not hold this device", device.text());
}

Sample<double> ReplayDriver::value(const Board& board, Signal signal) const {
  const auto found = board.tracks.find(signal);
  if (found == board.tracks.end()) return Sample<double>::absent(Status::not_supported);
  const Track& track = found->second;
  if (!track.last) return Sample<double>::absent(Status::missing);
  // What a board does not have is recorded once, and it does not get it by waiting.
  if (track.last->status == Status::not_supported) return Sample<double>::absent(Status::not_supported);
  if (!track.fresh) {
    const bool old = track.period > Seconds(0) && clock_.wall() - track.last->at > track.period * kStalePeriods;
    return Sample<double>::absent(old ? Status::stale : Status::unchanged);
  }
  return track.last->status == Status::ok ? Sample<double>(track.last->value)
                                          : Sample<double>::absent(track.last->status);
}

Result<GpuReading> ReplayDriver::read(const DeviceId& device) {
  FLYBALL_ASSIGN(Board* const board, find(device));
  GpuReading reading;
  const auto of = [&](Signal signal) { return value(*board, signal); };
  const auto identity = [](double v) { return v; };
  reading.device = device;
  reading.scope = board->scope;
  reading.power_average = converted<Watts>(of(Signal::power_average), [](double v) { return Watts(v); });
  reading.power_instant = converted<Watts>(of(Signal::power_instant), [](double v) { return Watts(v); });
  reading.energy = converted<Joules>(of(Signal::energy), [](double v) { return Joules(v); });
  reading.utilisation_fraction = converted<double>(of(Signal::utilisation), identity);
  reading.temperature = converted<Celsius>(of(Signal::temperature), [](double v) { return Celsius(v); });
  reading.sm_clock = converted<Hertz>(of(Signal::sm_clock), [](double v) { return Hertz(v); });
  reading.memory_clock = converted<Hertz>(of(Signal::memory_clock), [](double v) { return Hertz(v); });
  reading.limit_requested = converted<Milliwatts>(of(Signal::limit_requested), to_milliwatts);
  reading.limit_enforced = converted<Milliwatts>(of(Signal::limit_enforced), to_milliwatts);
  reading.throttle = converted<ThrottleReasons>(of(Signal::throttle), [](double v) {
    return ThrottleReasons{static_cast<std::uint32_t>(std::clamp(v, 0.0, 4294967295.0))};
  });
  reading.fan_fraction = converted<double>(of(Signal::fan), identity);
  const bool power_lost = reading.power_average.status == Status::lost || reading.power_instant.status == Status::lost;
  reading.state = power_lost ? DeviceState::lost : DeviceState::ok;
  // Measured when it was measured, not when it is looked at.
  std::optional<WallTime> newest;
  bool all_failed = true;
  for (auto& [signal, track] : board->tracks) {
    if (!track.fresh) continue;
    track.fresh = false;
    newest = newest ? std::max(*newest, track.last->at) : track.last->at;
    all_failed = all_failed && (track.last->status == Status::failed || track.last->status == Status::not_supported);
  }
  if (newest && all_failed) return fail(ErrorCode::failed, "the read failed when it was recorded", device.text());
  reading.wall = newest.value_or(clock_.wall());
  reading.taken = MonoTime(clock_.now().nanoseconds() - (clock_.wall().nanoseconds() - reading.wall.nanoseconds()));
  return reading;
}

Result<PowerLimits> ReplayDriver::limits(const DeviceId& device) {
  FLYBALL_ASSIGN(const Board* const board, find(device));
  const auto last = [&](Signal signal) {
    const auto found = board->tracks.find(signal);
    const bool known = found != board->tracks.end() && found->second.last && found->second.last->status == Status::ok;
    return known ? Sample<Milliwatts>(to_milliwatts(found->second.last->value))
                 : Sample<Milliwatts>::absent(Status::missing);
  };
  PowerLimits limits;
  limits.requested = last(Signal::limit_requested);
  limits.enforced = last(Signal::limit_enforced);
  limits.minimum = board->minimum;
  limits.maximum = board->maximum;
  return limits;
}

Result<Capabilities> ReplayDriver::capabilities(const DeviceId& device) {
  FLYBALL_ASSIGN(const Board* const board, find(device));
  const auto has = [&](Signal signal) { return board->tracks.contains(signal) ? Status::ok : Status::not_supported; };
  Capabilities capabilities;
  capabilities.read_power = has(Signal::power_average);
  capabilities.read_instant_power = has(Signal::power_instant);
  capabilities.read_energy = has(Signal::energy);
  capabilities.read_limits = has(Signal::limit_enforced);
  capabilities.write_limit = Status::not_supported;
  capabilities.lock_clocks = Status::not_supported;
  return capabilities;
}

Result<> ReplayDriver::set_power_limit(const DeviceId& device, Milliwatts) { return read_only(device); }
Result<> ReplayDriver::lock_clocks(const DeviceId& device, ClockRange) { return read_only(device); }
Result<> ReplayDriver::reset_clocks(const DeviceId& device) { return read_only(device); }

}  // namespace flyball::device
