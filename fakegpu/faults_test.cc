// Every fault, through the library.
#include "fakegpu/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <future>

#include "fakegpu/rig_test.h"

namespace flyball::fakegpu {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
constexpr auto kSoon = std::chrono::milliseconds(50);
constexpr auto kPatience = std::chrono::seconds(30);

class FaultTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(NVML(nvml_, nvmlInit_v2), NVML_SUCCESS);
    rig_.step(10);
    for (const unsigned int i : {0U, 1U}) {
      ASSERT_EQ(NVML(nvml_, nvmlDeviceGetHandleByIndex_v2, i, &gpus_[i]), NVML_SUCCESS);
    }
  }
  void TearDown() override { NVML(nvml_, nvmlShutdown); }

  nvmlReturn_t read(unsigned int index = 0) { return NVML(nvml_, nvmlDeviceGetPowerUsage, gpus_[index], &milliwatts_); }
  nvmlReturn_t set(unsigned int milliwatts, unsigned int index = 0) {
    return NVML(nvml_, nvmlDeviceSetPowerManagementLimit, gpus_[index], milliwatts);
  }
  unsigned int requested(unsigned int index = 0) {
    unsigned int limit = 0;
    EXPECT_EQ(NVML(nvml_, nvmlDeviceGetPowerManagementLimit, gpus_[index], &limit), NVML_SUCCESS);
    return limit;
  }
  unsigned int enforced() {
    unsigned int limit = 0;
    EXPECT_EQ(NVML(nvml_, nvmlDeviceGetEnforcedPowerLimit, gpus_[0], &limit), NVML_SUCCESS);
    return limit;
  }

  Rig rig_;
  Nvml nvml_;
  std::array<nvmlDevice_t, 2> gpus_{};
  unsigned int milliwatts_ = 0;
};

TEST_F(FaultTest, NoPermissionStopsSettersAndNotReads) {
  rig_.fault({"no-permission", "--gpu", "0"});
  EXPECT_EQ(set(300'000), NVML_ERROR_NO_PERMISSION);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceSetGpuLockedClocks, gpus_[0], 345U, 900U), NVML_ERROR_NO_PERMISSION);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceSetPersistenceMode, gpus_[0], 0U), NVML_ERROR_NO_PERMISSION);
  EXPECT_EQ(read(), NVML_SUCCESS);
  EXPECT_EQ(set(300'000, 1), NVML_SUCCESS);
  rig_.fault({"clear"});
  EXPECT_EQ(set(300'000), NVML_SUCCESS);
}

TEST_F(FaultTest, ACallIsUnsupportedByItself) {
  rig_.fault({"unsupported", "energy"});
  unsigned long long energy = 0;
  unsigned int low = 0, high = 0;
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetTotalEnergyConsumption, gpus_[0], &energy), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(read(), NVML_SUCCESS);
  rig_.fault({"unsupported", "constraints"});
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetPowerManagementLimitConstraints, gpus_[0], &low, &high), NVML_ERROR_NOT_SUPPORTED);
  rig_.fault({"return", "power", "TIMEOUT"});
  EXPECT_EQ(read(), NVML_ERROR_TIMEOUT);
}

TEST_F(FaultTest, ALostBoardDoesNotStopTheOther) {
  rig_.fault({"lost", "on", "--gpu", "0"});
  EXPECT_EQ(read(), NVML_ERROR_GPU_IS_LOST);
  EXPECT_EQ(set(300'000), NVML_ERROR_GPU_IS_LOST);
  EXPECT_EQ(read(1), NVML_SUCCESS);
  unsigned int count = 0;
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetCount_v2, &count), NVML_SUCCESS);
  EXPECT_EQ(count, 2U);
  nvmlDevice_t found = nullptr;
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetHandleByUUID, rig_.uuid(1).c_str(), &found), NVML_SUCCESS);
  EXPECT_EQ(found, gpus_[1]);
}

TEST_F(FaultTest, AHangHoldsOneCallOfOneBoardUntilItIsCleared) {
  rig_.fault({"hang", "power", "--gpu", "0"});
  auto stuck = std::async(std::launch::async, [this] {
    unsigned int value = 0;
    return NVML(nvml_, nvmlDeviceGetPowerUsage, gpus_[0], &value);
  });
  EXPECT_EQ(stuck.wait_for(kSoon), std::future_status::timeout);
  EXPECT_EQ(read(1), NVML_SUCCESS);
  EXPECT_EQ(set(300'000), NVML_SUCCESS);
  EXPECT_EQ(stuck.wait_for(kSoon), std::future_status::timeout);
  rig_.fault({"clear"});
  ASSERT_EQ(stuck.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(stuck.get(), NVML_SUCCESS);
}

TEST_F(FaultTest, AQuerySucceedsWhileOneEntryFailed) {
  rig_.fault({"field", "186", "NO_DATA", "--gpu", "0"});
  rig_.fault({"poison", "185", "--gpu", "0"});
  std::array<nvmlFieldValue_t, 3> values{};
  values[0].field = NVML_FIELD_POWER_INSTANT;
  values[1].field = NVML_FIELD_POWER_AVERAGE;
  values[2].field = NVML_FIELD_TOTAL_ENERGY;
  ASSERT_EQ(NVML(nvml_, nvmlDeviceGetFieldValues, gpus_[0], 3, values.data()), NVML_SUCCESS);
  EXPECT_EQ(values[0].status, NVML_ERROR_NO_DATA);
  EXPECT_EQ(values[1].status, NVML_SUCCESS);
  EXPECT_EQ(values[1].type, NVML_VALUE_DOUBLE) << "the value is where its type says, and not where one expects it";
  EXPECT_NEAR(values[1].value.as_double, rig_.truth("sensor_average_w") * 1000, 1);
  EXPECT_EQ(values[2].status, NVML_SUCCESS);
  const auto full = rig_.node().command({"fault", "field", "1", "UNKNOWN"});
  EXPECT_TRUE(full);
  for (int i = 2; i < 20; ++i) {
    const auto more = rig_.node().command({"fault", "poison", std::to_string(i), "--gpu", "1"});
    EXPECT_EQ(static_cast<bool>(more), i <= static_cast<int>(FG_MAX_FIELD_FAULTS)) << i;
  }
}

TEST_F(FaultTest, SentinelsAndGarbageComeAsValues) {
  rig_.fault({"sentinel", "power"});
  EXPECT_EQ(read(), NVML_SUCCESS);
  EXPECT_EQ(milliwatts_, 0xffffffffU);
  rig_.fault({"value", "enforced", "17"});
  EXPECT_EQ(enforced(), 17U);
  rig_.fault({"sentinel", "constraints"});
  unsigned int low = 0, high = 0;
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetPowerManagementLimitConstraints, gpus_[0], &low, &high), NVML_SUCCESS);
  EXPECT_EQ(low, 0xffffffffU);
}

TEST_F(FaultTest, OthersLowerAndRaiseLimits) {
  EXPECT_EQ(set(300'000), NVML_SUCCESS);
  rig_.fault({"foreign-limit", "450W", "--gpu", "0"});
  EXPECT_EQ(requested(), 450'000U);
  rig_.fault({"bmc", "250W", "--gpu", "0"});
  EXPECT_EQ(requested(), 450'000U);
  EXPECT_EQ(enforced(), 250'000U);
  rig_.step(20);
  EXPECT_EQ(read(), NVML_SUCCESS);
  EXPECT_NEAR(milliwatts_ / 1000.0, 250, 20);
  rig_.fault({"bmc", "off", "--gpu", "0"});
  EXPECT_EQ(enforced(), 450'000U);
  rig_.fault({"brake", "on", "--gpu", "0"});
  rig_.step(5);
  unsigned long long reasons = 0;
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetCurrentClocksEventReasons, gpus_[0], &reasons), NVML_SUCCESS);
  EXPECT_EQ(reasons & 0x88U, 0x88U);
}

TEST_F(FaultTest, ASetterThatLies) {
  rig_.fault({"lie", "on", "--gpu", "0"});
  EXPECT_EQ(set(300'000), NVML_SUCCESS);
  EXPECT_EQ(requested(), 700'000U);
  rig_.fault({"lie", "off", "--gpu", "0"});
  EXPECT_EQ(set(300'000), NVML_SUCCESS);
  EXPECT_EQ(requested(), 300'000U);
}

TEST_F(FaultTest, AReloadEndsTheSessionAndForgetsLimitsWithoutPersistence) {
  for (const char* persistence : {"1", "0"}) {
    const unsigned int on = persistence[0] == '1';
    for (const nvmlDevice_t gpu : gpus_) {
      ASSERT_EQ(NVML(nvml_, nvmlDeviceSetPersistenceMode, gpu, on), NVML_SUCCESS);
    }
    ASSERT_EQ(set(300'000), NVML_SUCCESS);
    rig_.fault({"reload"});
    EXPECT_EQ(read(), NVML_ERROR_UNINITIALIZED);
    EXPECT_EQ(set(400'000), NVML_ERROR_UNINITIALIZED);
    EXPECT_EQ(read(), NVML_ERROR_UNINITIALIZED) << "until the session is started anew";
    TearDown();
    SetUp();
    EXPECT_EQ(requested(), on != 0 ? 300'000U : 700'000U);
  }
  rig_.fault({"end-sessions", "UNKNOWN"});
  EXPECT_EQ(read(), NVML_ERROR_UNKNOWN);
}

TEST_F(FaultTest, TheCounterIsReset) {
  unsigned long long before = 0, after = 0;
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetTotalEnergyConsumption, gpus_[0], &before), NVML_SUCCESS);
  rig_.fault({"counter-reset"});
  rig_.step(1);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetTotalEnergyConsumption, gpus_[0], &after), NVML_SUCCESS);
  EXPECT_LT(after, before);
  EXPECT_GT(after, 0U);
}

TEST_F(FaultTest, NotReadyRefusesNewSessions) {
  rig_.fault({"not-ready", "on"});
  EXPECT_EQ(read(), NVML_ERROR_DRIVER_NOT_LOADED);
  NVML(nvml_, nvmlShutdown);
  EXPECT_EQ(NVML(nvml_, nvmlInit_v2), NVML_ERROR_DRIVER_NOT_LOADED);
  rig_.fault({"not-ready", "off"});
  EXPECT_EQ(NVML(nvml_, nvmlInit_v2), NVML_SUCCESS);
}

TEST_F(FaultTest, MigInstancesShowTheWholeBoard) {
  rig_.fault({"mig", "on", "--gpu", "0"});
  unsigned int count = 0, current = 0, pending = 0, is_mig = 0, value = 0;
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetMigMode, gpus_[0], &current, &pending), NVML_SUCCESS);
  EXPECT_EQ(current, 1U);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetMaxMigDeviceCount, gpus_[0], &count), NVML_SUCCESS);
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(read(), NVML_SUCCESS);
  for (unsigned int i = 0; i < count; ++i) {
    nvmlDevice_t mig = nullptr, parent = nullptr, found = nullptr;
    ASSERT_EQ(NVML(nvml_, nvmlDeviceGetMigDeviceHandleByIndex, gpus_[0], i, &mig), NVML_SUCCESS);
    EXPECT_EQ(NVML(nvml_, nvmlDeviceIsMigDeviceHandle, mig, &is_mig), NVML_SUCCESS);
    EXPECT_EQ(is_mig, 1U);
    EXPECT_EQ(NVML(nvml_, nvmlDeviceGetDeviceHandleFromMigDeviceHandle, mig, &parent), NVML_SUCCESS);
    EXPECT_EQ(parent, gpus_[0]);
    EXPECT_EQ(NVML(nvml_, nvmlDeviceGetPowerUsage, mig, &value), NVML_SUCCESS);
    EXPECT_EQ(value, milliwatts_) << "of the whole board";
    EXPECT_EQ(NVML(nvml_, nvmlDeviceSetPowerManagementLimit, mig, 300'000U), NVML_ERROR_NOT_SUPPORTED);
    std::array<char, 96> uuid{};
    EXPECT_EQ(NVML(nvml_, nvmlDeviceGetUUID, mig, uuid.data(), 96U), NVML_SUCCESS);
    EXPECT_THAT(uuid.data(), StartsWith("MIG-"));
    EXPECT_EQ(NVML(nvml_, nvmlDeviceGetHandleByUUID, uuid.data(), &found), NVML_SUCCESS);
    EXPECT_EQ(found, mig);
  }
  nvmlUtilization_t utilization{};
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetUtilizationRates, gpus_[0], &utilization), NVML_ERROR_NOT_SUPPORTED);
}

TEST_F(FaultTest, AHungJobIsBusyAtLowPower) {
  rig_.step(30);
  EXPECT_EQ(read(), NVML_SUCCESS);
  const unsigned int busy = milliwatts_;
  rig_.fault({"hung-job", "on"});
  rig_.step(30);
  nvmlUtilization_t utilization{};
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetUtilizationRates, gpus_[0], &utilization), NVML_SUCCESS);
  EXPECT_EQ(utilization.gpu, 100U);
  EXPECT_EQ(read(), NVML_SUCCESS);
  EXPECT_LT(milliwatts_ * 4, busy);
}

TEST_F(FaultTest, CommandsThatAreNotUnderstoodSayWhatIs) {
  for (const Words& bad :
       {Words{"fault"}, Words{"fault", "frob"}, Words{"fault", "hang"}, Words{"fault", "hang", "everything"},
        Words{"fault", "lost", "maybe"}, Words{"fault", "bmc", "250"}, Words{"fault", "return", "power", "NOPE"},
        Words{"fault", "clear", "--gpu", "7"}, Words{"step"}, Words{"step", "0s"}, Words{"step", "10000h"}, Words{},
        Words{"fault", "value", "power", "-1"}}) {
    const auto answer = rig_.node().command(bad);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::input);
  }
  EXPECT_THAT(rig_.node().command({"fault", "frob"}).error().message(), HasSubstr("foreign-limit"));
}

TEST_F(FaultTest, ASetterIsNotWaitedForForEverAndIsNotDoneLater) {
  rig_.stop();
  rig_.owner().set_setter_timeout(Seconds(0.05));
  EXPECT_EQ(set(300'000), NVML_ERROR_TIMEOUT);
  EXPECT_EQ(read(), NVML_SUCCESS) << "reads go on";
  rig_.node().serve_slots();
  rig_.node().publish();
  EXPECT_EQ(requested(), 700'000U);
  for (const fg_slot& slot : rig_.owner().slots()) EXPECT_EQ(slot.state, FG_SLOT_FREE);
  rig_.serve();
  rig_.owner().set_setter_timeout(Seconds(20));
  EXPECT_EQ(set(300'000), NVML_SUCCESS);
}

TEST_F(FaultTest, SlotsAreBoundedAndThoseOfTheDeadAreFreed) {
  rig_.stop();
  const pid_t dead = fork();
  if (dead == 0) _exit(0);
  waitpid(dead, nullptr, 0);
  for (fg_slot& slot : rig_.owner().slots()) {
    slot.state = FG_SLOT_CLAIMED;
    slot.client_pid = static_cast<std::uint32_t>(getpid());
    slot.claimed = 1;
  }
  EXPECT_EQ(set(300'000), NVML_ERROR_INSUFFICIENT_RESOURCES);
  rig_.node().serve_slots();
  EXPECT_EQ(set(300'000), NVML_ERROR_INSUFFICIENT_RESOURCES) << "their owner lives";
  for (fg_slot& slot : rig_.owner().slots()) slot.client_pid = static_cast<std::uint32_t>(dead);
  rig_.node().serve_slots();
  rig_.serve();
  EXPECT_EQ(set(300'000), NVML_SUCCESS);
}

TEST_F(FaultTest, NothingInASlotIsTrusted) {
  rig_.stop();
  const std::array<fg_slot, 4> bad{fg_slot{FG_SLOT_POSTED, 1, 1, 0, 9999, FG_SET_LIMIT, 300'000, 0, 0, {}},
                                   fg_slot{FG_SLOT_POSTED, 1, 1, 0, 0, 77, 300'000, 0, 0, {}},
                                   fg_slot{FG_SLOT_POSTED, 1, 1, 0, 0, FG_SET_LIMIT, 1, 0, 0, {}},
                                   fg_slot{FG_SLOT_POSTED, 1, 1, 0, 0, FG_LOCK_CLOCKS, 900, 300, 0, {}}};
  for (std::size_t i = 0; i < bad.size(); ++i) rig_.owner().slots()[i] = bad[i];
  rig_.node().serve_slots();
  for (std::size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(rig_.owner().slots()[i].state, FG_SLOT_DONE);
    EXPECT_EQ(rig_.owner().slots()[i].result, static_cast<std::uint32_t>(NVML_ERROR_INVALID_ARGUMENT)) << i;
  }
}

}  // namespace
}  // namespace flyball::fakegpu
