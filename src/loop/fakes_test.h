#pragma once
// The smallest machine and guard that the loop can run against; for this room's tests only.

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "core/driver.h"
#include "guard/authority.h"
#include "loop/progress.h"
#include "policy/policy.h"

namespace flyball::loop::testing {

/// Boards that draw 0.9 of their limit; `bend` may change each reading before the loop sees it.
class FakeDriver final : public Driver {
 public:
  explicit FakeDriver(Clock& clock, int boards = 1) : clock_(clock) {
    for (int i = 0; i < boards; ++i)
      boards_.emplace_back(DeviceId::of("GPU-" + std::string(1, char('a' + i))), Board());
  }

  struct Board {
    Milliwatts limit{250'000};
    std::optional<ClockRange> locked;
    Joules energy;
    MonoTime at;
  };
  std::function<void(GpuReading&)> bend;
  bool read_fails = false;

  std::string name() const override { return "fake"; }
  Result<DriverEpoch> epoch() override { return DriverEpoch{"boot", "load", "1"}; }
  Result<std::vector<DeviceInfo>> devices() override {
    std::vector<DeviceInfo> all;
    for (const auto& [id, board] : boards_) {
      DeviceInfo info;
      info.id = id;
      all.push_back(info);
    }
    return all;
  }
  Result<GpuReading> read(const DeviceId& device) override {
    if (read_fails) return fail(ErrorCode::failed, "the call failed", device.text());
    Board& board = settle(device);
    GpuReading reading;
    reading.device = device;
    reading.taken = clock_.now();
    reading.wall = clock_.wall();
    reading.power_average = board.limit.watts() * 0.9;
    reading.energy = board.energy;
    reading.utilisation_fraction = 0.99;
    reading.temperature = Celsius(60);
    reading.sm_clock = board.locked ? board.locked->high : Hertz(1.4e9);
    reading.limit_enforced = board.limit;
    reading.throttle = ThrottleReasons{ThrottleReasons::kSoftwarePowerCap};
    if (bend) bend(reading);
    return reading;
  }
  Result<PowerLimits> limits(const DeviceId& device) override {
    PowerLimits limits;
    limits.requested = limits.enforced = settle(device).limit;
    limits.minimum = Milliwatts(100'000);
    limits.maximum = limits.factory_default = Milliwatts(250'000);
    return limits;
  }
  Result<Capabilities> capabilities(const DeviceId&) override { return Capabilities{}; }
  Result<> set_power_limit(const DeviceId& device, Milliwatts limit) override {
    settle(device).limit = limit;
    return {};
  }
  Result<> lock_clocks(const DeviceId& device, ClockRange range) override {
    settle(device).locked = range;
    return {};
  }
  Result<> reset_clocks(const DeviceId& device) override {
    settle(device).locked.reset();
    return {};
  }

  Board& settle(const DeviceId& device) {
    Board& board =
        std::find_if(boards_.begin(), boards_.end(), [&](const auto& b) { return b.first == device; })->second;
    board.energy += board.limit.watts() * 0.9 * (clock_.now() - board.at);
    board.at = clock_.now();
    return board;
  }

 private:
  Clock& clock_;
  std::vector<std::pair<DeviceId, Board>> boards_;
};

/// Clamps and sets, as the guard does, and remembers.
class FakeAuthority final : public guard::LimitAuthority {
 public:
  explicit FakeAuthority(Driver& driver) : driver_(driver) {}
  std::vector<guard::WriteRequest> asked;
  std::map<DeviceId, Milliwatts> found;
  bool refuses = false, no_lease = false, defers = false, ends_lease = false;
  int acquired = 0, refused = 0, renewed = 0, released = 0;

  Result<guard::LeaseId> acquire(const guard::LeaseRequest& request) override {
    if (no_lease) return ++refused, fail(ErrorCode::refused, "observe only here");
    for (const DeviceId& device : request.devices) found.emplace(device, *driver_.limits(device)->enforced);
    return static_cast<guard::LeaseId>(++acquired);
  }
  Result<> renew(guard::LeaseId) override {
    ++renewed;
    if (ends_lease) return fail(ErrorCode::refused, "no such lease");
    return {};
  }
  Result<std::vector<guard::WriteOutcome>> write(guard::LeaseId, const std::vector<guard::WriteRequest>& all) override {
    std::vector<guard::WriteOutcome> outcomes;
    for (const guard::WriteRequest& request : all) {
      asked.push_back(request);
      guard::WriteOutcome outcome;
      outcome.device = request.device;
      outcome.asked = request.power_limit.value_or(Milliwatts(0));
      if (!request.power_limit) {
        const bool locks = request.locked_clocks.has_value();
        (void)(locks ? driver_.lock_clocks(request.device, *request.locked_clocks)
                     : driver_.reset_clocks(request.device));
        outcome.state = guard::WriteState::applied;
        outcomes.push_back(outcome);
        continue;
      }
      if (request.locked_clocks) (void)driver_.lock_clocks(request.device, *request.locked_clocks);
      if (request.unlock_clocks) (void)driver_.reset_clocks(request.device);
      const PowerLimits limits = *driver_.limits(request.device);
      outcome.accepted = std::clamp(outcome.asked, *limits.minimum, *limits.maximum);
      outcome.state = refuses                                ? guard::WriteState::refused
                      : defers                               ? guard::WriteState::deferred
                      : outcome.accepted == *limits.enforced ? guard::WriteState::unchanged
                                                             : guard::WriteState::applied;
      if (outcome.state == guard::WriteState::applied) (void)driver_.set_power_limit(request.device, outcome.accepted);
      if (outcome.state != guard::WriteState::refused) outcome.enforced = driver_.limits(request.device)->enforced;
      outcomes.push_back(outcome);
    }
    return outcomes;
  }
  Result<std::vector<guard::RestoreOutcome>> release(guard::LeaseId) override {
    ++released;
    return restore_all("release");
  }
  Result<std::vector<guard::RestoreOutcome>> restore_all(const std::string&) override {
    std::vector<guard::RestoreOutcome> outcomes;
    for (const auto& [device, limit] : found) {
      (void)driver_.set_power_limit(device, limit);
      guard::RestoreOutcome outcome;
      outcome.device = device;
      outcome.restored = true;
      outcomes.push_back(outcome);
    }
    return outcomes;
  }

 private:
  Driver& driver_;
};

/// Steps of `step` with 1000 tokens each, from time 0; may stand still.
class FakeProgress final : public ProgressSource {
 public:
  FakeProgress(Clock& clock, Seconds step) : clock_(clock), step_(step) {}
  bool silent = false;
  std::optional<double> waits;  ///< of the time
  Sample<Seconds> waited(const DeviceId&) override {
    if (!waits) return Sample<Seconds>::absent(Status::missing);
    return (progress().value.at - MonoTime()) * *waits;
  }
  std::optional<MonoTime> stops_at;
  Phase phase = Phase::training;
  Sample<WorkloadProgress> progress() override {
    if (silent) return Sample<WorkloadProgress>::absent(Status::missing);
    const MonoTime until = stops_at ? std::min(*stops_at, clock_.now()) : clock_.now();
    const auto steps = static_cast<std::uint64_t>(until.seconds() / step_.value() + 1e-9);
    WorkloadProgress progress;
    progress.at = MonoTime() + step_ * static_cast<double>(steps);
    progress.phase = phase;
    progress.steps = steps;
    progress.tokens = steps * 1000;
    return progress;
  }

 private:
  Clock& clock_;
  Seconds step_;
};

/// Asks what a function says and keeps every observation.
class Scripted final : public policy::Policy {
 public:
  std::function<Proposal(const Observation&)> wish = [](const Observation&) { return Proposal{}; };
  std::vector<Observation> seen, baselines;
  std::vector<Objective> objectives;
  std::string name() const override { return "scripted"; }
  void reset(std::uint64_t) override { seen.clear(), baselines.clear(); }
  void observe_baseline(const Observation& observation) override { baselines.push_back(observation); }
  Result<> set_objective(const Objective& objective) override {
    if (objective.alpha && objective.max_loss_fraction) return fail(ErrorCode::input, "both are given");
    objectives.push_back(objective);
    return {};
  }
  Proposal decide(const Observation& observation) override {
    seen.push_back(observation);
    return wish(observation);
  }
};

}  // namespace flyball::loop::testing
