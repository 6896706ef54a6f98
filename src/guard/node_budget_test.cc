#include "guard/node_budget.h"

#include "guard/engine_test_support.h"

namespace flyball::guard {
namespace {

using namespace literals;

NodeBudgetConfig eight_boards() {
  NodeBudgetConfig config;
  config.meter = DeviceId::of("node-1/ac");
  config.limit = 8000_W;
  config.worst_non_gpu = 2000_W;
  config.lowest_supply_efficiency = 0.9;
  config.overshoot_fraction = 0;
  config.meter_accuracy_fraction = 0;
  return config;
}

std::vector<BoardDraw> boards(int count, Milliwatts cap, Milliwatts minimum, Milliwatts safe) {
  std::vector<BoardDraw> all;
  for (int i = 0; i < count; ++i) {
    all.push_back({DeviceId::of("GPU-" + std::string(1, static_cast<char>('a' + i))), cap, minimum, safe});
  }
  return all;
}

TEST(NodeBudget, TheBoundIsOnTheMeter) {
  const auto budget = *NodeBudget::make(eight_boards());
  // (8 · 650 + 2000) / 0.9 = 8000 W exactly.
  EXPECT_TRUE(budget.holds(boards(8, watts(650), watts(200), watts(400)), MonoTime()));
  EXPECT_FALSE(budget.holds(boards(8, watts(651), watts(200), watts(400)), MonoTime()));
  EXPECT_NEAR(budget.bound(boards(8, watts(700), watts(200), watts(400)), MonoTime()).value(), 7600 / 0.9, 1e-9)
      << "eight boards of 700 W are 5.6 kW of caps and 8.4 kW at the meter";
}

TEST(NodeBudget, InfeasibleIsRefusedWithADrainList) {
  auto config = eight_boards();
  config.limit = 4000_W;  // (8 · 200 + 2000) / 0.9 = 4000 W: just feasible
  EXPECT_TRUE(NodeBudget::make(config)->feasible(boards(8, watts(700), watts(200), watts(200)), MonoTime()));
  config.limit = 3800_W;  // two boards at 90 W idle: (6 · 200 + 180 + 2000) / 0.9 = 3756 W
  const auto budget = *NodeBudget::make(config);
  const auto infeasible = budget.feasible(boards(8, watts(700), watts(200), watts(200)), MonoTime());
  ASSERT_FALSE(infeasible);
  EXPECT_EQ(infeasible.error().code, ErrorCode::refused);
  EXPECT_NE(infeasible.error().remedy.find("GPU-a, GPU-b"), std::string::npos) << infeasible.error().message();
  EXPECT_EQ(budget.drain_list(boards(8, watts(700), watts(200), watts(200)), MonoTime()).size(), 2u);
}

TEST(NodeBudget, SafeCapsMustFitWithTheWorstNonGpuDraw) {
  auto config = eight_boards();
  config.limit = 5000_W;
  EXPECT_FALSE(NodeBudget::make(config)->feasible(boards(8, watts(200), watts(200), watts(400)), MonoTime()));
}

TEST(NodeBudget, LearnsTheNonGpuDrawAndForgetsItAfterADay) {
  auto budget = *NodeBudget::make(eight_boards());
  MonoTime now;
  for (int i = 0; i <= 3600; ++i, now = now + 1_s) budget.observe(now, 5000_W, 3600_W);
  EXPECT_TRUE(budget.learned(now));
  EXPECT_NEAR(budget.non_gpu_bound(now).value(), 5000 * 0.96 - 3600, 1e-9);
  budget.observe(now, 5500_W, 3600_W);  // one burst of the fans counts for a day
  EXPECT_NEAR(budget.non_gpu_bound(now).value(), 5500 * 0.96 - 3600, 1e-9);
  for (int i = 0; i <= 24 * 60; ++i, now = now + 60_s) budget.observe(now, 5000_W, 3600_W);
  EXPECT_NEAR(budget.non_gpu_bound(now).value(), 5000 * 0.96 - 3600, 1e-9);
  EXPECT_EQ(budget.non_gpu_bound(now + Seconds(7200)), 2000_W)
      << "a silent meter teaches nothing: the worst case again";
}

TEST(NodeBudget, UntilItHasLearnedTheLargerOfWorstCaseAndSeenCounts) {
  auto budget = *NodeBudget::make(eight_boards());
  budget.observe(MonoTime(), 5000_W, 3600_W);
  EXPECT_EQ(budget.non_gpu_bound(MonoTime()), 2000_W);
  budget.observe(MonoTime() + 1_s, 7000_W, 3600_W);
  EXPECT_NEAR(budget.non_gpu_bound(MonoTime() + 1_s).value(), 7000 * 0.96 - 3600, 1e-9);
  budget.observe(MonoTime() + 2_s, 3000_W, 3600_W);  // a meter below its GPUs is another circuit
  budget.observe(MonoTime() + 3_s, Sample<Watts>::absent(Status::stale), 3600_W);
  EXPECT_NEAR(budget.non_gpu_bound(MonoTime() + 3_s).value(), 7000 * 0.96 - 3600, 1e-9);
}

TEST(NodeBudget, NumbersThatCannotBeTrueAreRefused) {
  auto config = eight_boards();
  config.limit = 0_W;
  EXPECT_FALSE(NodeBudget::make(config));
  config = eight_boards();
  config.highest_supply_efficiency = 0.5;
  EXPECT_FALSE(NodeBudget::make(config));
  config = eight_boards();
  config.worst_non_gpu = Watts(std::nan(""));
  EXPECT_FALSE(NodeBudget::make(config));
}

/// Four boards of 200 to 700 W; with 1,000 W beside them 2,900 W of caps fit into (2900 + 1000) / 0.9 = 4,333 W.
class BudgetEngineTest : public EngineTest {
 protected:
  BudgetEngineTest() {
    NodeBudgetConfig budget = eight_boards();
    budget.limit = 4334_W;
    budget.worst_non_gpu = 1000_W;
    config.node_budget = budget;
    config.everywhere.safe_cap = watts(500);
  }
  Milliwatts sum() {
    Milliwatts total;
    for (const auto& id : driver.ids()) total = total + requested(id);
    return total;
  }
  std::vector<WriteRequest> all(Milliwatts limit) {
    std::vector<WriteRequest> writes;
    for (const auto& id : driver.ids()) writes.push_back({id, limit, {}});
    return writes;
  }
  const DeviceId c = DeviceId::of("GPU-c");
};

TEST_F(BudgetEngineTest, IncreasesThatDoNotFitAreRefusedAndNotTriedLater) {
  for (const auto& id : driver.ids()) driver.board(id).requested = watts(600);
  config.node_budget->limit = Watts(4000);  // 2,600 W of caps
  start();
  const LeaseId id = lease(LeaseKind::saving, Authority::fleet);
  EXPECT_EQ(write(id, a, watts(700)).state, WriteState::applied);
  EXPECT_EQ(write(id, b, watts(800)).state, WriteState::applied) << "clamped to 700 W";
  const auto refused = write(id, c, watts(650));
  EXPECT_EQ(refused.state, WriteState::refused);
  EXPECT_NE(refused.reason.find("node-1/ac"), std::string::npos) << refused.reason;
  EXPECT_EQ(write(id, a, watts(600)).state, WriteState::applied) << "a budget's decrease waits for no dwell";
  run(Seconds(10), id);
  EXPECT_EQ(requested(a), watts(600));
  EXPECT_EQ(requested(c), watts(600)) << "room has come, but nobody asks any more";
  EXPECT_EQ(write(id, c, watts(650)).state, WriteState::applied);
}

TEST_F(BudgetEngineTest, DecreasesAreConfirmedBeforeIncreasesAreSent) {
  for (const auto& id : driver.ids()) driver.board(id).requested = watts(500);
  config.node_budget->limit = Watts(3334);  // 2,000 W of caps
  config.everywhere.safe_cap = watts(300);
  start();
  const LeaseId id = lease(LeaseKind::budget, Authority::fleet);
  driver.board(b).setter = ScriptedBoard::Setter::ignores;
  const auto outcomes = *engine->write(id, {{a, watts(600), {}}, {b, watts(400), {}}});
  EXPECT_EQ(outcomes[1].state, WriteState::failed);
  EXPECT_EQ(outcomes[0].state, WriteState::deferred) << outcomes[0].reason;
  EXPECT_EQ(requested(a), watts(500));
  driver.board(b).setter = ScriptedBoard::Setter::obeys;
  run(Seconds(10), id);
  EXPECT_EQ(requested(a), watts(600));
  EXPECT_EQ(requested(b), watts(400));
}

TEST_F(BudgetEngineTest, ALostBoardCountsAtItsMaximumAndAllFallToTheirSafeCaps) {
  for (const auto& id : driver.ids()) driver.board(id).requested = watts(700);
  config.node_budget->limit = Watts(4000);  // 2,600 W of caps
  start();
  const LeaseId id = lease(LeaseKind::budget, Authority::fleet);
  ASSERT_TRUE(engine->write(id, all(watts(650))));
  run(Seconds(5), id);
  EXPECT_EQ(sum(), watts(2600));
  EXPECT_FALSE(engine->over_budget());
  driver.board(a).state = DeviceState::lost;
  run(Seconds(3), id);
  EXPECT_EQ(requested(b), watts(500));
  EXPECT_FALSE(engine->over_budget()) << "700 W of the lost one and 3 · 500 W fit";
  EXPECT_TRUE(audited("budget", "safe_caps"));
  EXPECT_EQ(write(id, b, watts(650)).state, WriteState::applied);
  EXPECT_EQ(write(id, c, watts(650)).state, WriteState::applied) << "700 + 650 + 650 + 500 = 2,500 W";
  EXPECT_EQ(write(id, DeviceId::of("GPU-d"), watts(650)).state, WriteState::refused);
}

TEST_F(BudgetEngineTest, ABoardThatWasNotReadJustNowLeavesNoRoom) {
  for (const auto& id : driver.ids()) driver.board(id).requested = watts(500);
  config.node_budget->limit = Watts(3556);  // 2,200 W of caps
  start();
  const LeaseId id = lease(LeaseKind::budget, Authority::fleet);
  driver.board(b).unreadable = true;
  run(Seconds(2.5), id);
  EXPECT_EQ(write(id, a, watts(600)).state, WriteState::refused) << "b may hold 700 W by now";
  driver.board(b).unreadable = false;
  run(Seconds(5), id);
  EXPECT_EQ(write(id, a, watts(600)).state, WriteState::applied);
}

TEST_F(BudgetEngineTest, ABoardWhoseWritesWaitIsStillLookedAt) {
  for (const auto& id : driver.ids()) driver.board(id).requested = watts(500);
  config.node_budget->limit = Watts(3556);  // 2,200 W of caps
  start();
  LeaseRequest request;
  request.kind = LeaseKind::budget;
  request.sticky = true;
  request.devices = {b};
  const LeaseId other = *engine->acquire(request);
  request.devices = {a};
  request.authority = Authority::fleet;
  const LeaseId id = *engine->acquire(request);
  write(other, b, watts(450));
  driver.board(b).setter = ScriptedBoard::Setter::refuses;
  write(other, b, watts(400));
  run(Seconds(8));  // the next try is 8 s away
  driver.board(b).requested = watts(700);
  run(Seconds(2.5));
  EXPECT_EQ(write(id, a, watts(600)).state, WriteState::refused) << "700 + 600 + 500 + 500 W";
}

TEST_F(BudgetEngineTest, NothingIsRaisedBeforeAllBoardsAreKnown) {
  for (const auto& id : driver.ids()) driver.board(id).requested = watts(500);
  config.node_budget->limit = Watts(3556);  // 2,200 W of caps
  start();
  const LeaseId id = lease(LeaseKind::budget, Authority::fleet);
  driver.board(a).setter = ScriptedBoard::Setter::applies_late;
  write(id, a, watts(300));
  driver.board(a).setter = ScriptedBoard::Setter::obeys;
  driver.not_ready = true;
  start();  // knows a alone, from the journal
  driver.board(b).requested = driver.board(c).requested = watts(700);
  driver.land_late(a);
  driver.board(a).writes.clear();
  driver.not_ready = false;
  run(Seconds(1.5));  // a's next try, before the boards are listed again
  for (const Milliwatts limit : driver.board(a).writes) EXPECT_LE(limit, watts(300));
}

TEST_F(BudgetEngineTest, InfeasibleBudgetsAreRefusedAtTheLease) {
  config.node_budget->limit = Watts(1500);
  start();
  LeaseRequest request;
  request.authority = Authority::fleet;
  request.devices = driver.ids();
  const auto refused = engine->acquire(request);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("GPU-a"), std::string::npos) << refused.error().message();
}

TEST_F(BudgetEngineTest, RestoreUnderABudgetIsNeverUpward) {
  for (const auto& id : driver.ids()) driver.board(id).requested = watts(700);
  start();
  const LeaseId id = lease(LeaseKind::saving, Authority::job);  // under a budget every lease is a budget lease
  ASSERT_TRUE(engine->write(id, all(watts(450))));
  EXPECT_EQ(sum(), watts(1800));
  ASSERT_TRUE(engine->restore_all("test"));
  EXPECT_EQ(sum(), watts(1800));
  start();
  run(Seconds(60));
  EXPECT_EQ(sum(), watts(1800));
  const auto lifted = *engine->lift(Authority::site, driver.ids());
  EXPECT_EQ(std::count_if(lifted.begin(), lifted.end(), [](const auto& o) { return o.restored; }), 4);
  EXPECT_EQ(sum(), watts(2800));
}

}  // namespace
}  // namespace flyball::guard
