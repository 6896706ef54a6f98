#pragma once
// The gate between readers and a sink: what may be true passes, the rest is counted. Private to the readers.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "series/reader.h"

namespace flyball::series {

/// What a value of this signal behind this scope can be; outside, it is garbage.
struct PlausibleRange {
  double low = 0;
  double high = 0;
  bool zero_is_absent = false;  ///< a powered board or node that answers does not draw 0 W: the meter had nothing
};
PlausibleRange plausible_range(Signal signal, Scope scope);

class Intake {
 public:
  static constexpr std::size_t kMaxSeries = 1'000'000;

  Intake(Sink& sink, ReadSummary& summary) : sink_(sink), summary_(summary) {}

  /// A handle for `point`; the same key gives the same one.
  Result<std::uint32_t> series(const SeriesKey& key);
  /// A value as the file has it. `line` and `text` are what is set aside if it cannot be used.
  void value(std::uint32_t series, WallTime at, double value, std::uint64_t line, std::string_view text) {
    State& state = states_[series];
    const PlausibleRange& range = state.range;
    const bool possible = value >= range.low && value <= range.high && !(value == 0 && range.zero_is_absent);
    if (!possible) impossible(range, value, line);
    give(state, Point{at, value, possible ? Status::ok : Status::garbage}, line, text);
  }
  void absent(std::uint32_t series, WallTime at, Status why, std::uint64_t line, std::string_view text) {
    give(states_[series], Point{at, 0, why}, line, text);
  }
  /// A value that could not be used, for the summary: points themselves carry their status.
  void refuse(std::string_view reason, std::uint64_t line, std::string_view value);
  void event(const Event& event);
  void set_aside(std::uint64_t line, std::string reason, std::string_view text);
  void warn(std::string text);
  /// Our own stamps may leap: a recording goes on after days.
  void believe_steps() { believable_step_ns_ = INT64_MAX; }
  ReadSummary& summary() { return summary_; }

 private:
  struct State {
    std::uint32_t sink_number = 0;
    std::int64_t last_ns = INT64_MIN;
    std::int64_t suspect_ns = INT64_MIN;
    PlausibleRange range;
  };
  void give(State& state, const Point& point, std::uint64_t line, std::string_view text) {
    const std::int64_t at = point.at.nanoseconds();
    if (at <= state.last_ns || (state.last_ns != INT64_MIN && at - state.last_ns > believable_step_ns_)) {
      if (!odd_stamp(state, at, line, text)) return;
    }
    state.last_ns = at;
    ++summary_.points[static_cast<std::size_t>(point.status)];
    sink_.point(state.sink_number, point);
  }
  void impossible(const PlausibleRange& range, double value, std::uint64_t line);
  bool odd_stamp(State& state, std::int64_t at_ns, std::uint64_t line, std::string_view text);

  Sink& sink_;
  ReadSummary& summary_;
  std::vector<State> states_;
  std::unordered_map<std::string, std::uint32_t> handles_;
  std::uint64_t last_set_aside_ = 0;
  /// Further ahead than a day, one stamp alone is not believed; the next one near it confirms it.
  std::int64_t believable_step_ns_ = 86'400'000'000'000;
};

}  // namespace flyball::series
