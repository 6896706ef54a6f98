// Reported in the field: a grid of limits in watts held a point just under the board's minimum (or met it only after
// rounding), the driver refused it, and the tool stopped or went on without a limit. Right: the wish is clamped in
// whole milliwatts to the range that the board states, the clamped limit is set and read back, and the run goes on.
#include <gtest/gtest.h>

#include "base/memory_filesystem.h"
#include "device/twin/twin_driver.h"
#include "guard/engine.h"
#include "loop/loop.h"
#include "policy/policy.h"
#include "twin/machine.h"

namespace flyball {
namespace {

using namespace literals;

class Quiet final : public loop::ProgressSource {
 public:
  Sample<WorkloadProgress> progress() override { return Sample<WorkloadProgress>::absent(Status::missing); }
};

struct Seen {
  std::vector<guard::WriteOutcome> writes;
  Milliwatts held;
  Milliwatts after;
};

Seen run_with(const std::string& wish, Watts minimum) {
  twin::MachineParameters parameters;
  parameters.gpu.minimum_limit = minimum;
  auto machine = twin::Machine::create(parameters);
  EXPECT_TRUE(machine) << machine.error().message();
  VirtualClock clock;
  device::TwinDriver driver(*machine, clock);
  MemoryFilesystem disk;
  guard::MemoryAudit audit;
  auto engine = guard::Engine::start({driver, clock, disk, audit}, {});
  EXPECT_TRUE(engine) << engine.error().message();
  Quiet progress;
  auto policy = policy::make(wish, {});
  EXPECT_TRUE(policy) << policy.error().message();
  loop::Loop loop(driver, clock, **engine, progress, **policy, {});
  EXPECT_TRUE(loop.start());
  Seen seen;
  for (int i = 0; i < 80; ++i) {
    clock.advance(0.5_s);
    (*engine)->tick();
    if (const auto record = loop.tick())
      seen.writes.insert(seen.writes.end(), record->writes.begin(), record->writes.end());
  }
  seen.held = machine->gpus()[0].requested_limit();
  EXPECT_TRUE(loop.finish());
  for (int i = 0; i < 20; ++i) {
    clock.advance(0.5_s);
    (*engine)->tick();
  }
  seen.after = machine->gpus()[0].requested_limit();
  return seen;
}

TEST(LimitBelowMinimum, IsClampedInWholeMilliwattsAndTheRunGoesOn) {
  // 99.999 W is the same watt as 100 W to the eye, and outside the range to the driver.
  for (const char* wish : {"static:99.999W", "static:75W"}) {
    const Seen seen = run_with(wish, Watts(100));
    ASSERT_FALSE(seen.writes.empty()) << wish;
    for (const guard::WriteOutcome& write : seen.writes) {
      EXPECT_EQ(write.accepted, 100'000_mW) << wish;
      EXPECT_NE(write.state, guard::WriteState::refused) << wish << ": " << write.reason;
      EXPECT_NE(write.state, guard::WriteState::failed) << wish << ": " << write.reason;
    }
    EXPECT_EQ(seen.held, 100'000_mW) << wish;
    EXPECT_EQ(seen.after, 400'000_mW) << wish;
  }
}

TEST(LimitBelowMinimum, AWishThatIsNoPowerLimitIsRefusedAndNothingIsWritten) {
  // A thousandth of what no board draws is a mixed-up unit, not a low wish.
  const Seen seen = run_with("static:1mW", Watts(100));
  ASSERT_FALSE(seen.writes.empty());
  for (const guard::WriteOutcome& write : seen.writes) EXPECT_EQ(write.state, guard::WriteState::refused);
  EXPECT_EQ(seen.held, 400'000_mW);
  EXPECT_EQ(seen.after, 400'000_mW);
}

TEST(LimitBelowMinimum, AMinimumThatIsNoWholeWattIsMetExactly) {
  EXPECT_EQ(run_with("static:100W", Watts(100.001)).held, 100'001_mW);
}

}  // namespace
}  // namespace flyball
