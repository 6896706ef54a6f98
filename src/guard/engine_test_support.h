#pragma once
// One guard on a scripted driver in virtual time, for tests.

#include <gtest/gtest.h>

#include <memory>

#include "base/memory_filesystem.h"
#include "guard/engine.h"
#include "guard/scripted_driver.h"

namespace flyball::guard {

inline Milliwatts watts(std::int64_t value) { return Milliwatts(value * 1000); }

class EngineTest : public ::testing::Test {
 protected:
  explicit EngineTest(int boards = 4) : driver(boards) {}

  /// Starts a guard; a second call is a restart after a crash (the first one is simply gone).
  Engine& start() {
    engine.reset();
    auto started = Engine::start({driver, clock, disk, audit}, config);
    EXPECT_TRUE(started) << (started ? "" : started.error().message());
    engine = *std::move(started);
    return *engine;
  }
  LeaseId lease(LeaseKind kind = LeaseKind::saving, Authority authority = Authority::job, bool sticky = false) {
    LeaseRequest request;
    request.kind = kind;
    request.authority = authority;
    request.devices = driver.ids();
    request.purpose = "test";
    request.sticky = sticky;
    const auto id = engine->acquire(request);
    EXPECT_TRUE(id) << (id ? "" : id.error().message());
    return id.value_or(0);
  }
  WriteOutcome write(LeaseId id, const DeviceId& device, Milliwatts limit) {
    const auto outcomes = engine->write(id, {{device, limit, {}}});
    EXPECT_TRUE(outcomes) << (outcomes ? "" : outcomes.error().message());
    return outcomes ? outcomes->front() : WriteOutcome{};
  }
  /// Half a second a step, renewing `keep`.
  void run(Seconds duration, LeaseId keep = 0) {
    const MonoTime end = clock.now() + duration;
    while (clock.now() < end) {
      clock.advance(Seconds(0.5));
      if (keep != 0) (void)engine->renew(keep);
      engine->tick();
    }
  }
  Milliwatts requested(const DeviceId& device) { return driver.board(device).requested; }
  bool audited(std::string_view kind, std::string_view outcome) const {
    return std::any_of(audit.events().begin(), audit.events().end(),
                       [&](const AuditEvent& event) { return event.kind == kind && event.outcome == outcome; });
  }

  ScriptedDriver driver;
  VirtualClock clock;
  MemoryFilesystem disk;
  MemoryAudit audit;
  EngineConfig config;
  std::unique_ptr<Engine> engine;
  const DeviceId a = DeviceId::of("GPU-a");
  const DeviceId b = DeviceId::of("GPU-b");
};

}  // namespace flyball::guard
