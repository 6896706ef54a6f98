// The couplings of the fake, seen through its library as any client sees them. Time moves by steps alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "fakegpu/rig_test.h"

namespace flyball::fakegpu {
namespace {

using testing::StartsWith;

class LibraryTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(NVML(nvml_, nvmlInit_v2), NVML_SUCCESS); }
  void TearDown() override { NVML(nvml_, nvmlShutdown); }

  nvmlDevice_t gpu(unsigned int index = 0) {
    nvmlDevice_t device = nullptr;
    EXPECT_EQ(NVML(nvml_, nvmlDeviceGetHandleByIndex_v2, index, &device), NVML_SUCCESS);
    return device;
  }
  double power(unsigned int index = 0) {
    unsigned int milliwatts = 0;
    EXPECT_EQ(NVML(nvml_, nvmlDeviceGetPowerUsage, gpu(index), &milliwatts), NVML_SUCCESS);
    return milliwatts / 1000.0;
  }
  double energy(unsigned int index = 0) {
    unsigned long long millijoules = 0;
    EXPECT_EQ(NVML(nvml_, nvmlDeviceGetTotalEnergyConsumption, gpu(index), &millijoules), NVML_SUCCESS);
    return static_cast<double>(millijoules) / 1000.0;
  }
  unsigned int temperature() {
    unsigned int celsius = 0;
    EXPECT_EQ(NVML(nvml_, nvmlDeviceGetTemperature, gpu(), 0U, &celsius), NVML_SUCCESS);
    return celsius;
  }
  unsigned int sm_clock() {
    unsigned int megahertz = 0;
    EXPECT_EQ(NVML(nvml_, nvmlDeviceGetClockInfo, gpu(), static_cast<unsigned>(NVML_CLOCK_SM), &megahertz),
              NVML_SUCCESS);
    return megahertz;
  }
  nvmlFieldValue_t field(unsigned int id, unsigned int index = 0) {
    nvmlFieldValue_t value{};
    value.field = id;
    EXPECT_EQ(NVML(nvml_, nvmlDeviceGetFieldValues, gpu(index), 1, &value), NVML_SUCCESS);
    return value;
  }
  double tokens() { return rig_.number({"jobs"}, "/true_tokens"); }

  Rig rig_;
  Nvml nvml_;
};

TEST_F(LibraryTest, ALimitGoesThroughToClockPowerEnergyHeatAndProgress) {
  rig_.step(120);
  const double energy_before = energy();
  const double tokens_before = tokens();
  rig_.step(60);
  const double full_energy = energy() - energy_before;
  const double full_tokens = tokens() - tokens_before;
  const unsigned int full_clock = sm_clock();
  const unsigned int full_heat = temperature();
  EXPECT_NEAR(power(), 690, 70) << "its second may hold an exchange";
  EXPECT_NEAR(full_energy / 60, 690, 40);

  for (const unsigned int i : {0U, 1U}) {
    ASSERT_EQ(NVML(nvml_, nvmlDeviceSetPowerManagementLimit, gpu(i), 350'000U), NVML_SUCCESS);
  }
  unsigned int requested = 0, enforced = 0;
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetPowerManagementLimit, gpu(), &requested), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetEnforcedPowerLimit, gpu(), &enforced), NVML_SUCCESS);
  EXPECT_EQ(requested, 350'000U) << "a client reads its own write";
  EXPECT_EQ(enforced, 350'000U);
  rig_.step(120);
  const double energy_after = energy();
  const double tokens_after = tokens();
  rig_.step(60);
  EXPECT_NEAR(power(), 345, 40);
  EXPECT_LT((energy() - energy_after) / full_energy, 0.56);
  EXPECT_LT((tokens() - tokens_after) / full_tokens, 0.95);
  EXPECT_GT((tokens() - tokens_after) / full_tokens, 0.4);
  EXPECT_LT(sm_clock(), full_clock);
  EXPECT_LT(temperature() + 5, full_heat);
  unsigned long long reasons = 0;
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetCurrentClocksThrottleReasons, gpu(), &reasons), NVML_SUCCESS);
  EXPECT_EQ(reasons & 0x4U, 0x4U) << "our own cap binds";
  EXPECT_EQ(reasons & 0x80U, 0U);
}

TEST_F(LibraryTest, ReadingsAreTheSensorsNotTheTruth) {
  rig_.step(30);
  EXPECT_NEAR(power(), rig_.truth("sensor_average_w"), 0.001);
  EXPECT_NEAR(energy(), rig_.truth("counter_j"), 0.001);
  EXPECT_GT(std::abs(energy() - rig_.truth("true_energy_j")), 1.0);
}

TEST_F(LibraryTest, TheDefaultFieldTrailsTheInstant) {
  rig_.step(60);
  for (const unsigned int i : {0U, 1U}) {
    ASSERT_EQ(NVML(nvml_, nvmlDeviceSetGpuLockedClocks, gpu(i), 345U, 600U), NVML_SUCCESS);
  }
  rig_.step(0.35);
  const nvmlFieldValue_t instant = field(NVML_FIELD_POWER_INSTANT);
  const nvmlFieldValue_t average = field(NVML_FIELD_POWER_AVERAGE);
  ASSERT_EQ(instant.status, NVML_SUCCESS);
  EXPECT_EQ(instant.type, NVML_VALUE_UNSIGNED_INT);
  EXPECT_GT(average.value.as_uint, instant.value.as_uint + 100'000U);
  EXPECT_NEAR(power(), average.value.as_uint / 1000.0, 0.001);
  rig_.step(0.02);
  EXPECT_EQ(field(NVML_FIELD_POWER_INSTANT).timestamp_us, instant.timestamp_us) << "sooner than it refreshes: a repeat";
  EXPECT_EQ(field(NVML_FIELD_TOTAL_ENERGY).value.as_ull, field(NVML_FIELD_ENERGY).value.as_ull);
  rig_.step(2);
  EXPECT_NEAR(field(NVML_FIELD_POWER_AVERAGE).value.as_uint / 1000.0,
              field(NVML_FIELD_POWER_INSTANT).value.as_uint / 1000.0, 15);
}

TEST_F(LibraryTest, FieldsHaveTheirOwnStatus) {
  std::array<nvmlFieldValue_t, 6> values{};
  const std::array<unsigned int, 6> ids{NVML_FIELD_POWER_MINIMUM_LIMIT,   NVML_FIELD_POWER_MAXIMUM_LIMIT,
                                        NVML_FIELD_POWER_DEFAULT_LIMIT,   NVML_FIELD_POWER_CURRENT_LIMIT,
                                        NVML_FIELD_POWER_REQUESTED_LIMIT, 9999};
  for (std::size_t i = 0; i < ids.size(); ++i) values[i].field = ids[i];
  ASSERT_EQ(NVML(nvml_, nvmlDeviceGetFieldValues, gpu(), static_cast<int>(values.size()), values.data()), NVML_SUCCESS);
  EXPECT_EQ(values[0].value.as_uint, 200'000U);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_EQ(values[i].value.as_uint, 700'000U);
  EXPECT_EQ(values[5].status, NVML_ERROR_NOT_SUPPORTED);
}

TEST_F(LibraryTest, LockedClocksHoldAndAreReset) {
  rig_.step(5);
  const unsigned int before = sm_clock();
  ASSERT_EQ(NVML(nvml_, nvmlDeviceSetGpuLockedClocks, gpu(), 345U, 1200U), NVML_SUCCESS);
  rig_.step(5);
  EXPECT_EQ(sm_clock(), 1200U);
  ASSERT_EQ(NVML(nvml_, nvmlDeviceResetGpuLockedClocks, gpu()), NVML_SUCCESS);
  rig_.step(5);
  EXPECT_NEAR(sm_clock(), before, 10);
}

TEST_F(LibraryTest, ArgumentsAreChecked) {
  for (const unsigned int bad : {0U, 199'999U, 700'001U, 0xffffffffU}) {
    EXPECT_EQ(NVML(nvml_, nvmlDeviceSetPowerManagementLimit, gpu(), bad), NVML_ERROR_INVALID_ARGUMENT) << bad;
  }
  EXPECT_EQ(rig_.truth("limit_requested_mw"), 700'000);
  for (const unsigned int exact : {200'000U, 700'000U}) {
    EXPECT_EQ(NVML(nvml_, nvmlDeviceSetPowerManagementLimit, gpu(), exact), NVML_SUCCESS);
  }
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetPowerUsage, gpu(), static_cast<unsigned*>(nullptr)), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetCount_v2, static_cast<unsigned*>(nullptr)), NVML_ERROR_INVALID_ARGUMENT);
  unsigned int value = 0;
  nvmlDevice_t device = nullptr;
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetPowerUsage, device, &value), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetPowerUsage, reinterpret_cast<nvmlDevice_t>(&value), &value),
            NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetHandleByIndex_v2, 2U, &device), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetHandleByUUID, "GPU-nobody", &device), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceSetGpuLockedClocks, gpu(), 900U, 300U), NVML_ERROR_INVALID_ARGUMENT);
  char text[8];
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetUUID, gpu(), text, 8U), NVML_ERROR_INSUFFICIENT_SIZE);
  nvmlPowerValue_v2_t wrong{1, 0, 300'000};
  EXPECT_EQ(NVML(nvml_, nvmlDeviceSetPowerManagementLimit_v2, gpu(), &wrong), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  nvmlPowerValue_v2_t right{NVML_STRUCT_VERSION(nvmlPowerValue_v2_t, 2U), 0, 300'000};
  EXPECT_EQ(NVML(nvml_, nvmlDeviceSetPowerManagementLimit_v2, gpu(), &right), NVML_SUCCESS);
  EXPECT_EQ(rig_.truth("limit_requested_mw"), 300'000);
}

TEST_F(LibraryTest, ABoardIsFoundByEveryNameItHas) {
  std::set<std::string> uuids;
  for (const unsigned int i : {0U, 1U}) {
    std::array<char, 96> uuid{}, serial{};
    nvmlPciInfo_t pci{};
    ASSERT_EQ(NVML(nvml_, nvmlDeviceGetUUID, gpu(i), uuid.data(), 96U), NVML_SUCCESS);
    ASSERT_EQ(NVML(nvml_, nvmlDeviceGetSerial, gpu(i), serial.data(), 96U), NVML_SUCCESS);
    ASSERT_EQ(NVML(nvml_, nvmlDeviceGetPciInfo_v3, gpu(i), &pci), NVML_SUCCESS);
    EXPECT_THAT(uuid.data(), StartsWith("GPU-"));
    EXPECT_EQ(pci.pci_device_id, 0x233010deU);
    nvmlDevice_t found = nullptr;
    EXPECT_EQ(NVML(nvml_, nvmlDeviceGetHandleByUUID, uuid.data(), &found), NVML_SUCCESS);
    EXPECT_EQ(found, gpu(i));
    EXPECT_EQ(NVML(nvml_, nvmlDeviceGetHandleBySerial, serial.data(), &found), NVML_SUCCESS);
    EXPECT_EQ(found, gpu(i));
    for (const char* bus : {pci.bus_id, pci.bus_id_legacy}) {
      EXPECT_EQ(NVML(nvml_, nvmlDeviceGetHandleByPciBusId_v2, bus, &found), NVML_SUCCESS) << bus;
      EXPECT_EQ(found, gpu(i));
    }
    unsigned int minor = 0, index = 9;
    EXPECT_EQ(NVML(nvml_, nvmlDeviceGetMinorNumber, gpu(i), &minor), NVML_SUCCESS);
    EXPECT_EQ(NVML(nvml_, nvmlDeviceGetIndex, gpu(i), &index), NVML_SUCCESS);
    EXPECT_EQ(index, i);
    EXPECT_NE(minor, index) << "the minor is no index: whoever mixes them reads the wrong board";
    uuids.insert(uuid.data());
  }
  EXPECT_EQ(uuids.size(), 2U);
}

TEST_F(LibraryTest, WhatNvidiaSmiAsksIsAnswered) {
  rig_.step(10);
  std::array<char, 96> text{};
  EXPECT_EQ(NVML(nvml_, nvmlSystemGetDriverVersion, text.data(), 80U), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvml_, nvmlSystemGetNVMLVersion, text.data(), 80U), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetName, gpu(), text.data(), 96U), NVML_SUCCESS);
  EXPECT_STREQ(text.data(), "NVIDIA H100 80GB HBM3");
  int cuda = 0, major_version = 0, minor_version = 0;
  EXPECT_EQ(NVML(nvml_, nvmlSystemGetCudaDriverVersion_v2, &cuda), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetCudaComputeCapability, gpu(), &major_version, &minor_version), NVML_SUCCESS);
  EXPECT_EQ(major_version, 9);
  nvmlMemory_t memory{};
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetMemoryInfo, gpu(), &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.free + memory.used, memory.total);
  nvmlUtilization_t utilization{};
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetUtilizationRates, gpu(), &utilization), NVML_SUCCESS);
  EXPECT_GT(utilization.gpu, 95U);
  unsigned int count = 7, state = 9, a = 9, b = 9;
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetComputeRunningProcesses_v3, gpu(), &count, static_cast<void*>(nullptr)),
            NVML_SUCCESS);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetPerformanceState, gpu(), &state), NVML_SUCCESS);
  EXPECT_EQ(state, 0U);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetMigMode, gpu(), &a, &b), NVML_SUCCESS);
  EXPECT_EQ(a, 0U);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetFanSpeed, gpu(), &a), NVML_ERROR_NOT_SUPPORTED) << "a module board has no fan";
  unsigned int clocks = 0;
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetSupportedGraphicsClocks, gpu(), 2619U, &clocks, static_cast<unsigned*>(nullptr)),
            NVML_ERROR_INSUFFICIENT_SIZE);
  std::vector<unsigned int> list(clocks);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetSupportedGraphicsClocks, gpu(), 2619U, &clocks, list.data()), NVML_SUCCESS);
  EXPECT_EQ(list.front(), 1980U);
  const void* table = &table;
  const std::array<char, 16> id{};
  EXPECT_EQ(NVML(nvml_, nvmlInternalGetExportTable, &table, static_cast<const void*>(id.data())), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(table, nullptr);
  EXPECT_STREQ(NVML(nvml_, nvmlErrorString, 15U), "GPU is lost");
}

TEST_F(LibraryTest, TheRestIsExportedAndSaysNotSupported) {
  for (const char* name : {"nvmlDeviceGetEncoderUtilization", "nvmlDeviceGetPcieThroughput", "nvmlEventSetCreate",
                           "nvmlDeviceGetNvLinkState", "nvmlUnitGetCount", "nvmlGpmSampleAlloc"}) {
    auto* function = reinterpret_cast<nvmlReturn_t (*)()>(nvml_.symbol(name));
    ASSERT_NE(function, nullptr) << name;
    EXPECT_EQ(function(), NVML_ERROR_NOT_SUPPORTED) << name;
  }
  EXPECT_EQ(nvml_.symbol("fg_read"), nullptr) << "nothing but NVML's names is visible";
}

TEST_F(LibraryTest, InitIsCounted) {
  EXPECT_EQ(NVML(nvml_, nvmlInitWithFlags, 1U), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvml_, nvmlShutdown), NVML_SUCCESS);
  EXPECT_GE(power(), 0) << "still open";
  const nvmlDevice_t old = gpu();
  EXPECT_EQ(NVML(nvml_, nvmlShutdown), NVML_SUCCESS);
  unsigned int value = 0;
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetPowerUsage, old, &value), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(NVML(nvml_, nvmlShutdown), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(NVML(nvml_, nvmlInit_v2), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvml_, nvmlDeviceGetPowerUsage, old, &value), NVML_ERROR_INVALID_ARGUMENT)
      << "a handle of an earlier session names nothing";
}

TEST(LibraryPresets, AnA100HasNoMeanAndAV100NoFields) {
  twin::MachineParameters p = rig_parameters(1);
  p.gpu = *twin::gpu_preset("a100-sxm4-80gb");
  Rig rig(p);
  const Nvml nvml;
  ASSERT_EQ(NVML(nvml, nvmlInit_v2), NVML_SUCCESS);
  rig.step(10);
  nvmlDevice_t gpu = nullptr;
  ASSERT_EQ(NVML(nvml, nvmlDeviceGetHandleByIndex_v2, 0U, &gpu), NVML_SUCCESS);
  std::array<nvmlFieldValue_t, 2> values{};
  values[0].field = NVML_FIELD_POWER_AVERAGE;
  values[1].field = NVML_FIELD_POWER_INSTANT;
  ASSERT_EQ(NVML(nvml, nvmlDeviceGetFieldValues, gpu, 2, values.data()), NVML_SUCCESS);
  EXPECT_EQ(values[0].status, NVML_ERROR_NOT_SUPPORTED);
  unsigned int usage = 0;
  EXPECT_EQ(NVML(nvml, nvmlDeviceGetPowerUsage, gpu, &usage), NVML_SUCCESS);
  EXPECT_EQ(usage, values[1].value.as_uint) << "the default field of this chip is instantaneous";
  NVML(nvml, nvmlShutdown);
}

}  // namespace
}  // namespace flyball::fakegpu
