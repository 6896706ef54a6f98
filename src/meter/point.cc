#include "meter/point.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace flyball::meter {

std::string_view to_string(TimeSource source) { return source == TimeSource::device ? "device" : "reader"; }

std::string Identity::text() const {
  std::string made;
  const auto add = [&](std::string_view label, const std::string& value) {
    if (!value.empty()) made += fmt::format("{}{}{}", made.empty() ? "" : " ", label, value);
  };
  add("", vendor);
  add("", model);
  add("serial ", serial);
  add("firmware ", firmware);
  return made;
}

Result<Identity> Meter::identify() {
  return fail(ErrorCode::unsupported, "this protocol has no identity to ask for", {},
              "compare the device's label with the profile by eye");
}

Result<ClockPair> Meter::device_clock() {
  return fail(ErrorCode::unsupported, "the device does not tell its time", {},
              "nothing: times of measurement are the reader's");
}

MeterReading blank_reading(const Profile& profile, const PointProfile& point) {
  MeterReading made;
  made.meter = profile.id;
  made.point = point.name;
  made.quantity = point.quantity;
  made.scope = point.scope;
  made.reason = "not asked";
  return made;
}

MeterReading& set_absent(MeterReading& reading, Status status, std::string reason) {
  reading.value = Sample<double>::absent(status);
  reading.reason = std::move(reason);
  return reading;
}

MeterReading& set_value(MeterReading& reading, const PointProfile& point, double said) {
  if (std::isnan(said)) return set_absent(reading, Status::missing, "the device says NaN");
  const double base = point.base_of(said);
  if (!std::isfinite(base) || !possible_range(point.quantity).holds(base)) {
    reading.refused = base;
    return set_absent(reading, Status::garbage,
                      fmt::format("{} is not a possible {}", format(point.quantity, base), to_string(point.quantity)));
  }
  reading.value = base;
  reading.refused.reset();
  reading.reason.clear();
  return reading;
}

std::vector<MeterReading> all_absent(const Profile& profile, Status status, const std::string& reason,
                                     const Clock& clock) {
  std::vector<MeterReading> made;
  for (const PointProfile& point : profile.points) {
    MeterReading reading = blank_reading(profile, point);
    reading.measured = clock.wall();
    reading.received = clock.now();
    made.push_back(std::move(set_absent(reading, status, reason)));
  }
  return made;
}

}  // namespace flyball::meter
