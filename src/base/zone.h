#pragma once
// Local stamps of other people's files, made UTC. A stamp without zone names no instant; with a zone it still names
// two in the hour that autumn repeats, and none in the hour that spring leaves out.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace flyball {

/// What a local time in the repeated hour means.
enum class Fold : std::uint8_t {
  refuse,   ///< it is ambiguous and stays unused
  earlier,  ///< the first pass, still in summer time
  later,    ///< the second pass
  /// Rows in order of time say it themselves: where they go back by half an hour or more the second pass begins. For
  /// whoever sees one row after the other; a zone alone refuses.
  in_order,
};
Result<Fold> parse_fold(std::string_view text);

enum class LocalTime : std::uint8_t { ok, ambiguous, skipped };

class Zone {
 public:
  /// An IANA name, "Europe/Berlin", or "UTC".
  static Result<Zone> find(const std::string& name);
  ~Zone();
  Zone(Zone&&) noexcept;
  Zone& operator=(Zone&&) noexcept;

  /// `local_ns`: nanoseconds since 1970-01-01T00:00:00 on the local wall clock. Sets `utc` unless the time does not
  /// exist or is ambiguous under `fold`. Not for threads: the offset last found is kept, for stamps come in order.
  LocalTime to_utc(std::int64_t local_ns, Fold fold, WallTime& utc);

 private:
  struct State;
  explicit Zone(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace flyball
