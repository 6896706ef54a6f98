#include "loop/loop.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"

namespace flyball::loop {
namespace {

/// A job that stands in a collective shows full utilisation at a seventh of its power (doc/safety.md).
constexpr double kHungUtilisation = 0.9;
constexpr double kHungPower = 0.4;
/// No step for this many usual steps, and for this many decisions.
constexpr double kHungSteps = 3;
constexpr double kHungIntervals = 2;
/// A lease is renewed at this share of its life, so that two renewals may be late.
constexpr double kRenewAt = 0.3;
/// Between two asks for a lease that was refused: doubled from the first to the second. A guard that is restarted is
/// back within seconds; one that refuses for good is not asked at every poll.
constexpr Seconds kFirstPause{1};
constexpr Seconds kLongestPause{10};
/// A lease that lives shorter than this was lost again: a guard that dies over and over, or a machine that gives this
/// run no processor. Each time limits were lowered and given back, so such leases are asked for ever more rarely:
/// pauses double up to the second value, and no further, for what disturbed may be over in the middle of a long run.
constexpr Seconds kSettled{60};
constexpr Seconds kLongestPauseOfLost{300};
/// In a row; from then on it is a finding of its own.
constexpr int kOftenLost = 3;
/// A clock this far above our lock is not held by it: clocks come in steps of 15 MHz, and means are rounded.
constexpr Hertz kClockTolerance{20e6};

GpuMeter::Options meter_options(Seconds poll) {
  // Three lost polls in a row are a hole; four make a reading stale.
  return {.longest_gap = poll * 3.5, .stale_after = poll * 4};
}

bool wanted(const std::vector<DeviceId>& devices, const DeviceId& device) {
  return devices.empty() || std::find(devices.begin(), devices.end(), device) != devices.end();
}

}  // namespace

Loop::Loop(Driver& driver, Clock& clock, guard::LimitAuthority& authority, ProgressSource& progress,
           policy::Policy& policy, Options options)
    : driver_(driver),
      clock_(clock),
      authority_(authority),
      progress_(progress),
      policy_(policy),
      options_(std::move(options)) {}

Result<> Loop::start() {
  FLYBALL_ASSIGN(const auto found, driver_.devices());
  for (const DeviceInfo& info : found) {
    if (!wanted(options_.devices, info.id)) continue;
    boards_.emplace_back(GpuMeter(info.id, meter_options(options_.poll)));
  }
  for (const DeviceId& device : options_.devices) {
    const bool there =
        std::any_of(boards_.begin(), boards_.end(), [&](const Board& board) { return board.meter.device() == device; });
    if (!there) {
      return fail(ErrorCode::input, "there is no such GPU", device.text(), "`flyball doctor` lists those that are");
    }
  }
  if (boards_.empty()) return fail(ErrorCode::unsupported, "the driver " + driver_.name() + " shows no GPU");
  for (Board& board : boards_) {
    if (const auto limits = driver_.limits(board.meter.device())) board.meter.set_limits(*limits);
  }
  policy_.reset(options_.seed);
  started_ = interval_start_ = clock_.now();
  if (options_.switchback && !options_.observe_only) {
    switchback_.emplace(*options_.switchback, options_.decision, options_.run_length, options_.seed);
    in_force_ = switchback_->arm();
  }
  if (!options_.observe_only) {
    keep_lease();
    FLYBALL_TRY(begin_policy());
  }
  poll();
  // The first reading is where the first interval begins.
  for (Board& board : boards_) (void)board.meter.take(started_, Seconds(0));
  phase_ = Phase::unknown;
  return {};
}

Result<> Loop::begin_policy() {
  std::vector<GpuObservation> gpus(boards_.size());
  for (std::size_t i = 0; i < boards_.size(); ++i) {
    gpus[i].device = boards_[i].meter.device();
    if (const auto limits = driver_.limits(gpus[i].device)) {
      gpus[i].limit_enforced = limits->enforced;
      gpus[i].minimum = limits->minimum;
      gpus[i].maximum = limits->maximum;
    }
    const auto before = found_before_.find(gpus[i].device);
    if (before != found_before_.end()) gpus[i].limit_enforced = before->second;
  }
  DecisionRecord record;
  FLYBALL_ASSIGN(record.proposal, policy_.at_start(gpus));
  if (record.proposal.gpus.empty()) return {};
  for (std::size_t i = 0; i < boards_.size(); ++i) {
    if (gpus[i].limit_enforced) boards_[i].found = *gpus[i].limit_enforced;
  }
  const bool all = write(record);
  for (const guard::WriteOutcome& outcome : record.writes) {
    const Board* const board = board_of(outcome.device);
    const bool written = outcome.state == guard::WriteState::applied || outcome.state == guard::WriteState::deferred;
    if (written && board != nullptr && board->found) start_writes_.push_back({outcome.device, *board->found});
  }
  if (all || !options_.start_must_hold) return {};
  (void)finish();
  const std::string why = findings_.empty() ? "no lease" : findings_.back().what;
  return fail(ErrorCode::refused, "the limits that must hold from the start do not: " + why, {},
              findings_.empty() ? "see `flyball doctor`" : findings_.back().remedy);
}

void Loop::keep_lease() {
  const MonoTime now = clock_.now();
  if (lease_) {
    if (now - renewed_ < options_.lease_time * kRenewAt) return;
    renewed_ = now;
    const bool settled = now - leased_ >= kSettled;
    if (settled) {
      lost_in_a_row_ = 0;
      clear("lease.lost", {});
    }
    const auto renewed = authority_.renew(*lease_);
    if (renewed) return;
    lose_lease(now, renewed.error().what);
  }
  if (now < ask_again_) return;
  const auto acquired = authority_.acquire({.kind = options_.lease,
                                            .authority = options_.authority,
                                            .devices = devices(),
                                            .time_to_live = options_.lease_time,
                                            .purpose = options_.purpose});
  if (acquired) {
    lease_ = *acquired;
    renewed_ = leased_ = now;
    ask_pause_ = Seconds(0);
    clear("lease.refused", {});
    return;
  }
  ask_pause_ = std::clamp(ask_pause_ * 2, kFirstPause, kLongestPause);
  ask_again_ = now + ask_pause_;
  find(Severity::warning, "lease.refused", {}, "the guard gives no lease: " + acquired.error().what,
       acquired.error().remedy.empty() ? "limits are only observed" : acquired.error().remedy);
}

void Loop::lose_lease(MonoTime now, const std::string& why) {
  lease_.reset();
  whole_ = false;
  for (Board& board : boards_) board.expected.reset(), board.deferred.reset(), board.locked.reset();
  // The first one is asked for again at once: a guard that was restarted is back.
  if (lost_in_a_row_ > 0) {
    const double doubled = static_cast<double>(1u << std::min(lost_in_a_row_ - 1, 20));
    ask_again_ = now + std::min(kFirstPause * doubled, kLongestPauseOfLost);
  }
  if (++lost_in_a_row_ < kOftenLost) return;
  find(Severity::warning, "lease.lost", {},
       "the guard's leases end within a minute each (" + why +
           "); the next ones are asked for ever more rarely, up to " + format(kLongestPauseOfLost) +
           " apart, and limits are as found in between",
       "see `flyball doctor`, `journalctl -u flyball-guard`, and whether this run gets processor time");
}

void Loop::poll() {
  for (Board& board : boards_) {
    const DeviceId& device = board.meter.device();
    const auto reading = driver_.read(device);
    const bool lost = !reading || reading->state != DeviceState::ok;
    if (lost) {
      board.lost = true;
      const std::string why = reading ? std::string(to_string(reading->state)) : reading.error().what;
      find(Severity::warning, "gpu.not_read", device, "the GPU gives no reading: " + why,
           "`flyball doctor` tells what is wrong; deciding rests meanwhile");
      continue;
    }
    board.meter.add(*reading, clock_.now());
    check_limit(board, *reading);
  }
  const auto progress = progress_.progress();
  measure_block(progress);
  if (!progress) {
    progress_missing_ = true;
    return;
  }
  const std::uint64_t before = rate_.last() ? rate_.last()->tokens : 0;
  if (!rate_.last() || progress.value.tokens != before) progressed_ = clock_.now();
  rate_.add(*progress);
  follow_waits();
  const bool training = phase_ == Phase::unknown || phase_ == Phase::training;
  if (training && progress.value.phase != Phase::unknown) phase_ = progress.value.phase;
}

/// A block counts while its arm's limits hold, the job trains and nobody outside interferes.
void Loop::measure_block(const Sample<WorkloadProgress>& progress) {
  if (!switchback_ || !progress) return;
  const bool holds = std::none_of(boards_.begin(), boards_.end(),
                                  [](const Board& board) { return board.deferred || board.limiter || board.foreign; });
  const Phase phase = progress.value.phase;
  experiment::Poll poll;
  poll.at = clock_.now() - started_;
  poll.step_ended = progress.value.at - started_;
  poll.tokens = progress.value.tokens;
  poll.counts = holds && lease_ && whole_ && in_force_ == switchback_->arm() &&
                (phase == Phase::unknown || phase == Phase::training);
  for (const Board& board : boards_) {
    poll.energy += board.meter.energy();
    poll.covered += board.meter.covered() / static_cast<double>(boards_.size());
  }
  switchback_->add(poll);
}

void Loop::check_limit(Board& board, const GpuReading& reading) {
  if (reading.throttle && (*reading.throttle).external_brake()) board.limiter = true;
  if (!reading.limit_enforced) return;
  const Milliwatts enforced = *reading.limit_enforced;
  const Milliwatts tolerance = options_.limit_tolerance;
  if (board.deferred && enforced <= *board.deferred + tolerance && enforced >= *board.deferred - tolerance) {
    board.expected = board.deferred;
    board.deferred.reset();
  }
  if (!board.expected) return;
  if (enforced < *board.expected - tolerance) board.limiter = true;
  if (enforced > *board.expected + tolerance) board.foreign = true;
}

/// A lock cannot be read back; that the board runs above it can.
bool Loop::escapes_lock(const Board& board, const GpuObservation& gpu) const {
  // The mean over the first interval of a lock has a part of the clock before it.
  const bool whole = board.locked && board.locked_at < interval_start_;
  return whole && gpu.sm_clock && *gpu.sm_clock > board.locked->high + kClockTolerance;
}

void Loop::follow_waits() {
  for (Board& board : boards_) {
    board.waited = progress_.waited(board.meter.device());
    const bool fell = board.waited && board.waited_from && *board.waited < *board.waited_from;
    if (rate_.begins() || fell || !board.waited_from) board.waited_from = board.waited;
  }
}

bool Loop::is_hung(const Board& board, const GpuObservation& gpu) const {
  if (phase_ != Phase::unknown && phase_ != Phase::training) return false;  // it says why there is no step
  if (!progressed_ || !gpu.power || !gpu.utilisation_fraction || !board.highest_mean) return false;
  const Seconds silent = clock_.now() - *progressed_;
  const Seconds patience = std::max(step_time_ * kHungSteps, options_.decision * kHungIntervals);
  return silent > patience && *gpu.utilisation_fraction >= kHungUtilisation &&
         *gpu.power < *board.highest_mean * kHungPower;
}

Observation Loop::observe(Seconds interval) {
  Observation observation;
  observation.at = clock_.now();
  observation.interval = interval;
  const StepRate::Rate rate = rate_.take();
  if (rate.step_time) step_time_ = *rate.step_time;
  observation.tokens_per_second = rate.tokens_per_second;
  observation.step_time = rate.step_time;
  observation.rate_from = rate.from;
  observation.rate_to = rate.to;
  observation.tokens = rate_.tokens();
  observation.phase = phase_;
  const Seconds left = options_.run_length - (clock_.now() - started_);
  observation.remaining = std::max(left, Seconds(0));
  observation.clocks_unlocked = options_.clocks_unlocked;
  for (Board& board : boards_) {
    if (const auto limits = driver_.limits(board.meter.device())) board.meter.set_limits(*limits);
    GpuObservation gpu = board.meter.take(observation.at, interval);
    // The first time is before anything was written.
    if (!board.found && gpu.limit_enforced) board.found = *gpu.limit_enforced;
    gpu.external_limiter = board.limiter;
    gpu.hung_progress = is_hung(board, gpu);
    if (board.locked) gpu.clock_ceiling = board.locked->high;
    if (escapes_lock(board, gpu)) board.foreign_clock = true;
    if (rate.to > rate.from && board.waited && board.waited_from) {
      gpu.wait_fraction = std::clamp((*board.waited - *board.waited_from) / (rate.to - rate.from), 0.0, 1.0);
    }
    if (rate.to > rate.from) board.waited_from = board.waited;
    if (gpu.power && (!board.highest_mean || *gpu.power > *board.highest_mean)) board.highest_mean = gpu.power;
    observation.gpus.push_back(std::move(gpu));
  }
  return observation;
}

/// Conditions under which an interval says nothing about the policy's own doing. All are reported, the first is named.
std::string Loop::freeze_reason(const Observation& observation) {
  std::string reason;
  const auto freeze = [&](bool is, const char* code, const DeviceId& device, std::string what, const char* remedy) {
    if (!is) return clear(code, device);
    if (reason.empty()) reason = device.text() + ": " + what;
    find(Severity::warning, code, device, std::move(what), remedy);
  };
  for (std::size_t i = 0; i < boards_.size(); ++i) {
    const Board& board = boards_[i];
    const GpuObservation& gpu = observation.gpus[i];
    freeze(gpu.hung_progress, "job.hung", gpu.device, "full utilisation at little power and no progress",
           "look at the job: a rank may wait in a collective for ever");
    freeze(gpu.external_limiter, "limit.external", gpu.device, "someone outside limits the board below what was asked",
           "see the BMC, the power supply and the throttle reasons");
    freeze(board.foreign, "limit.foreign", gpu.device, "the limit was raised by someone else",
           "find the other program that writes limits");
    freeze(board.foreign_clock, "clocks.foreign", gpu.device, "it runs above the clocks that it was locked to",
           "find the other program that sets clocks, or a driver that was loaded again");
    freeze(gpu.coverage_fraction < options_.least_coverage, "telemetry.coverage", gpu.device,
           "power was seen for " + format_percent(gpu.coverage_fraction, 0) + " of the interval",
           "see `flyball doctor` for the sensor");
  }
  return reason;
}

/// The policy is asked after intervals that were all its own, told of those that were all at the limits found, and
/// hears nothing of the first one after a switch, which has steps of both.
Proposal Loop::ask(const Observation& observation) {
  if (switched_) return wish_;
  if (in_force_ == experiment::Arm::original) {
    if (whole_) policy_.observe_baseline(observation);
    return wish_;
  }
  asked_ = true;
  return policy_.decide(observation);
}

Proposal Loop::as_found() const {
  Proposal proposal{{}, "switchback: a block at the limits found"};
  for (const Board& board : boards_) {
    if (board.found) proposal.gpus.push_back({board.meter.device(), *board.found, {}, board.locked.has_value()});
  }
  return proposal;
}

void Loop::decide(DecisionRecord& record) {
  using experiment::Arm;
  const Arm next =
      switchback_ ? switchback_->advance(record.at - started_, record.observation.step_time) : Arm::control;
  if (!record.frozen.empty()) {
    switched_ = false;
    return;
  }
  wish_ = ask(record.observation);
  if (next == Arm::control && !asked_) {
    // A canary's first block under control: a policy that was never asked has no wish to hold it with.
    asked_ = true;
    wish_ = policy_.decide(record.observation);
  }
  record.proposal = next == Arm::control ? wish_ : as_found();
  whole_ = write(record);
  switched_ = next != in_force_;
  in_force_ = next;
}

bool Loop::write(DecisionRecord& record) {
  std::vector<guard::WriteRequest> requests;
  std::set<DeviceId> seen;
  for (const GpuProposal& wish : record.proposal.gpus) {
    if (!wish.power_limit && !wish.locked_clocks && !wish.unlock_clocks) continue;
    const bool ours = std::any_of(boards_.begin(), boards_.end(),
                                  [&](const Board& board) { return board.meter.device() == wish.device; });
    if (ours && seen.insert(wish.device).second)
      requests.push_back({wish.device, wish.power_limit, wish.locked_clocks, wish.unlock_clocks});
  }
  if (requests.empty()) return true;
  if (!lease_) return false;
  auto outcomes = authority_.write(*lease_, requests);
  if (!outcomes) {
    find(Severity::warning, "write.none", {}, "the guard took no write: " + outcomes.error().what,
         outcomes.error().remedy);
    return false;
  }
  clear("write.none", {});
  const bool all = note_outcomes(requests, *outcomes);
  record.writes = std::move(*outcomes);
  return all;
}

void Loop::Board::expect(const guard::WriteOutcome& outcome) {
  const bool limit = outcome.asked > Milliwatts(0) && outcome.accepted > Milliwatts(0);  // not of clocks alone
  switch (outcome.state) {
    case guard::WriteState::applied:
    case guard::WriteState::unchanged:
      if (limit) expected = outcome.enforced ? *outcome.enforced : outcome.accepted;
      deferred.reset();
      break;
    case guard::WriteState::deferred:
      expected.reset();
      deferred = limit ? std::optional(outcome.accepted) : std::nullopt;
      break;
    case guard::WriteState::refused:
    case guard::WriteState::failed:
      break;
  }
}

Loop::Board* Loop::board_of(const DeviceId& device) {
  const auto found =
      std::find_if(boards_.begin(), boards_.end(), [&](const Board& b) { return b.meter.device() == device; });
  return found == boards_.end() ? nullptr : &*found;
}

void Loop::adopt(const guard::WriteOutcome& recorded) {
  if (Board* const board = board_of(recorded.device)) board->expect(recorded);
}

bool Loop::note_outcomes(const std::vector<guard::WriteRequest>& requests,
                         const std::vector<guard::WriteOutcome>& outcomes) {
  bool all = true;
  for (const guard::WriteOutcome& outcome : outcomes) {
    Board* const board = board_of(outcome.device);
    const auto request = std::find_if(requests.begin(), requests.end(),
                                      [&](const guard::WriteRequest& r) { return r.device == outcome.device; });
    if (board == nullptr || request == requests.end()) continue;
    board->expect(outcome);
    switch (outcome.state) {
      case guard::WriteState::applied:
      case guard::WriteState::deferred:
        ++writes_;
        break;
      case guard::WriteState::unchanged:
        break;
      case guard::WriteState::refused:
      case guard::WriteState::failed:
        ++writes_refused_;
        all = false;
        find(Severity::warning, "write." + std::string(to_string(outcome.state)), outcome.device,
             (request->power_limit ? "a limit of " + format(outcome.asked) : std::string("a lock of clocks")) +
                 " was not set: " + outcome.reason,
             "see `flyball doctor`");
        continue;
    }
    note_lock(*board, *request);
    clear("write.refused", outcome.device);
    clear("write.failed", outcome.device);
    const bool power = outcome.asked > Milliwatts(0);
    const auto [low, high] = std::minmax(outcome.asked, outcome.accepted);
    if (power && high - low > options_.limit_tolerance) {
      find(
          Severity::info, "write.bounded", outcome.device,
          "a limit of " + format(outcome.asked) + " was asked for, " + format(outcome.accepted) + " is what may be set",
          "`flyball doctor` shows the board's range");
    } else if (power) {
      clear("write.bounded", outcome.device);
    }
  }
  return all;
}

void Loop::note_lock(Board& board, const guard::WriteRequest& request) {
  if (!request.locked_clocks && !request.unlock_clocks) return;
  if (board.locked != request.locked_clocks) board.locked_at = clock_.now();
  board.locked = request.locked_clocks;
}

std::optional<DecisionRecord> Loop::tick() {
  if (!options_.observe_only) keep_lease();
  poll();
  const MonoTime now = clock_.now();
  const Seconds interval = now - interval_start_;
  // Half a poll of grace: the poll nearest to the end of the interval ends it.
  if (interval < options_.decision - options_.poll / 2) return std::nullopt;

  DecisionRecord record;
  record.number = ++decisions_;
  record.at = now;
  record.wall = clock_.wall();
  record.observation = observe(interval);
  record.frozen = freeze_reason(record.observation);
  if (progress_missing_) {
    find(Severity::info, "job.silent", {}, "the job does not say how far it is", "link the workload library into it");
  } else {
    clear("job.silent", {});
  }
  record.control = in_force_ == experiment::Arm::control;
  if (!options_.observe_only) decide(record);
  for (Board& board : boards_) {
    board.limiter = board.foreign = board.foreign_clock = false;
    if (!board.lost) clear("gpu.not_read", board.meter.device());
    board.lost = false;
  }
  phase_ = Phase::unknown;
  progress_missing_ = false;
  interval_start_ = now;
  record.findings = std::exchange(fresh_, {});
  return record;
}

Result<> Loop::set_objective(const Objective& objective) {
  FLYBALL_TRY(policy_.set_objective(objective));
  clear("objective.changed", {});
  find(Severity::info, "objective.changed", {},
       objective.alpha ? "from here on saved − " + format_exact(*objective.alpha) + " · lost is sought"
                       : "from here on at most " + format_percent(objective.max_loss_fraction.value_or(0)) +
                             " of the tokens may be lost",
       {});
  return {};
}

Result<std::vector<guard::RestoreOutcome>> Loop::finish() {
  if (!lease_) return std::vector<guard::RestoreOutcome>{};
  const guard::LeaseId lease = *lease_;
  lease_.reset();
  return authority_.release(lease);
}

Account Loop::account() const {
  Account account;
  account.duration = clock_.now() - started_;
  account.tokens = static_cast<double>(rate_.tokens());
  Seconds covered;
  std::set<std::string> methods;
  for (const Board& board : boards_) {
    account.energy += board.meter.energy();
    covered += board.meter.covered();
    methods.insert(board.meter.method());
    account.scope = board.meter.scope();
  }
  for (const std::string& method : methods) account.method += (account.method.empty() ? "" : "; ") + method;
  const Seconds asked = account.duration * static_cast<double>(boards_.size());
  account.coverage_fraction = asked > Seconds(0) ? std::min(1.0, covered / asked) : 0;
  return account;
}

Rejected Loop::rejected() const {
  Rejected sum;
  for (const Board& board : boards_) sum += board.meter.rejected();
  return sum;
}

std::optional<SwitchbackResult> Loop::switchback() const {
  if (!switchback_) return std::nullopt;
  const bool instants = std::any_of(boards_.begin(), boards_.end(), [](const Board& board) {
    return board.meter.method().find(to_string(Signal::power_instant)) != std::string::npos;
  });
  return switchback_->result(instants ? options_.poll : Seconds(0));
}

std::vector<DeviceId> Loop::devices() const {
  std::vector<DeviceId> ids;
  ids.reserve(boards_.size());
  for (const Board& board : boards_) ids.push_back(board.meter.device());
  return ids;
}

void Loop::find(Severity severity, const std::string& code, const DeviceId& device, std::string what,
                std::string remedy) {
  const std::pair key(code, device);
  if (std::find(ongoing_.begin(), ongoing_.end(), key) != ongoing_.end()) return;
  ongoing_.push_back(key);
  if (findings_.size() >= kMostFindings) return;
  findings_.push_back({severity, code, device, std::move(what), std::move(remedy), clock_.wall(), 1});
  fresh_.push_back(findings_.back());
}

void Loop::clear(const std::string& code, const DeviceId& device) { std::erase(ongoing_, std::pair(code, device)); }

}  // namespace flyball::loop
