#pragma once
// The words of control: what a policy sees, what it may propose, under which budget, and who asks.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "core/device.h"
#include "core/driver.h"
#include "core/reading.h"
#include "core/workload.h"

namespace flyball {

/// Something that changes power. Levers beyond the board's own are applied by the workload and acknowledged by it.
enum class Lever : std::uint8_t {
  power_limit,
  locked_clocks,
  generation_concurrency,
  group_size,
  completion_length,
  pause,
};
std::string_view to_string(Lever lever);
Result<Lever> parse_lever(std::string_view text);

/// Two ways to be wrong, two ways to fail: see doc/safety.md.
enum class LeaseKind : std::uint8_t {
  saving,  ///< expiry restores what was found
  budget,  ///< expiry falls to min(what was found, safe cap); never upward
};
std::string_view to_string(LeaseKind kind);

/// Who asks; a higher authority's limit may be lowered, never raised, by a lower one.
enum class Authority : std::uint8_t { job, fleet, site };
std::string_view to_string(Authority authority);

/// One GPU over one decision interval, from readings that were good. Means are weighted by time.
struct GpuObservation {
  DeviceId device;
  Sample<Watts> power;
  Sample<Joules> energy;  ///< over the interval
  Sample<double> utilisation_fraction;
  Sample<Celsius> temperature;
  Sample<Hertz> sm_clock;
  Sample<Milliwatts> limit_enforced;
  Sample<Milliwatts> minimum;
  Sample<Milliwatts> maximum;
  /// Of the time of the steps in the interval, what this rank waited for others or for data; absent where the job does
  /// not tell. It is not all absorbable: see doc/policies.md.
  Sample<double> wait_fraction;
  std::optional<Hertz> clock_ceiling;  ///< our lock, as the guard accepted it: no driver tells
  ThrottleReasons throttle;            ///< any seen during the interval
  double coverage_fraction = 0;        ///< share of the interval with good power
  bool external_limiter = false;       ///< enforced below what we asked, or a brake: freeze learning
  bool hung_progress = false;          ///< high utilisation, low power, no progress
};

/// What a policy sees: nothing that a real one could not. Time is the run's own.
struct Observation {
  MonoTime at;
  Seconds interval;
  std::vector<GpuObservation> gpus;
  Sample<double> tokens_per_second;  ///< of the whole job, over whole steps where they are known
  Sample<Seconds> step_time;
  MonoTime rate_from, rate_to;  ///< begin and end of those steps; they may have begun before the interval
  Phase phase = Phase::unknown;
  std::uint64_t tokens = 0;  ///< cumulative
  Seconds remaining;         ///< of the run, for policies with a horizon; 0 = unknown
  /// All boards' clocks can be locked and were declared unlocked before we came: a lock is a lever beside the limit.
  bool clocks_unlocked = false;
};

/// A wish for one GPU. Absent fields mean "as it is".
struct GpuProposal {
  DeviceId device;
  std::optional<Milliwatts> power_limit;
  std::optional<ClockRange> locked_clocks = {};
  bool unlock_clocks = false;  ///< the clocks go free again; excludes locked_clocks
};

struct Proposal {
  std::vector<GpuProposal> gpus;
  std::string reason;     ///< one line, for the ledger
  bool baseline = false;  ///< the limits as found, to measure against and not to save
};

/// Tokens against watts: one of the two is set.
struct Objective {
  std::optional<double> alpha;              ///< reward = saved − alpha · loss
  std::optional<double> max_loss_fraction;  ///< "at most 1.2 % slower"
};

/// A bound on a meter, over a window.
struct Budget {
  DeviceId meter;
  Watts limit;
  Seconds window;
  double allowed_violation_fraction = 0;
};

}  // namespace flyball
