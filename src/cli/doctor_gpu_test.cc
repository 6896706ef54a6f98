#include "cli/doctor_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "base/memory_filesystem.h"
#include "device/nvml/nvml_driver.h"
#include "device/nvml/scripted_nvml.h"

namespace flyball::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

/// A node with two healthy boards; each test breaks one thing.
class DoctorGpuTest : public testing::Test {
 protected:
  DoctorGpuTest() {
    script.boards.resize(2);
    script.boards[0].uuid = "GPU-aaaa";
    script.boards[1].uuid = "GPU-bbbb";
    for (auto& board : script.boards) board.throttle = 0;
    put("/boot_id", "b007");
  }

  void put(const std::string& path, const std::string& text) { EXPECT_TRUE(files.write_atomically(path, text)); }
  void runs(const std::string& pid, const std::string& name) {
    put("/proc/" + pid, "");
    put("/proc/" + pid + "/comm", name + "\n");
  }
  std::vector<Finding> examine() { return doctor_gpus({driver, clock, files, is_root}); }
  std::vector<std::string> codes(const std::vector<Finding>& found) {
    std::vector<std::string> all;
    for (const Finding& f : found) all.push_back(f.code);
    return all;
  }
  /// The one finding of that code; what a person is told must say what to do when it is more than a remark.
  Finding the(const std::string& code) {
    Finding one;
    int times = 0;
    for (const Finding& f : examine()) {
      if (f.code != code) continue;
      one = f;
      ++times;
    }
    EXPECT_EQ(times, 1) << code;
    EXPECT_TRUE(one.severity == Severity::info || !one.remedy.empty()) << code;
    return one;
  }

  nvml::ScriptedNvml script;
  VirtualClock clock;
  MemoryFilesystem files;
  bool is_root = false;
  nvml::NvmlDriver driver{script.loader(), clock, files, [] { return std::string("m"); }, "/boot_id"};
};

TEST_F(DoctorGpuTest, AHealthyNodeHasNothingToMend) {
  for (const Finding& f : examine()) EXPECT_EQ(f.severity, Severity::info) << f.code;
  EXPECT_THAT(the("gpu.driver").what, HasSubstr("550.54.15"));
  EXPECT_THAT(codes(examine()), Contains("gpu.unprivileged"));
}

TEST_F(DoctorGpuTest, WithoutADriverOneFindingSaysWhy) {
  script.library_present = false;
  EXPECT_THAT(the("gpu.driver_unavailable").remedy, HasSubstr("install"));
  EXPECT_EQ(examine().size(), 1U);
}

TEST_F(DoctorGpuTest, ADriverThatIsNotLoadedOrOfAnotherVersionIsNamed) {
  script.init_result = nvml::kVersionMismatch;
  EXPECT_THAT(the("gpu.driver_unavailable").remedy, HasSubstr("reboot"));
  script.init_result = nvml::kDriverNotLoaded;
  clock.advance(Seconds(60));
  EXPECT_THAT(the("gpu.driver_unavailable").remedy, HasSubstr("modprobe"));
  put("/sys/module/nouveau", "");
  EXPECT_THAT(the("gpu.driver_unavailable").remedy, HasSubstr("nouveau"));
}

TEST_F(DoctorGpuTest, NoGpuAtAllIsSaid) {
  script.boards.clear();
  EXPECT_EQ(the("gpu.none").severity, Severity::warning);
}

TEST_F(DoctorGpuTest, ALostGpuIsAnAlarmAndTheOtherIsStillExamined) {
  script.boards[0].failing["*"] = nvml::kGpuIsLost;
  script.boards[1].persistence = 0;
  EXPECT_EQ(the("gpu.lost").severity, Severity::alarm);
  EXPECT_EQ(the("gpu.persistence_off").device.text(), "GPU-bbbb");
  EXPECT_EQ(examine().front().code, "gpu.lost") << "most urgent first";
}

TEST_F(DoctorGpuTest, AnExternalCapIsNamedWithBothValues) {
  script.boards[0].enforced_mw = 450'000;
  const Finding f = the("gpu.enforced_below_requested");
  EXPECT_EQ(f.severity, Severity::alarm);
  EXPECT_THAT(f.what, HasSubstr("450"));
  EXPECT_THAT(f.what, HasSubstr("700"));
  EXPECT_THAT(f.remedy, HasSubstr("BMC"));
}

/// A clock whose sleeper finds the world changed.
class EventfulClock final : public Clock {
 public:
  explicit EventfulClock(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)) {}
  MonoTime now() const override { return now_; }
  WallTime wall() const override { return {}; }
  void sleep_until(MonoTime t) override {
    now_ = t;
    meanwhile_();
  }

 private:
  std::function<void()> meanwhile_;
  MonoTime now_;
};

TEST_F(DoctorGpuTest, AJobThatWaitsIsToldFromOneThatBegins) {
  script.boards[0].average.value.as_uint = 102'000;
  const Finding f = the("gpu.job_waits");
  EXPECT_EQ(f.device.text(), "GPU-aaaa");
  EXPECT_THAT(f.what, AllOf(HasSubstr("102"), HasSubstr("700")));
  EventfulClock begins([&] { script.boards[0].average.value.as_uint = 640'000; });
  EXPECT_THAT(codes(doctor_gpus({driver, begins, files, is_root})), Not(Contains("gpu.job_waits")));
}

TEST_F(DoctorGpuTest, ThrottlingIsToldApartByItsCause) {
  script.boards[0].throttle = 0x80 | 0x8;
  EXPECT_EQ(the("gpu.power_brake").severity, Severity::alarm);
  EXPECT_THAT(codes(examine()), Not(Contains("gpu.hardware_slowdown"))) << "the brake explains it";
  script.boards[0].throttle = 0x8;
  EXPECT_EQ(the("gpu.hardware_slowdown").severity, Severity::warning);
  script.boards[0].throttle = 0x20;
  EXPECT_EQ(the("gpu.thermal").severity, Severity::warning);
  script.boards[0].throttle = 0x4;
  EXPECT_EQ(the("gpu.power_cap_binds").severity, Severity::info) << "our own cap is never an alarm";
}

TEST_F(DoctorGpuTest, TheKindOfSensorAndOfBoardIsSaid) {
  script.boards[0].mig = true;
  script.boards[0].average.status = nvml::kNotSupported;
  script.boards[0].failing["energy"] = nvml::kNotSupported;
  script.boards[1].name = "NVIDIA GH200 480GB";
  EXPECT_THAT(the("gpu.power_source").what, HasSubstr("instantaneous"));
  EXPECT_EQ(the("gpu.shared").device.text(), "GPU-aaaa");
  EXPECT_EQ(the("gpu.no_energy_counter").device.text(), "GPU-aaaa") << "the module's is not absent, but another scope";
  EXPECT_EQ(the("gpu.module").device.text(), "GPU-bbbb");
}

TEST_F(DoctorGpuTest, ValuesThatCannotBeTrueAndFailedReadsAreListed) {
  script.boards[0].celsius = 255;
  script.boards[0].failing["utilization"] = nvml::kUnknown;
  EXPECT_THAT(the("gpu.garbage").what, HasSubstr("temperature"));
  EXPECT_THAT(the("gpu.read_failed").what, HasSubstr("utilisation"));
}

TEST_F(DoctorGpuTest, LimitsThatDifferAreUnknownOrCannotBeSet) {
  script.boards[0].requested_mw = script.boards[0].enforced_mw = 500'000;
  EXPECT_THAT(the("gpu.limit_not_default").what, HasSubstr("500"));
  script.boards[1].failing["limit_constraints"] = nvml::kNotSupported;
  EXPECT_EQ(the("gpu.limits_unknown").device.text(), "GPU-bbbb");
  EXPECT_EQ(the("gpu.no_limits").device.text(), "GPU-bbbb");
}

TEST_F(DoctorGpuTest, ReadsFineButWritesFail) {
  script.boards[0].failing["set_limit"] = nvml::kNoPermission;
  EXPECT_FALSE(driver.set_power_limit(DeviceId::of("GPU-aaaa"), Milliwatts(300'000)));
  EXPECT_EQ(the("gpu.write_denied").severity, Severity::warning);
}

TEST_F(DoctorGpuTest, RootWithoutTheCapabilityIsDoubted) {
  is_root = true;
  script.boards.pop_back();
  put("/proc/self/status", "Name:\tflyball\nCapEff:\t00000000a80425fb\n");  // what container runtimes give by default
  EXPECT_EQ(the("gpu.write_doubtful").severity, Severity::warning);
  put("/proc/self/status", "Name:\tflyball\nCapEff:\t000001ffffffffff\n");
  EXPECT_THAT(codes(examine()), Not(Contains("gpu.write_doubtful")));
}

TEST_F(DoctorGpuTest, TheDoctorWritesNothing) {
  script.boards[0].requested_mw = 500'000;
  (void)examine();
  (void)doctor_limit_writers({driver, clock, files, true});
  EXPECT_EQ(script.setter_calls, 0);
}

TEST_F(DoctorGpuTest, OtherWritersAreFoundAmongProcessesAndUnits) {
  EXPECT_TRUE(doctor_limit_writers({driver, clock, files, false}).empty());
  runs("812", "nvidia-persiste");  // the kernel keeps 15 characters
  runs("900", "nv-hostengine");
  runs("901", "nvidia-powerd");
  put("/etc/systemd/system/site-cap.service", "[Service]\nExecStart=/usr/bin/nvidia-smi -pl 500\n");
  put("/lib/systemd/system/site-cap.service", "[Service]\nExecStart=/usr/bin/nvidia-smi -pl 400\n");
  put("/etc/systemd/system/other.service", "[Service]\nExecStart=/usr/bin/nvidia-smi -L\n");
  const auto found = doctor_limit_writers({driver, clock, files, false});
  EXPECT_THAT(codes(found), testing::UnorderedElementsAre("writer.persistenced", "writer.dcgm", "writer.nvidia_powerd",
                                                          "writer.unit"));
  EXPECT_EQ(found.front().severity, Severity::warning);
}

}  // namespace
}  // namespace flyball::cli
