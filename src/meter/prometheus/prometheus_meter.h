#pragma once
// Series of a Prometheus server: the newest raw sample live, and any past span for back-fill.

#include <memory>

#include "meter/meter.h"
#include "meter/profile.h"
#include "series/samples.h"
#include "series/series.h"

namespace flyball::meter {

/// Meters whose past can be asked for.
class History {
 public:
  virtual ~History() = default;
  /// Raw samples of one point inside the interval, with their own stamps; holes stay holes.
  virtual Result<series::Series> fill(const PointProfile& point, series::Interval interval) = 0;
};

class HistoryMeter : public Meter, public History {};
Result<std::unique_ptr<HistoryMeter>> make_prometheus_meter(const Profile& profile, Clock& clock);

}  // namespace flyball::meter
