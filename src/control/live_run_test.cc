#include "control/live_run.h"

#include <gtest/gtest.h>

#include "base/memory_filesystem.h"
#include "base/random.h"
#include "control/fake_job.h"
#include "control/guard_link.h"
#include "control/replay_run.h"
#include "control/twin_progress.h"
#include "device/twin/twin_driver.h"
#include "guard/engine.h"
#include "twin/machine.h"

namespace flyball::control {
namespace {

using namespace literals;

/// Time passes when the run waits for it, and whatever else lives on the machine goes on meanwhile.
class LivingClock final : public Clock {
 public:
  std::function<void()> meanwhile;
  std::optional<Seconds> sleeps_too_long;  ///< the next wait only

  MonoTime now() const override { return clock_.now(); }
  WallTime wall() const override { return clock_.wall(); }
  void sleep_until(MonoTime t) override {
    clock_.sleep_until(t);
    if (sleeps_too_long) clock_.advance(*std::exchange(sleeps_too_long, std::nullopt));
    if (meanwhile) meanwhile();
  }

 private:
  VirtualClock clock_;
};

/// The engine behind a connection that can break: then the leases end, as behind a closed socket.
class Connection final : public guard::LimitAuthority {
 public:
  explicit Connection(guard::Engine& engine) : engine_(engine) {}
  bool broken = false;

  Result<guard::LeaseId> acquire(const guard::LeaseRequest& request) override {
    if (broken) return gone();
    auto lease = engine_.acquire(request);
    if (lease) lease_ = *lease;
    return lease;
  }
  Result<> renew(guard::LeaseId lease) override { return broken ? Result<>(gone()) : engine_.renew(lease); }
  Result<std::vector<guard::WriteOutcome>> write(guard::LeaseId lease,
                                                 const std::vector<guard::WriteRequest>& writes) override {
    if (broken) return gone();
    return engine_.write(lease, writes);
  }
  Result<std::vector<guard::RestoreOutcome>> release(guard::LeaseId lease) override {
    if (broken) return gone();
    return engine_.release(lease);
  }
  Result<std::vector<guard::RestoreOutcome>> restore_all(const std::string& reason) override {
    return engine_.restore_all(reason);
  }
  void cut() {
    broken = true;
    engine_.client_gone(lease_, "cut");
  }

 private:
  tl::unexpected<Error> gone() { return fail(ErrorCode::failed, "the connection is gone"); }
  guard::Engine& engine_;
  guard::LeaseId lease_ = 0;
};

class LiveRunTest : public ::testing::Test {
 protected:
  LiveRunTest() : machine(*twin::Machine::create(parameters())), driver(machine, clock), job(machine) {
    engine = *guard::Engine::start({driver, clock, disk, audit}, {});
    connection = std::make_unique<Connection>(*engine);
    clock.meanwhile = [this] { engine->tick(); };
    const auto boards = *driver.devices();
    for (const DeviceInfo& board : boards) ids.push_back(board.id);
    options.plant = "twin";
    options.source = "twin";
    options.policy = "static:300W";
    options.duration = 60_s;
  }
  static twin::MachineParameters parameters() {
    twin::MachineParameters p;
    p.gpu = *twin::gpu_preset("a100-sxm4-80gb");
    p.gpus = 4;
    return p;
  }
  RunRecord run(guard::LimitAuthority& authority) {
    auto done = run_live(options, {driver, clock, authority, job}, nullptr);
    EXPECT_TRUE(done) << (done ? "" : done.error().message());
    return done ? *std::move(done) : RunRecord{};
  }
  Milliwatts limit(std::size_t board) { return *driver.limits(ids[board])->requested; }

  LivingClock clock;
  twin::Machine machine;
  device::TwinDriver driver;
  TwinProgress job;
  MemoryFilesystem disk;
  guard::MemoryAudit audit;
  std::unique_ptr<guard::Engine> engine;
  std::unique_ptr<Connection> connection;
  std::vector<DeviceId> ids;
  LiveRunOptions options;
};

TEST_F(LiveRunTest, LowersAccountsAndGivesBack) {
  const Milliwatts found = limit(0);
  Milliwatts lowest = found;
  options.progress = [&](Seconds, const Account&) { lowest = std::min(lowest, limit(0)); };
  const RunRecord done = run(*connection);
  EXPECT_EQ(lowest, 300'000_mW);
  EXPECT_EQ(limit(0), found);
  EXPECT_TRUE(done.result.restored);
  EXPECT_FALSE(done.degraded);
  EXPECT_FALSE(done.interrupted);
  EXPECT_EQ(done.decisions, 6u);
  EXPECT_EQ(done.result.writes, 4u);
  EXPECT_GT(done.result.account.tokens, 0);
  EXPECT_NEAR(done.result.account.duration.value(), 60, 1e-6);
  EXPECT_FALSE(done.result.saved_fraction) << "nothing was run to compare with";
}

TEST_F(LiveRunTest, SaysWhatTheGuardDidToEachBoard) {
  const Milliwatts found = limit(0);
  const RunRecord done = run(*connection);
  ASSERT_EQ(done.result.gpus.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const GpuControl& gpu = done.result.gpus[i];
    EXPECT_EQ(gpu.device, ids[i]);
    EXPECT_EQ(*gpu.found, found);
    EXPECT_EQ(*gpu.lowest, 300'000_mW);
    EXPECT_GT(*gpu.mean, *gpu.lowest);
    EXPECT_LT(*gpu.mean, found);
    EXPECT_EQ(gpu.writes, 1u);
    EXPECT_EQ(gpu.refused, 0u);
    EXPECT_EQ(gpu.after, kAsFound);
  }
}

TEST_F(LiveRunTest, ANewObjectiveHoldsFromThenOn) {
  options.policy = "model";
  options.objective.max_loss_fraction = 0.01;
  int polls = 0;
  options.new_objective = [&]() -> std::optional<Objective> {
    if (++polls == 50) return Objective{.alpha = {}, .max_loss_fraction = 0.05};
    if (polls == 60) return Objective{};  // neither: refused, the one before holds
    return std::nullopt;
  };
  const RunRecord done = run(*connection);
  std::size_t told = 0;
  for (const Finding& finding : done.result.findings) {
    if (finding.code == "objective.changed") ++told;
  }
  EXPECT_EQ(told, 1u);
  EXPECT_TRUE(done.result.restored);
}

TEST_F(LiveRunTest, StopsWhenToldAndGivesBack) {
  options.duration.reset();
  const Milliwatts found = limit(0);
  bool lowered = false;
  options.stop = [&] {
    lowered = lowered || limit(0) < found;
    return clock.now() > MonoTime(25'000'000'000);
  };
  const RunRecord done = run(*connection);
  EXPECT_TRUE(lowered);
  EXPECT_TRUE(done.interrupted);
  EXPECT_TRUE(done.result.restored);
  EXPECT_EQ(limit(0), found);
}

TEST_F(LiveRunTest, OnlyObservingAsksNoGuard) {
  NoGuard none;
  options.observe_only = true;
  const RunRecord done = run(none);
  EXPECT_EQ(done.result.writes, 0u);
  EXPECT_TRUE(done.result.restored);
  EXPECT_TRUE(done.result.findings.empty());
  EXPECT_EQ(done.result.policy, "none (observe only)");
}

TEST_F(LiveRunTest, AGuardThatIsGoneAtTheEndIsCheckedByReading) {
  const Milliwatts found = limit(0);
  options.progress = [&](Seconds elapsed, const Account&) {
    if (elapsed > 50_s && !connection->broken) connection->cut();
  };
  const RunRecord done = run(*connection);
  EXPECT_EQ(limit(0), found);
  EXPECT_TRUE(done.result.restored) << "the guard gave back when the connection broke";
}

TEST_F(LiveRunTest, ALimitThatIsNotBackIsAnAlarm) {
  clock.meanwhile = {};  // this guard is dead: nothing ends the lease
  options.progress = [&](Seconds elapsed, const Account&) { connection->broken = elapsed > 50_s; };
  const RunRecord done = run(*connection);
  EXPECT_FALSE(done.result.restored);
  EXPECT_TRUE(done.degraded);
  ASSERT_FALSE(done.result.findings.empty());
  EXPECT_EQ(done.result.findings.back().code, "limit.not_restored");
}

TEST_F(LiveRunTest, ConnectionsThatBreakAreMadeAgain) {
  int polls_low = 0;
  options.duration = 120_s;
  options.progress = [&](Seconds elapsed, const Account&) {
    if (elapsed > 30_s && elapsed < 31_s) connection->cut();
    if (elapsed > 40_s) connection->broken = false;
    if (elapsed > 80_s && limit(0) == 300'000_mW) ++polls_low;
  };
  const RunRecord done = run(*connection);
  EXPECT_GT(polls_low, 50) << "a new lease is asked for, and the policy's wish is set again";
  EXPECT_TRUE(done.result.restored);
}

TEST_F(LiveRunTest, AMachineThatSleptDoesNotMakeUpForItsPolls) {
  int polls = 0;
  options.progress = [&](Seconds, const Account&) {
    if (++polls == 20) clock.sleeps_too_long = 30_s;
  };
  run(*connection);
  EXPECT_NEAR(polls, 60, 2) << "30 s at 0.5 s";
}

/// A driver whose calls take a while, each another, and some of which fail.
class SlowDriver final : public Driver {
 public:
  SlowDriver(Driver& inner, Clock& clock) : inner_(inner), clock_(clock) {}
  std::string name() const override { return inner_.name(); }
  Result<DriverEpoch> epoch() override { return inner_.epoch(); }
  Result<std::vector<DeviceInfo>> devices() override { return inner_.devices(); }
  Result<GpuReading> read(const DeviceId& device) override {
    auto reading = inner_.read(device);
    take_a_while();
    if (random_.chance(0.02)) return fail(ErrorCode::failed, "a call failed", device.text());
    return reading;
  }
  Result<PowerLimits> limits(const DeviceId& device) override {
    take_a_while();
    return inner_.limits(device);
  }
  Result<Capabilities> capabilities(const DeviceId& device) override { return inner_.capabilities(device); }
  Result<> set_power_limit(const DeviceId& device, Milliwatts limit) override {
    return inner_.set_power_limit(device, limit);
  }
  Result<> lock_clocks(const DeviceId& device, ClockRange range) override { return inner_.lock_clocks(device, range); }
  Result<> reset_clocks(const DeviceId& device) override { return inner_.reset_clocks(device); }

 private:
  void take_a_while() { clock_.sleep_until(clock_.now() + Seconds(0.001) * static_cast<double>(random_.below(40))); }
  Driver& inner_;
  Clock& clock_;
  Random random_{7};
};

/// Tells of a step only some polls after its end, and now and then nothing at all.
class LateJob final : public loop::ProgressSource {
 public:
  explicit LateJob(loop::ProgressSource& inner) : inner_(inner) {}
  Sample<WorkloadProgress> progress() override {
    if (random_.chance(0.5)) shown_ = std::exchange(next_, inner_.progress());
    return random_.chance(0.03) ? Sample<WorkloadProgress>::absent(Status::missing) : shown_;
  }

 private:
  loop::ProgressSource& inner_;
  Random random_{8};
  Sample<WorkloadProgress> shown_ = Sample<WorkloadProgress>::absent(Status::missing);
  Sample<WorkloadProgress> next_ = shown_;
};

class RecordedLiveRun : public LiveRunTest {
 protected:
  RecordedLiveRun() : slow(driver, clock), late(job) {
    options.policy = "sweep";
    options.objective.max_loss_fraction = 0.05;
    options.switchback.emplace();
    options.switchback->share = 0.3;
    options.duration = 1800_s;
  }
  RunRecord record() {
    clock.sleep_until(MonoTime(123'456'789'012'345));  // the machine has been up for a while
    options.anchor = {clock.now(), clock.wall()};
    auto writer = series::RecordingWriter::open(
        files, "/run.fbr", {options.anchor.second, options.anchor.first, "boot", "test", "twin", options.poll});
    EXPECT_TRUE(writer);
    options.recording = writer->get();
    auto done = run_live(options, {slow, clock, *connection, late}, nullptr);
    EXPECT_TRUE(done) << (done ? "" : done.error().message());
    return done ? *std::move(done) : RunRecord{};
  }
  Result<ReplayRun> replay() {
    ReplayRunOptions how;
    how.policy = "recorded";
    return replay_run([&] { return raw_bytes_in_memory(files.content("/run.fbr")); }, "run", {}, how);
  }
  void expect_the_same(const RunRecord& run) {
    const auto again = replay();
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->decisions, run.decisions);
    EXPECT_EQ(again->frozen, run.frozen);
    ASSERT_TRUE(again->audit);
    EXPECT_EQ(again->audit->identical, run.decisions) << again->audit->first_difference;
    EXPECT_EQ(again->audit->recorded, run.decisions);
    EXPECT_EQ(again->account.energy, run.result.account.energy);
    EXPECT_EQ(again->account.tokens, run.result.account.tokens);
  }

  MemoryFilesystem files;
  SlowDriver slow;
  LateJob late;
};

TEST_F(RecordedLiveRun, IsRepeatedToTheLastBitByAReplay) {
  const RunRecord done = record();
  EXPECT_GE(done.decisions, 170u);
  expect_the_same(done);
}

TEST_F(RecordedLiveRun, AlsoWithAnObjectiveThatChanges) {
  options.policy = "model";
  options.new_objective = [&, told = false]() mutable -> std::optional<Objective> {
    if (told || clock.now() - options.anchor.first < 600_s) return std::nullopt;
    told = true;
    Objective next;
    next.max_loss_fraction = 0.02;
    return next;
  };
  expect_the_same(record());
}

TEST_F(RecordedLiveRun, AlsoOverALostLeaseAndASleep) {
  options.progress = [&](Seconds elapsed, const Account&) {
    if (elapsed > 300_s && elapsed < 301_s && !connection->broken) connection->cut();
    if (elapsed > 340_s) connection->broken = false;
    if (elapsed > 900_s && elapsed < 901_s) clock.sleeps_too_long = 45_s;
  };
  expect_the_same(record());
}

TEST_F(RecordedLiveRun, ADiskThatIsFullCostsTheRecordingAndNotTheRun) {
  const Milliwatts found = limit(0);
  options.progress = [&](Seconds elapsed, const Account&) {
    if (elapsed > 100_s) files.set_space_left(0);
  };
  const RunRecord done = record();
  EXPECT_TRUE(done.result.restored);
  EXPECT_EQ(limit(0), found);
  EXPECT_TRUE(done.degraded);
  EXPECT_EQ(done.result.findings.back().code, "recording.not_written");
}

TEST_F(LiveRunTest, ShorterThanADecisionIsRefused) {
  options.duration = 5_s;
  const auto done = run_live(options, {driver, clock, *connection, job}, nullptr);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::input);
}

TEST(RunKeeper, LongRunsAreThinnedEvenly) {
  RunRecord run;
  RunKeeper keeper(run, nullptr, "test");
  loop::DecisionRecord record;
  record.observation.gpus.resize(1);
  record.observation.gpus[0].device = DeviceId::of("GPU-a");
  constexpr std::int64_t kDecisions = 200'000;
  for (std::int64_t i = 0; i < kDecisions; ++i) {
    record.wall = WallTime(i * 10'000'000'000);
    keeper.add(record);
  }
  EXPECT_EQ(run.decisions, static_cast<std::uint64_t>(kDecisions));
  ASSERT_EQ(run.series.size(), 2u);
  const auto& points = run.series[0].points;
  EXPECT_LT(points.size(), RunKeeper::kMostPoints);
  EXPECT_GT(points.size(), RunKeeper::kMostPoints / 4);
  for (std::size_t i = 1; i < points.size(); ++i) {
    ASSERT_EQ(points[i].at - points[i - 1].at, points[1].at - points[0].at) << i;
  }
}

TEST(RunKeeper, NeighboursOfOnePhaseAreOneSpan) {
  RunRecord run;
  RunKeeper keeper(run, nullptr, "test");
  const std::vector<Phase> told = {Phase::unknown,  Phase::training,   Phase::training,  Phase::checkpoint,
                                   Phase::training, Phase::evaluation, Phase::evaluation};
  for (std::size_t i = 0; i < told.size(); ++i) {
    loop::DecisionRecord record;
    record.wall = WallTime() + Seconds(10) * static_cast<double>(i + 1);
    record.observation.interval = Seconds(10);
    record.observation.phase = told[i];
    keeper.add(record);
  }
  ASSERT_EQ(run.phases.size(), 4u);
  EXPECT_EQ(run.phases[0].label, Phase::training);
  EXPECT_EQ(run.phases[0].start, WallTime() + Seconds(10));
  EXPECT_EQ(run.phases[0].stop, WallTime() + Seconds(30));
  EXPECT_EQ(run.phases[1].label, Phase::checkpoint);
  EXPECT_EQ(run.phases[3].label, Phase::evaluation);
  EXPECT_EQ(run.phases[3].stop - run.phases[3].start, Seconds(20));
}

TEST(RunKeeper, CountsWhatBecameOfEachWrite) {
  RunRecord run;
  RunKeeper keeper(run, nullptr, "test");
  const DeviceId a = DeviceId::of("GPU-a"), b = DeviceId::of("GPU-b");
  for (std::uint64_t number = 1; number <= 4; ++number) {
    loop::DecisionRecord record;
    record.number = number;
    for (const DeviceId& device : {a, b}) {
      GpuObservation gpu;
      gpu.device = device;
      if (device == a) gpu.limit_enforced = Milliwatts(number == 1 ? 300'000 : 200'000);
      record.observation.gpus.push_back(gpu);
      guard::WriteOutcome write;
      write.device = device;
      write.state = device == b   ? guard::WriteState::refused
                    : number == 1 ? guard::WriteState::applied
                    : number == 2 ? guard::WriteState::deferred
                                  : guard::WriteState::unchanged;
      record.writes.push_back(write);
    }
    keeper.add(record);
  }
  keeper.restored(a, kAsFound);
  keeper.restored(b, kAsFound);
  ASSERT_EQ(run.result.gpus.size(), 2u);
  EXPECT_EQ(*run.result.gpus[0].found, Milliwatts(300'000));
  EXPECT_EQ(*run.result.gpus[0].lowest, Milliwatts(200'000));
  EXPECT_EQ(*run.result.gpus[0].mean, Milliwatts(225'000));
  EXPECT_EQ(run.result.gpus[0].writes, 2u);
  EXPECT_EQ(run.result.gpus[0].after, kAsFound);
  EXPECT_FALSE(run.result.gpus[1].found);
  EXPECT_EQ(run.result.gpus[1].refused, 4u);
  EXPECT_EQ(run.result.gpus[1].after, "") << "it was never written";
}

TEST(FakeJob, IsSilentWithoutAnOwner) {
  const VirtualClock clock;
  FakeJob job("/nowhere/page", clock);
  EXPECT_EQ(job.progress().status, Status::missing);
}

TEST_F(LiveRunTest, ABudgetHoldsAtEveryPollWhateverHappens) {
  const Milliwatts found = limit(0);
  options.policy = "none";
  options.budget = Watts(1000);
  options.duration = 120_s;
  Watts highest;
  int polls = 0;
  options.progress = [&](Seconds, const Account&) {
    Watts sum;
    for (std::size_t i = 0; i < 4; ++i) sum += limit(i).watts();
    highest = std::max(highest, sum);
    if (++polls == 60) connection->cut();
    if (polls == 70) connection->broken = false;
  };
  const RunRecord done = run(*connection);
  EXPECT_LE(highest, Watts(1000));
  ASSERT_TRUE(done.result.budget);
  EXPECT_TRUE(done.result.restored);
  Watts after;
  for (std::size_t i = 0; i < 4; ++i) after += limit(i).watts();
  EXPECT_LE(after, Watts(1000)) << "nobody who owns the budget said that it may go up";
  EXPECT_LT(limit(0), found);
  for (const GpuControl& gpu : done.result.gpus) {
    EXPECT_EQ(*gpu.found, found);
    EXPECT_EQ(gpu.after, kAtRest);
  }
}

TEST_F(LiveRunTest, ABudgetThatTheGuardDoesNotTakeEndsTheRunBeforeItBegins) {
  options.budget = Watts(1000);
  connection->broken = true;
  const auto done = run_live(options, {driver, clock, *connection, job}, nullptr);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::refused);
}

}  // namespace
}  // namespace flyball::control
