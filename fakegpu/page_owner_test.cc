#include "fakegpu/page_owner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

#include "fakegpu/boards.h"
#include "fakegpu/rig_test.h"
#include "twin/parameters.h"

namespace flyball::fakegpu {
namespace {

using testing::HasSubstr;

nvmlReturn_t init(const Nvml& nvml) {
  const nvmlReturn_t result = NVML(nvml, nvmlInit_v2);
  if (result == NVML_SUCCESS) NVML(nvml, nvmlShutdown);
  return result;
}

TEST(Boards, EveryPresetOfTheTwinIsOne) {
  for (const std::string& name : twin::gpu_preset_names()) EXPECT_TRUE(board_kind(name)) << name;
  EXPECT_FALSE(board_kind("a100"));
}

TEST(PageOwner, NoPageIsNoDriver) {
  const TempDir folder;
  setenv("FLYBALL_FAKEGPU", folder.file("none").c_str(), 1);
  const Nvml nvml;
  EXPECT_EQ(init(nvml), NVML_ERROR_DRIVER_NOT_LOADED);
  unsigned int count = 0;
  EXPECT_EQ(NVML(nvml, nvmlDeviceGetCount_v2, &count), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(reinterpret_cast<nvmlReturn_t (*)()>(nvml.symbol("nvmlUnitGetCount"))(), NVML_ERROR_UNINITIALIZED);
}

TEST(PageOwner, ALivingOwnerIsNotReplacedAndADeadOneIs) {
  Rig rig;
  const auto second = PageOwner::create(rig.path(), 2);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message(), HasSubstr(std::to_string(getpid())));
  const Nvml nvml;
  ASSERT_EQ(NVML(nvml, nvmlInit_v2), NVML_SUCCESS);
  nvmlDevice_t gpu = nullptr;
  unsigned int value = 0;
  ASSERT_EQ(NVML(nvml, nvmlDeviceGetHandleByIndex_v2, 0U, &gpu), NVML_SUCCESS);
  rig.die();
  EXPECT_EQ(NVML(nvml, nvmlDeviceGetPowerUsage, gpu, &value), NVML_ERROR_DRIVER_NOT_LOADED);
  EXPECT_EQ(NVML(nvml, nvmlDeviceSetPowerManagementLimit, gpu, 300'000U), NVML_ERROR_DRIVER_NOT_LOADED);
  rig.start(rig_parameters());
  EXPECT_EQ(NVML(nvml, nvmlDeviceGetPowerUsage, gpu, &value), NVML_ERROR_DRIVER_NOT_LOADED)
      << "the old session does not come back by itself";
  EXPECT_EQ(NVML(nvml, nvmlShutdown), NVML_SUCCESS);
  ASSERT_EQ(NVML(nvml, nvmlInit_v2), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvml, nvmlDeviceGetPowerUsage, gpu, &value), NVML_ERROR_INVALID_ARGUMENT) << "an old handle";
  ASSERT_EQ(NVML(nvml, nvmlDeviceGetHandleByIndex_v2, 0U, &gpu), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvml, nvmlDeviceGetPowerUsage, gpu, &value), NVML_SUCCESS);
  NVML(nvml, nvmlShutdown);
}

TEST(PageOwner, AForeignFileIsNoPage) {
  const TempDir folder;
  const std::string path = folder.file("page");
  setenv("FLYBALL_FAKEGPU", path.c_str(), 1);
  const Nvml nvml;
  const auto damage = [&](std::size_t offset, std::uint32_t value) {
    auto owner = PageOwner::create(path, 2);
    ASSERT_TRUE(owner);
    (*owner)->set_state(FG_READY);
    EXPECT_EQ(init(nvml), NVML_SUCCESS);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
    file.close();
    EXPECT_NE(init(nvml), NVML_SUCCESS) << "byte " << offset;
  };
  damage(0, 0x41414141);                                 // magic
  damage(offsetof(fg_header, version), FG_VERSION + 1);  // of a later program
  damage(offsetof(fg_header, gpu_count), 0xffffffff);    // would reach beyond the file
  damage(offsetof(fg_header, gpu_count), 3);
  damage(offsetof(fg_header, total_size), 0xffffffff);
  damage(offsetof(fg_header, slot_offset), 0xfffffff0);
  damage(offsetof(fg_header, slot_count), 0xfffffff0);
  damage(offsetof(fg_header, gpu_offset), 0xfffffff0);
  std::ofstream(path, std::ios::trunc) << "short";
  EXPECT_EQ(init(nvml), NVML_ERROR_DRIVER_NOT_LOADED);
}

TEST(PageOwner, AReplacedPageIsNoticed) {
  const TempDir folder;
  auto owner = PageOwner::create(folder.file("page"), 1);
  ASSERT_TRUE(owner);
  EXPECT_TRUE((*owner)->in_place());
  ASSERT_EQ(unlink(folder.file("page").c_str()), 0);
  EXPECT_FALSE((*owner)->in_place());
  std::ofstream(folder.file("page")) << "someone else's";
  EXPECT_FALSE((*owner)->in_place());
  (*owner)->remove();
  EXPECT_EQ(access(folder.file("page").c_str(), F_OK), 0) << "not ours to remove";
}

TEST(PageOwner, GpusAreBounded) {
  const TempDir folder;
  EXPECT_FALSE(PageOwner::create(folder.file("page"), 0));
  EXPECT_FALSE(PageOwner::create(folder.file("page"), FG_MAX_GPUS + 1));
  EXPECT_TRUE(PageOwner::create(folder.file("page"), FG_MAX_GPUS));
}

TEST(PageOwner, NoReaderSeesHalfARecord) {
  Rig rig(rig_parameters(1));
  rig.stop();
  const Nvml nvml;
  ASSERT_EQ(NVML(nvml, nvmlInit_v2), NVML_SUCCESS);
  nvmlDevice_t gpu = nullptr;
  ASSERT_EQ(NVML(nvml, nvmlDeviceGetHandleByIndex_v2, 0U, &gpu), NVML_SUCCESS);
  rig.owner().publish(0, fg_gpu{});
  // The two constraints stand far enough apart to be written by different stores; they are kept equal.
  std::atomic<bool> done{false};
  std::thread writer([&] {
    fg_gpu record{};
    for (std::uint32_t i = 1; !done; ++i) {
      record.limit_minimum_mw = record.limit_maximum_mw = i;
      record.fault_value[FG_CALL_POWER] = i;
      rig.owner().publish(0, record);
    }
  });
  unsigned int last = 0;
  for (int i = 0; i < 20'000; ++i) {
    unsigned int low = 0, high = 1;
    const nvmlReturn_t result = NVML(nvml, nvmlDeviceGetPowerManagementLimitConstraints, gpu, &low, &high);
    if (result != NVML_SUCCESS) continue;  // the writer never paused long enough
    EXPECT_EQ(low, high);
    EXPECT_GE(low, last);
    last = low;
  }
  done = true;
  writer.join();
  EXPECT_GT(last, 0U) << "some reads came through";
  NVML(nvml, nvmlShutdown);
}

TEST(PageOwner, AProcessIsItsPidAndItsStart) {
  EXPECT_GT(process_start(getpid()), 0U);
  EXPECT_EQ(process_start(getpid()), process_start(getpid()));
  EXPECT_EQ(process_start(4'194'999), 0U) << "beyond the kernel's largest pid";
}

}  // namespace
}  // namespace flyball::fakegpu
