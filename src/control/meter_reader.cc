#include "control/meter_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>

namespace flyball::control {

namespace {

Signal signal_of(meter::Quantity quantity) {
  switch (quantity) {
    case meter::Quantity::power:
      return Signal::power_average;
    case meter::Quantity::energy:
      return Signal::energy;
    case meter::Quantity::temperature:
      return Signal::temperature;
    default:
      return Signal::other;
  }
}

/// A signal without a name of its own is named by its source: "inlet_voltage: voltage in V".
std::string source_of(const meter::PointProfile& point) {
  if (signal_of(point.quantity) != Signal::other) return "meter";
  const std::string_view unit = unit_of(point.quantity);
  return fmt::format("{}: {}{}{}", point.name, to_string(point.quantity), unit.empty() ? "" : " in ", unit);
}

std::string device_of(const std::string& meter, const meter::PointProfile& point) {
  return point.group.empty() ? meter : meter + "/" + point.group;
}

}  // namespace

Result<> MeterReader::add(const meter::Profile& profile, std::unique_ptr<meter::Meter> meter) {
  const bool twice = std::any_of(meters_.begin(), meters_.end(), [&](const Metered& m) { return m.id == profile.id; });
  if (twice) return fail(ErrorCode::input, "two profiles have this id", profile.id, "name each meter once");
  for (const meter::PointProfile& point : profile.points) {
    FLYBALL_TRY(DeviceId::parse(device_of(profile.id, point) + "/" + point.name));
  }
  meters_.push_back({profile.id, std::move(meter), profile.points, std::vector<Kept>(profile.points.size())});
  return {};
}

void MeterReader::name_series(Metered& metered) {
  std::set<std::uint32_t> named;
  for (std::size_t i = 0; i < metered.points.size(); ++i) {
    const meter::PointProfile& point = metered.profiles[i];
    const std::string device = device_of(metered.id, point);
    series::SeriesKey key{DeviceId::of(device), signal_of(point.quantity), point.scope, source_of(point)};
    std::uint32_t series = writer_.begin_series(key);
    if (!named.insert(series).second) {
      key.device = DeviceId::of(device + "/" + point.name);
      series = writer_.begin_series(key);
      named.insert(series);
    }
    metered.points[i].series = series;
  }
}

Result<std::string> MeterReader::find() {
  if (meters_.empty())
    return fail(ErrorCode::input, "no meter is named", {}, "flyball record --source meters --meter FILE");
  std::size_t points = 0;
  for (Metered& metered : meters_) {
    name_series(metered);
    points += metered.points.size();
  }
  return fmt::format("{} meters, {} points", meters_.size(), points);
}

std::uint64_t MeterReader::read() {
  std::vector<std::future<std::vector<meter::MeterReading>>> asked;
  asked.reserve(meters_.size());
  for (Metered& metered : meters_) {
    asked.push_back(std::async(std::launch::async, [&metered] { return metered.meter->read(); }));
  }
  std::uint64_t failed = 0;
  for (std::size_t i = 0; i < meters_.size(); ++i) {
    const std::vector<meter::MeterReading> readings = asked[i].get();
    const std::size_t count = std::min(readings.size(), meters_[i].points.size());
    for (std::size_t k = 0; k < count; ++k) failed += keep(meters_[i].points[k], readings[k]) ? 0 : 1;
  }
  return failed;
}

bool MeterReader::keep(Kept& kept, const meter::MeterReading& reading) {
  const bool ok = reading.value.ok();
  if (ok) kept.lag = clock_.wall() - reading.measured - (clock_.now() - reading.received);
  const MonoTime at = reading.received - kept.lag;
  if (kept.any && at <= kept.last) return ok;
  kept.any = true;
  kept.last = at;
  if (const auto put = writer_.point(kept.series, at, ok ? *reading.value : 0, reading.value.status); !put) {
    ++failures_;
    last_failure_ = put.error().message();
  }
  return ok;
}

}  // namespace flyball::control
