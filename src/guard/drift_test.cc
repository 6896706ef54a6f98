// Others that write limits: bounded rewrites, named, never a fight (measure G3).

#include <fmt/format.h>

#include "guard/engine_test_support.h"

namespace flyball::guard {
namespace {

class DriftTest : public EngineTest {
 protected:
  DriftTest() : EngineTest(1) {}
  /// A whole day; the stranger writes `value` every `period`.
  void day_against(Milliwatts value, Seconds period, LeaseId id) {
    driver.board(a).writes.clear();
    MonoTime next = clock.now();
    const MonoTime end = clock.now() + Seconds(24 * 3600);
    while (clock.now() < end) {
      if (clock.now() >= next) {
        driver.board(a).requested = value;
        next = next + period;
      }
      clock.advance(Seconds(0.5));
      (void)engine->renew(id);
      engine->tick();
    }
  }
};

TEST_F(DriftTest, ASavingLeaseYieldsAfterFiveRewrites) {
  start();
  const LeaseId id = lease();
  write(id, a, watts(600));
  day_against(watts(690), Seconds(7), id);
  EXPECT_LE(driver.board(a).writes.size(), 4 * 5u) << "five in six hours";
  fmt::print("bar: G3 writes in 24 h against a writer every 7 s, saving lease = {}\n", driver.board(a).writes.size());
  EXPECT_TRUE(engine->boards().front().yielded);
  EXPECT_EQ(engine->boards().front().drift, Drift::foreign_writer);
  EXPECT_TRUE(audited("drift", "yielded"));
  ASSERT_TRUE(engine->release(id));
  EXPECT_EQ(requested(a), watts(690)) << "theirs now";
}

TEST_F(DriftTest, ABudgetLeaseGoesOnRarely) {
  config.everywhere.safe_cap = watts(400);
  start();
  const LeaseId id = lease(LeaseKind::budget, Authority::fleet);
  write(id, a, watts(600));
  day_against(watts(690), Seconds(7), id);
  EXPECT_LE(driver.board(a).writes.size(), 5u + 48u);
  fmt::print("bar: G3 writes in 24 h against a writer every 7 s, budget lease = {}\n", driver.board(a).writes.size());
  EXPECT_GE(driver.board(a).writes.size(), 20u) << "but it does not give up";
  ASSERT_TRUE(engine->release(id));
  run(Seconds(3600));
  EXPECT_EQ(requested(a), watts(400));
}

TEST_F(DriftTest, EveryVaryingValueIsBoundedToo) {
  start();
  const LeaseId id = lease();
  write(id, a, watts(600));
  driver.board(a).writes.clear();
  for (int i = 0; i < 40'000; ++i) {
    driver.board(a).requested = watts(610 + i % 80);
    clock.advance(Seconds(2));
    (void)engine->renew(id);
    engine->tick();
  }
  EXPECT_LE(driver.board(a).writes.size(), 5u);
}

TEST_F(DriftTest, OneForeignWriteIsRewrittenWithinTheVerifyPeriod) {
  start();
  const LeaseId id = lease();
  write(id, a, watts(600));
  run(Seconds(5), id);
  driver.board(a).requested = watts(690);
  run(Seconds(2.5), id);
  EXPECT_EQ(requested(a), watts(600));
  ASSERT_TRUE(engine->release(id));
  EXPECT_EQ(requested(a), watts(690)) << "the last that someone else set";
}

TEST_F(DriftTest, AForeignDecreaseIsLeftAlone) {
  start();
  const LeaseId id = lease();
  write(id, a, watts(600));
  run(Seconds(5), id);
  driver.board(a).writes.clear();
  driver.board(a).requested = watts(450);
  run(Seconds(600), id);
  EXPECT_TRUE(driver.board(a).writes.empty());
  write(id, a, watts(400));
  EXPECT_EQ(requested(a), watts(400));
  ASSERT_TRUE(engine->release(id));
  EXPECT_EQ(requested(a), watts(450));
}

TEST_F(DriftTest, PersistenceOffIsNamed) {
  driver.board(a).persistence = false;
  start();
  const LeaseId id = lease();
  write(id, a, watts(600));
  driver.board(a).requested = driver.board(a).factory_default;
  run(Seconds(3), id);
  EXPECT_EQ(engine->boards().front().drift, Drift::factory_default);
}

}  // namespace
}  // namespace flyball::guard
