#include "series/survey.h"

#include <algorithm>
#include <cmath>

namespace flyball::series {

std::uint32_t Survey::begin_series(const SeriesKey& key) {
  series_.push_back({.key = key});
  return static_cast<std::uint32_t>(series_.size() - 1);
}

void Survey::note_time(WallTime at) {
  newest_ns_ = std::max(newest_ns_, at.nanoseconds());
  disorder_ns_ = std::max(disorder_ns_, newest_ns_ - at.nanoseconds());
}

void Survey::point(std::uint32_t series, const Point& point) {
  note_time(point.at);
  One& one = series_[series];
  one.all.start = one.points == 0 ? point.at : std::min(one.all.start, point.at);
  one.all.stop = one.points == 0 ? point.at : std::max(one.all.stop, point.at);
  ++one.points;
  if (point.status != Status::ok || !std::isfinite(point.value)) return;
  if (one.ok++ > 0 && point.at > one.last_ok) one.distance.add((point.at - one.last_ok).value(), random_);
  one.last_ok = point.at;
}

void Survey::event(const Event& event) {
  constexpr std::size_t kMostKinds = 10'000;
  note_time(event.at);
  const auto found = events_.find(event.kind);
  if (found != events_.end()) {
    ++found->second.count;
  } else if (events_.size() < kMostKinds) {
    events_.emplace(event.kind, Kind{1, event});
  }
}

void Survey::quarantine(const Quarantined& row) {
  if (quarantined_.size() < kKeptRows) quarantined_.push_back(row);
}

}  // namespace flyball::series
