#pragma once
// What all protocols share in making a reading of what came.

#include <string>

#include "meter/meter.h"
#include "meter/profile.h"

namespace flyball::meter {

/// A reading of `point` without value yet.
MeterReading blank_reading(const Profile& profile, const PointProfile& point);
/// Why there is no value.
MeterReading& set_absent(MeterReading& reading, Status status, std::string reason);
/// The device's number in the point's unit and scale becomes a value, or garbage where it cannot be true. NaN is
/// missing.
MeterReading& set_value(MeterReading& reading, const PointProfile& point, double said);
/// All points, for one reason: the device as a whole did not answer.
std::vector<MeterReading> all_absent(const Profile& profile, Status status, const std::string& reason,
                                     const Clock& clock);

/// The time in the middle of a request that began at `begin`.
class RequestTime {
 public:
  explicit RequestTime(const Clock& clock) : clock_(clock), begin_(clock.now()), wall_(clock.wall()) {}
  Seconds elapsed() const { return clock_.now() - begin_; }
  WallTime middle() const { return wall_ + elapsed() * 0.5; }

 private:
  const Clock& clock_;
  MonoTime begin_;
  WallTime wall_;
};

}  // namespace flyball::meter
