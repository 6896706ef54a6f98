#include "series/reader_intake.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace flyball::series {

// The upper bounds are far above anything built (a GPU board 1.4 kW, a Grace-Hopper or -Blackwell module 2.7 kW, a node
// of eight 15 kW in 2025) and far below the sentinels of broken sensors (65,535 W, 2^32 - 1 mW = 4.3 MW).
PlausibleRange plausible_range(Signal signal, Scope scope) {
  switch (signal) {
    case Signal::power_average:
    case Signal::power_instant:
      switch (scope) {
        case Scope::chip:
        case Scope::board:
          return {0, 3'000, true};
        case Scope::module:
          return {0, 6'000, true};
        case Scope::node_dc:
        case Scope::node_ac:
          return {0, 50'000, true};
        default:
          return {0, 1e9, false};
      }
    case Signal::limit_requested:
    case Signal::limit_enforced:
      return {0, 50'000, true};
    case Signal::energy:
    case Signal::tokens:
      return {0, 1e18, false};
    case Signal::utilisation:
      return {0, 1, false};
    case Signal::fan:
      return {0, 2, false};  // some boards report above their nominal maximum
    case Signal::temperature:
    case Signal::memory_temperature:
      return {-50, 150, false};
    case Signal::sm_clock:
    case Signal::memory_clock:
      return {0, 3e10, false};
    case Signal::throttle:
      return {0, 4'294'967'295.0, false};
    case Signal::other:
      break;
  }
  return {-1e300, 1e300, false};
}

Result<std::uint32_t> Intake::series(const SeriesKey& key) {
  std::string text =
      fmt::format("{}\n{}\n{}\n{}", key.device.text(), to_string(key.signal), to_string(key.scope), key.source);
  const auto found = handles_.find(text);
  if (found != handles_.end()) return found->second;
  if (states_.size() == kMaxSeries) {
    return fail(ErrorCode::input, fmt::format("more than {} series", kMaxSeries), {}, "read the file in parts");
  }
  const auto handle = static_cast<std::uint32_t>(states_.size());
  State state;
  state.sink_number = sink_.begin_series(key);
  state.range = plausible_range(key.signal, key.scope);
  states_.push_back(state);
  handles_.emplace(std::move(text), handle);
  return handle;
}

void Intake::refuse(std::string_view reason, std::uint64_t line, std::string_view value) {
  auto& all = summary_.refusals;
  const auto known = std::find_if(all.begin(), all.end(), [&](const Refusal& r) { return r.reason == reason; });
  if (known != all.end()) {
    ++known->count;
  } else if (all.size() < Refusal::kMostKinds) {
    all.push_back({std::string(reason), 1, line, std::string(value.substr(0, 40))});
  }
}

void Intake::impossible(const PlausibleRange& range, double value, std::uint64_t line) {
  if (value == 0) return refuse("nothing that answers draws 0 W: the meter had no value", line, "0");
  if (value < 0 && range.low == 0)
    return refuse("it is below zero; if the meter counts the other way round, turn its sign", line,
                  format_exact(value));
  refuse(fmt::format("it is outside {} to {}; see the unit in the header", format_exact(range.low),
                     format_exact(range.high)),
         line, format_exact(value));
}

void Intake::event(const Event& event) {
  ++summary_.events;
  sink_.event(event);
}

void Intake::set_aside(std::uint64_t line, std::string reason, std::string_view text) {
  if (line == last_set_aside_) return;  // one row is set aside once, however many of its cells are bad
  last_set_aside_ = line;
  ++summary_.quarantined;
  sink_.quarantine(Quarantined{line, std::move(reason), std::string(text.substr(0, 120))});
}

void Intake::warn(std::string text) {
  constexpr std::size_t kMaxWarnings = 100;
  auto& warnings = summary_.warnings;
  if (warnings.size() == kMaxWarnings || std::find(warnings.begin(), warnings.end(), text) != warnings.end()) return;
  warnings.push_back(std::move(text));
}

/// True if the point may pass after all: it confirms the stamp before it.
bool Intake::odd_stamp(State& state, std::int64_t at_ns, std::uint64_t line, std::string_view text) {
  const auto seconds = [](std::int64_t ns) { return format(Seconds(static_cast<double>(ns) * 1e-9)); };
  if (at_ns == state.last_ns) {
    ++summary_.repeated_stamps;
    set_aside(line, "the stamp repeats", text);
    return false;
  }
  if (at_ns < state.last_ns) {
    ++summary_.backward_stamps;
    set_aside(line, fmt::format("the stamp runs backwards by {}", seconds(state.last_ns - at_ns)), text);
    return false;
  }
  constexpr std::int64_t kNearNs = 86'400'000'000'000;
  const bool confirms = state.suspect_ns != INT64_MIN && at_ns > state.suspect_ns && at_ns - state.suspect_ns < kNearNs;
  state.suspect_ns = at_ns;
  if (confirms) {
    state.suspect_ns = INT64_MIN;
    return true;
  }
  ++summary_.suspect_stamps;
  set_aside(line, fmt::format("the stamp jumps ahead by {}", seconds(at_ns - state.last_ns)), text);
  return false;
}

std::uint32_t RecordingSink::begin_series(const SeriesKey& key) {
  recording.series.push_back(Series{key, {}});
  return static_cast<std::uint32_t>(recording.series.size() - 1);
}

void RecordingSink::quarantine(const Quarantined& row) {
  constexpr std::size_t kKept = 1000;
  ++recording.quarantined_count;
  if (recording.quarantined.size() < kKept) recording.quarantined.push_back(row);
}

std::string refusals_text(const ReadSummary& summary) {
  std::string text;
  for (const Refusal& r : summary.refusals) {
    text += fmt::format("{}{} value{} from line {} on ('{}'): {}", text.empty() ? "" : "; ", r.count,
                        r.count == 1 ? "" : "s", r.line, r.value, r.reason);
  }
  return text;
}

std::uint64_t ReadSummary::all_points() const {
  std::uint64_t sum = 0;
  for (const auto n : points) sum += n;
  return sum;
}

}  // namespace flyball::series
