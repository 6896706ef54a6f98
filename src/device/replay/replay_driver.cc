#include "device/replay/replay_driver.h"

#include <fmt/format.h>

#include <algorithm>

#include "series/samples.h"

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

Result<ReplayDriver> ReplayDriver::create(series::Recording recording, const Clock& clock) {
  ReplayDriver driver(clock);
  bool any = false;
  for (auto& series : recording.series) {
    if (series.points.empty()) continue;
    const bool is_power = series.key.signal == Signal::power_average || series.key.signal == Signal::power_instant;
    auto [board, is_new] = driver.boards_.try_emplace(series.key.device);
    if (is_new) driver.order_.push_back(series.key.device);
    if (is_power) board->second.scope = series.key.scope;
    driver.begins_ = any ? std::min(driver.begins_, series.points.front().at) : series.points.front().at;
    driver.ends_ = any ? std::max(driver.ends_, series.points.back().at) : series.points.back().at;
    any = true;
    Track track;
    track.period = series::usable_samples(series.points).period;
    track.points = std::move(series.points);
    // A second source of the same signal is not mixed into the first.
    board->second.tracks.try_emplace(series.key.signal, std::move(track));
  }
  std::erase_if(driver.order_, [&](const DeviceId& id) {
    const auto& tracks = driver.boards_.at(id).tracks;
    return !tracks.contains(Signal::power_average) && !tracks.contains(Signal::power_instant);
  });
  if (driver.order_.empty()) return fail(ErrorCode::input, "the recording holds no power of any device");
  return driver;
}

Result<DriverEpoch> ReplayDriver::epoch() { return DriverEpoch{"recording", "recording", ""}; }

Result<std::vector<DeviceInfo>> ReplayDriver::devices() {
  std::vector<DeviceInfo> all;
  for (const auto& id : order_) {
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

Sample<double> ReplayDriver::value(Board& board, Signal signal, WallTime& newest) const {
  const auto found = board.tracks.find(signal);
  if (found == board.tracks.end()) return Sample<double>::absent(Status::not_supported);
  Track& track = found->second;
  const WallTime now = clock_.wall();
  const auto begin = track.points.begin();
  // Time moves forward nearly always: look on from where the last read was.
  auto from = begin + static_cast<std::ptrdiff_t>(track.next);
  if (track.next > 0 && (from - 1)->at > now) from = begin;
  while (from != track.points.end() && from->at <= now) ++from;
  track.next = static_cast<std::size_t>(from - begin);
  if (track.next == 0) return Sample<double>::absent(Status::missing);
  const series::Point& point = track.points[track.next - 1];
  newest = std::max(newest, point.at);
  if (track.period > Seconds(0) && now - point.at > track.period * kStalePeriods)
    return Sample<double>::absent(Status::stale);
  return point.status == Status::ok ? Sample<double>(point.value) : Sample<double>::absent(point.status);
}

Result<GpuReading> ReplayDriver::read(const DeviceId& device) {
  FLYBALL_ASSIGN(Board* const board, find(device));
  GpuReading reading;
  WallTime newest;
  const auto of = [&](Signal signal) { return value(*board, signal, newest); };
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
  reading.wall = newest == WallTime() ? clock_.wall() : newest;
  reading.taken = clock_.now() - (clock_.wall() - reading.wall);
  return reading;
}

Result<PowerLimits> ReplayDriver::limits(const DeviceId& device) {
  FLYBALL_ASSIGN(const GpuReading reading, read(device));
  PowerLimits limits;
  limits.requested = reading.limit_requested;
  limits.enforced = reading.limit_enforced;
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
