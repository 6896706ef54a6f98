#pragma once
// The loop run again from a recording: a policy sees what was seen then and says what it would have asked for. Nothing
// can be set in the past, so what it asks for changes nothing of what it sees next: proposals come out, never a saving.
// The limits in the recording are the plant's truth. Those that the recorded run itself wrote freeze no other policy;
// limits that neither explains, a brake, holes and a hung job do, as they would live.
//
// A recording that a run of the loop made (run_recorder.h) can be audited: with the same policy, every observation and
// every decision must come out again to the last bit. The outcomes of its writes are played back for that.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"
#include "core/control.h"
#include "core/result_types.h"
#include "loop/gpu_meter.h"
#include "series/reader.h"
#include "series/samples.h"

namespace flyball::control {

struct ReplayRunOptions {
  std::string policy = "recorded";  ///< as policy::make takes it, or "recorded": that of the run that was recorded
  Objective objective;              ///< used if `policy` is not "recorded"
  std::uint64_t seed = 1;           ///< the same
  std::optional<Seconds> decision;  ///< default: as recorded, else 10 s, at least two polls
  std::vector<DeviceId> devices;    ///< empty = every board with power in the recording
  /// Asked at every poll; true ends the replay early.
  std::function<bool()> stop;
};

/// What the policy asked for one board, where that is another wish than its last one.
struct ReplayedWish {
  std::uint64_t number = 0;  ///< of the decision
  WallTime at;
  DeviceId device;
  std::optional<Milliwatts> power_limit;
  std::optional<Milliwatts> allowed;  ///< the wish within the range that the board had, where that is known
  std::optional<ClockRange> locked_clocks;
  Sample<Milliwatts> in_force;  ///< the limit that was enforced then
  std::string reason;
};

/// How the decisions compare with those in the recording.
struct ReplayAudit {
  std::uint64_t recorded = 0;
  std::uint64_t identical = 0;
  std::string first_difference;  ///< empty if there is none
};

struct ReplayRun {
  static constexpr std::size_t kMostWishes = 10'000;

  std::string policy;
  Objective objective;
  std::uint64_t seed = 0;
  series::Interval span;
  Seconds poll;
  Seconds decision;
  std::uint64_t polls = 0;
  std::uint64_t decisions = 0;
  std::uint64_t frozen = 0;
  std::uint64_t wishes_changed = 0;
  std::vector<ReplayedWish> wishes;  ///< the first kMostWishes
  std::string digest;                ///< SHA-256 over all decisions: equal = the same decisions, to the last bit
  std::optional<ReplayAudit> audit;  ///< of a recording that holds decisions of the same policy and seed
  Account account;                   ///< of what was recorded, not of what was asked
  loop::Rejected rejected;
  std::vector<Finding> findings;
  bool interrupted = false;
};

/// Reads the input twice: `open` gives it anew each time. In memory that does not grow with it, unless it is out of
/// order of time: then so much of it is held as it is out of order, and more than 512 MiB of that is refused.
Result<ReplayRun> replay_run(const std::function<Result<std::unique_ptr<ByteSource>>()>& open, const std::string& name,
                             const series::ReadOptions& reading, const ReplayRunOptions& options);

}  // namespace flyball::control
