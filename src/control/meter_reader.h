#pragma once
// Meters as a round of a recording. Points of one meter are one device, or one a group (phase, outlet) where the
// profile names groups; what would be the same series twice is told apart by the point's name.

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "control/sampler.h"
#include "meter/meter.h"
#include "meter/profile.h"

namespace flyball::control {

class MeterReader : public RoundReader {
 public:
  /// Clock and writer outlive the reader.
  MeterReader(Clock& clock, series::RecordingWriter& writer) : clock_(clock), writer_(writer) {}

  /// Before `find`. Refused: an id that is there already or cannot be a device's name.
  Result<> add(const meter::Profile& profile, std::unique_ptr<meter::Meter> meter);

  Result<std::string> find() override;
  /// All meters side by side, so that one that does not answer holds up no other. A point is recorded at the time at
  /// which it was measured; the same time again is no new information. What failed stands where its value would have
  /// been, with its status. Returns the number of points without a value.
  std::uint64_t read() override;
  std::uint64_t failures() const override { return failures_; }
  std::string last_failure() const override { return last_failure_; }

 private:
  struct Kept {
    std::uint32_t series = 0;
    bool any = false;
    MonoTime last;
    Seconds lag;  ///< from measured to received, of the newest value
  };
  struct Metered {
    std::string id;
    std::unique_ptr<meter::Meter> meter;
    std::vector<meter::PointProfile> profiles;
    std::vector<Kept> points;  ///< as in the profile
  };
  void name_series(Metered& metered);
  bool keep(Kept& kept, const meter::MeterReading& reading);

  Clock& clock_;
  series::RecordingWriter& writer_;
  std::vector<Metered> meters_;
  std::uint64_t failures_ = 0;
  std::string last_failure_;
};

}  // namespace flyball::control
