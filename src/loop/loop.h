#pragma once
// The tick: observe, decide, propose, verify. The same code live, in replay and in evaluation: it starts no thread,
// does no I/O of its own and waits for nothing. Whoever owns it moves time and calls `tick` at every poll.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/control.h"
#include "core/driver.h"
#include "core/result_types.h"
#include "guard/authority.h"
#include "loop/gpu_meter.h"
#include "loop/progress.h"
#include "loop/switchback.h"
#include "policy/policy.h"

namespace flyball::loop {

struct Options {
  Seconds poll{0.5};                 ///< as the owner calls `tick`; sets what a hole is
  Seconds decision{10};              ///< whole polls
  Seconds run_length{0};             ///< 0 = not known
  double least_coverage = 0.5;       ///< below that the interval is too little to decide on
  Milliwatts limit_tolerance{1000};  ///< boards round limits by up to a watt
  LeaseKind lease = LeaseKind::saving;
  Authority authority = Authority::job;
  Seconds lease_time{10};
  std::string purpose = "flyball run";
  std::vector<DeviceId> devices;  ///< empty = every board that is there
  bool observe_only = false;      ///< no lease, no proposal, no write
  bool start_must_hold = true;    ///< false in a replay, where nothing can be written
  /// Every board's clocks were declared unlocked (site.clocks_unlocked), so that a policy may lock them.
  bool clocks_unlocked = false;
  std::uint64_t seed = 1;  ///< the policy's
  /// Blocks at the limits found, drawn at random, by which the saving is measured. Empty = none.
  std::optional<SwitchbackOptions> switchback;
};

/// One decision, whole: what was seen, what was wished, what became of it.
struct DecisionRecord {
  std::uint64_t number = 0;  ///< 1 = the first
  MonoTime at;
  WallTime wall;
  Observation observation;
  std::string frozen;   ///< why the policy was not asked; empty = it was, unless a block at the limits found held
  bool control = true;  ///< false: the limits found held, by the switchback
  Proposal proposal;
  std::vector<guard::WriteOutcome> writes;
  std::vector<Finding> findings;  ///< that began in this interval
};

class Loop {
 public:
  /// All outlive the loop.
  Loop(Driver& driver, Clock& clock, guard::LimitAuthority& authority, ProgressSource& progress, policy::Policy& policy,
       Options options);

  /// Finds the boards and takes the first reading; asks for a lease unless told only to observe. A policy that must
  /// hold something from the start (a budget) has its limits written here; where they are not, the run must not begin.
  Result<> start();
  /// One poll at `clock.now()`; a decision comes out at the end of each interval.
  std::optional<DecisionRecord> tick();
  /// From the next decision on; the policy keeps what it has learnt. Refused as the policy refuses it.
  Result<> set_objective(const Objective& objective);
  /// A replay only: what the run that was recorded had written is what holds now, whatever this loop asked for.
  void adopt(const guard::WriteOutcome& recorded);
  /// A replay only, before `start`: what that run found, where it wrote before its first reading.
  void adopt_found(const DeviceId& device, Milliwatts limit) { found_before_[device] = limit; }
  /// Ends the lease, so that the guard gives back what was found. Safe to call twice and after a failed start.
  Result<std::vector<guard::RestoreOutcome>> finish();

  /// Of all GPUs since `start`; tokens are those of whole steps.
  Account account() const;
  Rejected rejected() const;
  std::uint64_t writes() const { return writes_; }
  std::uint64_t writes_refused() const { return writes_refused_; }
  /// Every finding of the run, at most kMostFindings.
  const std::vector<Finding>& findings() const { return findings_; }
  std::vector<DeviceId> devices() const;
  /// What the policy's start wrote over: empty where nothing was written.
  struct StartWrite {
    DeviceId device;
    Milliwatts found;
  };
  const std::vector<StartWrite>& start_writes() const { return start_writes_; }
  /// Empty where there was none.
  std::optional<SwitchbackResult> switchback() const;
  static constexpr std::size_t kMostFindings = 1000;

 private:
  struct Board {
    explicit Board(GpuMeter m) : meter(std::move(m)) {}
    GpuMeter meter;
    std::optional<Milliwatts> expected;   ///< what holds if nobody interferes: our last accepted limit, once in force
    std::optional<Milliwatts> deferred;   ///< accepted, still on its way
    std::optional<Milliwatts> found;      ///< at the start
    Sample<Watts> highest_mean;           ///< of any interval so far
    std::optional<ClockRange> locked;     ///< our last accepted lock
    std::optional<MonoTime> locked_at;    ///< when that, or its end, was accepted
    Sample<Seconds> waited, waited_from;  ///< by its rank, now and where the window of whole steps begins
    bool limiter = false;                 ///< in this interval: enforced below what we asked, or a brake
    bool foreign = false;                 ///< in this interval: enforced above what we asked
    bool foreign_clock = false;           ///< in this interval: the clock above our lock
    bool lost = false;

    void expect(const guard::WriteOutcome& outcome);
  };

  Result<> begin_policy();
  void poll();
  void check_limit(Board& board, const GpuReading& reading);
  bool escapes_lock(const Board& board, const GpuObservation& gpu) const;
  void follow_waits();
  Observation observe(Seconds interval);
  bool is_hung(const Board& board, const GpuObservation& gpu) const;
  std::string freeze_reason(const Observation& observation);
  void decide(DecisionRecord& record);
  Proposal ask(const Observation& observation);
  Proposal as_found() const;
  void measure_block(const Sample<WorkloadProgress>& progress);
  /// True if all that was asked holds or is on its way.
  bool write(DecisionRecord& record);
  Board* board_of(const DeviceId& device);
  bool note_outcomes(const std::vector<guard::WriteRequest>& requests,
                     const std::vector<guard::WriteOutcome>& outcomes);
  void note_lock(Board& board, const guard::WriteRequest& request);
  void keep_lease();
  void lose_lease(MonoTime now, const std::string& why);
  /// Reports the onset of a condition once; `clear` ends it.
  void find(Severity severity, const std::string& code, const DeviceId& device, std::string what, std::string remedy);
  void clear(const std::string& code, const DeviceId& device);

  Driver& driver_;
  Clock& clock_;
  guard::LimitAuthority& authority_;
  ProgressSource& progress_;
  policy::Policy& policy_;
  Options options_;

  std::vector<Board> boards_;
  std::optional<Switchback> switchback_;
  experiment::Arm in_force_ = experiment::Arm::control;  ///< whose limits were written last
  bool whole_ = true;                                    ///< all of them
  bool asked_ = false;                                   ///< the policy has a wish, if only to leave all as it is
  bool switched_ = false;                                ///< the interval in hand began with another arm's limits
  Proposal wish_;                                        ///< the policy's last, for after a block at the limits found
  std::vector<StartWrite> start_writes_;
  std::map<DeviceId, Milliwatts> found_before_;
  StepRate rate_;
  Phase phase_ = Phase::unknown;  ///< of the interval: any other than training that was seen in it
  bool progress_missing_ = false;
  Seconds step_time_;  ///< the last one known
  std::optional<MonoTime> progressed_;
  MonoTime started_, interval_start_, leased_, renewed_, ask_again_;
  Seconds ask_pause_;
  std::optional<guard::LeaseId> lease_;
  std::uint64_t decisions_ = 0, writes_ = 0, writes_refused_ = 0;
  int lost_in_a_row_ = 0;  ///< leases that did not live for long
  std::vector<Finding> findings_, fresh_;
  std::vector<std::pair<std::string, DeviceId>> ongoing_;
};

}  // namespace flyball::loop
