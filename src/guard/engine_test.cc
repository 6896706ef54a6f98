#include "guard/engine.h"

#include "base/text.h"
#include "guard/engine_test_support.h"

namespace flyball::guard {
namespace {

using Setter = ScriptedBoard::Setter;

TEST_F(EngineTest, SavingLeaseLowersAndReleaseGivesBack) {
  driver.board(a).requested = watts(650);
  start();
  const LeaseId id = lease();
  const auto outcome = write(id, a, watts(600));
  EXPECT_EQ(outcome.state, WriteState::applied) << outcome.reason;
  EXPECT_EQ(requested(a), watts(600));
  const auto back = engine->release(id);
  ASSERT_TRUE(back);
  EXPECT_EQ(requested(a), watts(650));
  EXPECT_TRUE(back->front().restored);
  EXPECT_EQ(*back->front().found, watts(650));
  EXPECT_FALSE(engine->restoring());
}

TEST_F(EngineTest, SnapshotIsOnDiskBeforeTheFirstWrite) {
  start();
  const LeaseId id = lease();
  bool checked = false;
  driver.before_write = [&](const DeviceId& device, Milliwatts limit) {
    if (checked) return;
    checked = true;
    MemoryFilesystem copy = disk;  // what a power cut at this instant leaves
    copy.lose_power();
    const auto content = parse_journal(*copy.read(config.journal_path, 1 << 20));
    ASSERT_TRUE(content.holds.contains(device));
    EXPECT_EQ(content.holds.at(device).found.limit(), watts(700));
    EXPECT_TRUE(content.holds.at(device).is_ours(limit, config.rounding));
  };
  write(id, a, watts(600));
  EXPECT_TRUE(checked);
}

TEST_F(EngineTest, UnrenewedLeaseEndsAfterTenSeconds) {
  start();
  const LeaseId id = lease();
  write(id, a, watts(600));
  run(Seconds(60), id);
  EXPECT_EQ(requested(a), watts(600));
  run(Seconds(9.5));
  EXPECT_EQ(requested(a), watts(600));
  run(Seconds(1));
  EXPECT_EQ(requested(a), watts(700));
  EXPECT_FALSE(engine->renew(id));
}

TEST_F(EngineTest, ClientGoneGivesBackAtOnce) {
  start();
  const LeaseId id = lease();
  write(id, a, watts(600));
  engine->client_gone(id, "socket closed");
  EXPECT_EQ(requested(a), watts(700));
}

TEST_F(EngineTest, StickyLimitsStayUntilRestore) {
  start();
  const LeaseId id = lease(LeaseKind::saving, Authority::job, true);
  write(id, a, watts(600));
  engine->client_gone(id, "socket closed");
  run(Seconds(100));
  EXPECT_EQ(requested(a), watts(600));
  start();
  run(Seconds(100));
  EXPECT_EQ(requested(a), watts(600));
  ASSERT_TRUE(engine->restore_all("test"));
  EXPECT_EQ(requested(a), watts(700));
}

TEST_F(EngineTest, GuardKilledRestartGivesBack) {
  start();
  write(lease(), a, watts(600));
  start();
  EXPECT_EQ(requested(a), watts(700));
  EXPECT_TRUE(audited("restore", "restored"));
}

TEST_F(EngineTest, BudgetLeaseFallsToItsSafeCapAndNeverUpward) {
  config.everywhere.safe_cap = watts(400);
  start();
  const LeaseId id = lease(LeaseKind::budget, Authority::fleet);
  write(id, a, watts(500));
  write(id, b, watts(300));
  run(Seconds(20));
  EXPECT_EQ(requested(a), watts(400));
  EXPECT_EQ(requested(b), watts(300)) << "not even up to the safe cap: nobody who owns the budget said so";
  start();
  run(Seconds(20));
  EXPECT_EQ(requested(a), watts(400));
  ASSERT_TRUE(engine->restore_all("stop button"));
  EXPECT_EQ(requested(a), watts(400));
}

TEST_F(EngineTest, OnlyTheOwnerReleasesABudgetUpward) {
  config.everywhere.safe_cap = watts(400);
  start();
  const LeaseId id = lease(LeaseKind::budget, Authority::fleet);
  write(id, a, watts(500));
  ASSERT_TRUE(engine->release(id));
  const LeaseId job = lease(LeaseKind::saving, Authority::job);
  write(job, a, watts(650));
  run(Seconds(5), job);
  EXPECT_EQ(requested(a), watts(400));
  ASSERT_TRUE(engine->release(job));
  EXPECT_FALSE(engine->lift(Authority::job, {a})->front().restored);
  EXPECT_EQ(requested(a), watts(400));
  EXPECT_TRUE(engine->lift(Authority::fleet, {a})->front().restored);
  EXPECT_EQ(requested(a), watts(700));
}

TEST_F(EngineTest, OwnerOfABudgetComesBackAndRaises) {
  config.everywhere.safe_cap = watts(400);
  start();
  write(lease(LeaseKind::budget, Authority::fleet), a, watts(500));
  run(Seconds(20));
  ASSERT_EQ(requested(a), watts(400));
  const LeaseId again = lease(LeaseKind::budget, Authority::fleet);
  write(again, a, watts(520));
  EXPECT_EQ(requested(a), watts(520));
}

TEST_F(EngineTest, RestoreLeavesWhatSomeoneElseWrote) {
  start();
  const LeaseId id = lease();
  write(id, a, watts(600));
  driver.board(a).requested = watts(555);
  const auto back = engine->release(id);
  EXPECT_TRUE(back->front().left_to_other);
  EXPECT_FALSE(back->front().restored);
  EXPECT_EQ(requested(a), watts(555));
  EXPECT_EQ(engine->counters().left_to_other, 1u);
}

TEST_F(EngineTest, AfterARebootASavingSnapshotIsClosedUnwritten) {
  driver.board(a).requested = watts(650);
  start();
  write(lease(), a, watts(600));
  disk.lose_power();
  driver.reboot();
  driver.board(a).requested = watts(580);  // a start-up script
  driver.board(a).writes.clear();
  start();
  run(Seconds(20));
  EXPECT_EQ(requested(a), watts(580));
  EXPECT_TRUE(driver.board(a).writes.empty());
  EXPECT_TRUE(audited("reload", "unwritten"));
}

TEST_F(EngineTest, AfterARebootABudgetIsAppliedAgain) {
  config.everywhere.safe_cap = watts(400);
  start();
  write(lease(LeaseKind::budget, Authority::site), a, watts(500));
  disk.lose_power();
  driver.reboot();
  start();
  EXPECT_EQ(requested(a), watts(400));
}

TEST_F(EngineTest, DriverReloadUnderALiveLeaseTakesANewSnapshot) {
  driver.board(a).requested = watts(650);
  start();
  const LeaseId id = lease();
  write(id, a, watts(600));
  driver.reload();
  run(Seconds(4), id);
  EXPECT_EQ(requested(a), watts(600));
  ASSERT_TRUE(engine->release(id));
  EXPECT_EQ(requested(a), watts(700));
}

TEST_F(EngineTest, ALimitThatSurvivedAReloadIsStillGivenBack) {
  start();
  write(lease(), a, watts(600));
  driver.reload();
  driver.board(a).requested = watts(600);
  run(Seconds(20));
  EXPECT_EQ(requested(a), watts(700));
}

TEST_F(EngineTest, ALyingSetterIsFailedAndBounded) {
  start();
  const LeaseId id = lease();
  driver.board(a).setter = Setter::ignores;
  const auto outcome = write(id, a, watts(600));
  EXPECT_EQ(outcome.state, WriteState::failed);
  EXPECT_NE(outcome.reason.find("accepted"), std::string::npos) << outcome.reason;
  run(Seconds(3600), id);
  EXPECT_LE(driver.board(a).writes.size(), 8u);
}

TEST_F(EngineTest, ASetterThatWritesSomethingElseIsGivenBack) {
  start();
  const LeaseId id = lease();
  driver.board(a).setter = Setter::writes_other;
  EXPECT_EQ(write(id, a, watts(600)).state, WriteState::failed);
  driver.board(a).setter = Setter::obeys;
  run(Seconds(20));
  EXPECT_EQ(requested(a), watts(700));
}

TEST_F(EngineTest, AStuckCallThatLandsLaterIsGivenBack) {
  start();
  const LeaseId id = lease();
  driver.board(a).setter = Setter::applies_late;
  EXPECT_EQ(write(id, a, watts(600)).state, WriteState::failed);
  driver.board(a).setter = Setter::obeys;
  ASSERT_TRUE(engine->release(id));
  driver.land_late(a);
  ASSERT_EQ(requested(a), watts(600));
  run(Seconds(5));
  EXPECT_EQ(requested(a), watts(700));
}

TEST_F(EngineTest, AStuckRestoreThatLandsOnAStrangersLimitIsUndone) {
  start();
  const LeaseId id = lease();
  write(id, a, watts(600));
  driver.board(a).setter = ScriptedBoard::Setter::applies_late;
  ASSERT_TRUE(engine->release(id));
  driver.board(a).requested = watts(450);  // someone else, while our call is stuck
  driver.board(a).setter = ScriptedBoard::Setter::obeys;
  run(Seconds(10));
  EXPECT_EQ(requested(a), watts(450));
  driver.land_late(a);
  EXPECT_EQ(requested(a), watts(700));
  run(Seconds(5));
  EXPECT_EQ(requested(a), watts(450)) << "theirs is what was found last";
}

TEST_F(EngineTest, OneFailingRestoreKeepsNoOther) {
  start();
  const LeaseId id = lease();
  write(id, a, watts(600));
  write(id, b, watts(600));
  driver.board(a).setter = Setter::refuses;
  const auto back = engine->release(id);
  EXPECT_FALSE(back->at(0).restored);
  EXPECT_TRUE(back->at(1).restored);
  EXPECT_TRUE(engine->restoring());
  run(Seconds(30));
  EXPECT_FALSE(engine->alarms().empty());
  driver.board(a).setter = Setter::obeys;
  run(Seconds(61));
  EXPECT_EQ(requested(a), watts(700));
  EXPECT_TRUE(engine->alarms().empty());
}

TEST_F(EngineTest, ABmcCapIsACeilingAndIsNotRestored) {
  start();
  const LeaseId id = lease();
  write(id, a, watts(600));
  driver.board(a).outside = watts(450);
  run(Seconds(4), id);
  EXPECT_EQ(engine->boards().front().external_limit, watts(450));
  EXPECT_EQ(write(id, a, watts(650)).state, WriteState::deferred);
  driver.board(a).outside.reset();
  run(Seconds(4), id);
  EXPECT_FALSE(engine->boards().front().external_limit);
  EXPECT_EQ(requested(a), watts(650));
  driver.board(a).outside = watts(450);
  ASSERT_TRUE(engine->release(id)->front().restored);
  EXPECT_EQ(requested(a), watts(700));
}

TEST_F(EngineTest, UnknownRangeMeansNoWrites) {
  start();
  driver.board(a).garbage_range = true;
  const LeaseId id = lease();
  EXPECT_EQ(write(id, a, watts(600)).state, WriteState::refused);
  EXPECT_TRUE(driver.board(a).writes.empty());
}

TEST_F(EngineTest, WritesAreClampedToSiteAndBoard) {
  config.everywhere.floor = watts(300);
  start();
  const LeaseId id = lease();
  write(id, a, watts(100));
  run(Seconds(10), id);
  EXPECT_EQ(requested(a), watts(300));
  write(id, a, watts(900));
  run(Seconds(10), id);
  EXPECT_EQ(requested(a), watts(700));
  for (const Milliwatts value : driver.board(a).writes) EXPECT_GE(value, watts(300));
}

TEST_F(EngineTest, AJobNeverRaisesAboveWhatWasFound) {
  driver.board(a).requested = watts(500);
  start();
  const LeaseId id = lease();
  EXPECT_EQ(write(id, a, watts(650)).state, WriteState::unchanged);
  EXPECT_TRUE(driver.board(a).writes.empty());
}

TEST_F(EngineTest, TheLowestWishOfAllAuthoritiesHolds) {
  start();
  const LeaseId site = lease(LeaseKind::saving, Authority::site);
  const LeaseId job = lease();
  write(site, a, watts(600));
  run(Seconds(2), site);
  (void)engine->renew(job);
  EXPECT_EQ(write(job, a, watts(650)).accepted, watts(600));
  write(job, a, watts(550));
  EXPECT_EQ(requested(a), watts(550));
  ASSERT_TRUE(engine->release(job));
  run(Seconds(3), site);
  EXPECT_EQ(requested(a), watts(600));
  ASSERT_TRUE(engine->release(site));
  EXPECT_EQ(requested(a), watts(700));
}

TEST_F(EngineTest, LargeStepsAreRampedAndDwellIsKept) {
  start();
  const LeaseId id = lease();
  EXPECT_EQ(write(id, a, watts(200)).state, WriteState::deferred);
  EXPECT_EQ(requested(a), watts(550));
  run(Seconds(5), id);
  EXPECT_EQ(requested(a), watts(200));
  EXPECT_EQ(driver.board(a).writes.size(), 4u);
  EXPECT_EQ(write(id, a, watts(200) + Milliwatts(500)).state, WriteState::unchanged);
}

TEST_F(EngineTest, FullDiskRefusesNewLeasesAndKeepsExisting) {
  start();
  const LeaseId id = lease();
  write(id, a, watts(600));
  disk.set_space_left(0);
  EXPECT_EQ(write(id, b, watts(600)).state, WriteState::refused);
  EXPECT_EQ(requested(b), watts(700));
  run(Seconds(30), id);
  EXPECT_EQ(requested(a), watts(600));
  LeaseRequest request;
  request.authority = Authority::site;
  request.devices = {a};
  const auto refused = engine->acquire(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::refused);
  ASSERT_TRUE(engine->release(id));
  EXPECT_EQ(requested(a), watts(700));
  disk.set_space_left(1 << 20);
  EXPECT_TRUE(engine->acquire(request));
}

TEST_F(EngineTest, AFullDiskLetsABudgetLowerWhatItHoldsAndNothingNew) {
  start();
  const LeaseId id = lease(LeaseKind::budget, Authority::fleet);
  write(id, a, watts(600));
  disk.set_space_left(0);
  EXPECT_EQ(write(id, b, watts(600)).state, WriteState::refused) << "no snapshot of it could be kept";
  EXPECT_TRUE(driver.board(b).writes.empty());
  EXPECT_EQ(write(id, a, watts(550)).state, WriteState::applied) << "what was found is in the journal already";
  // Someone else's limit is what a restore would owe now, so it must be in the journal before it is overwritten.
  driver.board(a).requested = watts(500);
  run(Seconds(10), id);
  EXPECT_EQ(write(id, a, watts(450)).state, WriteState::refused);
  EXPECT_EQ(requested(a), watts(500));
  disk.set_space_left(1 << 20);
  run(Seconds(10), id);
  EXPECT_EQ(requested(a), watts(450));
  EXPECT_EQ(requested(b), watts(600)) << "the wish stands, so it is written as soon as it may be";
}

TEST_F(EngineTest, ARefusedFirstWriteIsNotInTheJournalLater) {
  start();
  const LeaseId id = lease();
  write(id, a, watts(600));
  disk.set_space_left(0);
  EXPECT_EQ(write(id, b, watts(500)).state, WriteState::refused);
  ASSERT_TRUE(engine->release(id));
  disk.set_space_left(1 << 20);
  run(Seconds(70));
  driver.board(b).requested = watts(500);  // someone else, the very value that we meant to write
  start();
  run(Seconds(10));
  EXPECT_EQ(requested(b), watts(500));
  EXPECT_TRUE(driver.board(b).writes.empty());
}

TEST_F(EngineTest, WithoutTheLoadingOfTheDriverNothingIsWritten) {
  start();
  const LeaseId id = lease();
  driver.epoch_unknown = true;
  EXPECT_EQ(write(id, a, watts(600)).state, WriteState::failed);
  EXPECT_TRUE(driver.board(a).writes.empty()) << "a snapshot that fits any loading would be restored after a reload";
  driver.epoch_unknown = false;
  run(Seconds(5), id);
  EXPECT_EQ(requested(a), watts(600));
}

TEST_F(EngineTest, SharedBoardsAreTheSitesOnly) {
  driver.board(a).shared = true;
  start();
  LeaseRequest request;
  request.devices = {a};
  EXPECT_FALSE(engine->acquire(request));
  request.authority = Authority::site;
  EXPECT_TRUE(engine->acquire(request));
}

TEST_F(EngineTest, LockedClocksNeedTheDeclarationAndAreReset) {
  start();
  const ClockRange range{Hertz(1e9), Hertz(1.2e9)};
  LeaseId id = lease();
  EXPECT_EQ(engine->write(id, {{a, {}, range}})->front().state, WriteState::refused);
  config.boards[a].clocks_unlocked = true;
  start();
  id = lease();
  EXPECT_EQ(engine->write(id, {{a, {}, range}})->front().state, WriteState::applied);
  EXPECT_TRUE(driver.board(a).clocks_locked);
  EXPECT_EQ(engine->write(id, {{a, {}, {}, true}})->front().state, WriteState::applied);
  EXPECT_FALSE(driver.board(a).clocks_locked) << "the lease goes on without its lock";
  EXPECT_FALSE(engine->write(id, {{a, {}, range, true}})->front().state == WriteState::applied);
  clock.advance(Seconds(2));
  EXPECT_EQ(engine->write(id, {{a, {}, range}})->front().state, WriteState::applied);
  EXPECT_TRUE(driver.board(a).clocks_locked);
  start();
  EXPECT_FALSE(driver.board(a).clocks_locked);
}

TEST_F(EngineTest, ALimitThatStaysDoesNotHideThatClocksWereWritten) {
  config.boards[a].clocks_unlocked = true;
  start();
  const LeaseId id = lease();
  const Milliwatts found = *driver.limits(a)->requested;
  const ClockRange range{Hertz(1e9), Hertz(1.2e9)};
  const WriteOutcome locked = engine->write(id, {{a, found, range}})->front();
  EXPECT_EQ(locked.state, WriteState::applied);
  EXPECT_NE(locked.reason.find(flyball::format(range.high)), std::string::npos) << locked.reason;
  clock.advance(Seconds(2));
  EXPECT_EQ(engine->write(id, {{a, found, range}})->front().state, WriteState::unchanged);
  EXPECT_EQ(engine->write(id, {{a, found, {}, true}})->front().state, WriteState::applied);
}

TEST_F(EngineTest, ALockThatSomeoneElseEndsIsLockedAgainAFewTimes) {
  config.boards[a].clocks_unlocked = true;
  start();
  const LeaseId id = lease();
  EXPECT_EQ(engine->write(id, {{a, {}, ClockRange{Hertz(0.3e9), Hertz(1.2e9)}}})->front().state, WriteState::applied);
  const auto run = [&](Seconds length, bool foreign) {
    for (double t = 0; t < length.value(); t += 0.5) {
      clock.advance(Seconds(0.5));
      if (foreign) driver.board(a).clocks_locked = false;
      EXPECT_TRUE(engine->renew(id));
      engine->tick();
    }
  };
  run(Seconds(30), false);
  EXPECT_EQ(driver.board(a).locks, 1) << "it holds";
  driver.board(a).clocks_locked = false;
  run(Seconds(30), false);
  EXPECT_EQ(driver.board(a).locks, 2);
  run(Seconds(7200), true);
  EXPECT_LE(driver.board(a).locks, 2 + config.drift_rewrites) << "never a fight";
}

TEST_F(EngineTest, TimeTheGuardWasBusyIsNotCharged) {
  start();
  const LeaseId id = lease();
  write(id, a, watts(600));
  clock.advance(Seconds(12));
  engine->forgive(Seconds(4));
  EXPECT_TRUE(engine->renew(id));
  clock.advance(Seconds(16));
  engine->forgive(Seconds(60));
  EXPECT_FALSE(engine->renew(id)) << "five seconds at most: the restore is promised";
}

TEST_F(EngineTest, AGarbledReadIsNotBelieved) {
  start();
  const LeaseId id = lease();
  write(id, a, watts(600));
  for (const Milliwatts garbled : {Milliwatts(0), watts(650), watts(5), Milliwatts(4'294'967'295)}) {
    driver.board(a).garbled = garbled;
    run(Seconds(5), id);
  }
  EXPECT_EQ(engine->counters().drift_seen, 0u);
  ASSERT_TRUE(engine->release(id));
  EXPECT_EQ(requested(a), watts(700));
  driver.board(b).garbled = watts(650);
  const LeaseId next = lease();
  write(next, b, watts(600));  // the snapshot is read twice
  run(Seconds(5), next);
  ASSERT_TRUE(engine->release(next));
  EXPECT_EQ(requested(b), watts(700));
}

TEST_F(EngineTest, DriverNotReadyAtStart) {
  start();
  write(lease(), a, watts(600));
  driver.not_ready = true;
  start();
  run(Seconds(20));
  EXPECT_EQ(requested(a), watts(600));
  EXPECT_TRUE(engine->restoring());
  driver.not_ready = false;
  run(Seconds(61));
  EXPECT_EQ(requested(a), watts(700));
}

}  // namespace
}  // namespace flyball::guard
