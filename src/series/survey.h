#pragma once
// A first look at telemetry of any size, in memory that does not grow with it: what is there, when, how often.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "series/reservoir.h"
#include "series/samples.h"
#include "series/series.h"

namespace flyball::series {

/// So many distances of neighbours are kept to take their median from.
constexpr std::size_t kDistances = 255;

class Survey final : public Sink {
 public:
  struct One {
    SeriesKey key;
    std::uint64_t points = 0;
    std::uint64_t ok = 0;
    Interval all{};                  ///< first to last point, whatever its status; empty without points
    Reservoir distance{kDistances};  ///< s, between neighbouring points that are ok
    Seconds period() const { return Seconds(distance.quantile_of(0.5)); }
    WallTime last_ok{};
  };
  struct Kind {
    std::uint64_t count = 0;
    Event first;
  };
  static constexpr std::size_t kKeptRows = 1000;  ///< of quarantined ones

  std::uint32_t begin_series(const SeriesKey& key) override;
  void point(std::uint32_t series, const Point& point) override;
  void event(const Event& event) override;
  void quarantine(const Quarantined& row) override;

  const std::vector<One>& series() const { return series_; }
  const std::map<std::string, Kind>& events() const { return events_; }
  const std::vector<Quarantined>& quarantined() const { return quarantined_; }
  /// By so much the input is out of order of time: no point or event comes later behind one of a later time.
  Seconds disorder() const { return Seconds(static_cast<double>(disorder_ns_) * 1e-9); }

 private:
  void note_time(WallTime at);

  std::vector<One> series_;
  std::map<std::string, Kind> events_;
  std::vector<Quarantined> quarantined_;
  std::int64_t newest_ns_ = INT64_MIN;
  std::int64_t disorder_ns_ = 0;
  Random random_{1};
};

}  // namespace flyball::series
