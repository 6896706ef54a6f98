// ctest: needs flyball flyball-fakegpu
// The NVML driver against the fake library: real dlopen, real processes, real re-initialisation; and what doctor says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "base/temp_dir.h"
#include "base/text.h"
#include "cli/doctor_gpu.h"
#include "device/nvml/nvml_driver.h"
#include "device/worker/serve.h"
#include "device/worker/worker_driver.h"

namespace flyball {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string build_folder() {
  const char* folder = std::getenv("FLYBALL_BUILD");
  return folder != nullptr ? folder : "build/release";
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  char block[4096];
  while (const std::size_t n = std::fread(block, 1, sizeof block, pipe)) text.append(block, n);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return text;
}

/// The owner of two fake boards whose time stands still until it is told to move.
class FakeNode {
 public:
  explicit FakeNode(const std::string& page) : page_(page) { start(); }
  ~FakeNode() { kill(); }

  void start() {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const std::string program = build_folder() + "/flyball-fakegpu";
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ready[1], STDOUT_FILENO);
      ::close(ready[0]);
      ::close(ready[1]);
      ::execl(program.c_str(), program.c_str(), "--page", page_.c_str(), "--gpus", "2", "--paused", nullptr);
      ::_exit(127);
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "flyball-fakegpu did not start";
    ::close(ready[0]);
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  std::string ask(const std::string& words) {
    return output_of(build_folder() + "/flyball-fakegpu --page " + page_ + " " + words);
  }
  void fault(const std::string& words) { EXPECT_THAT(ask("fault --gpu 0 " + words), HasSubstr("fakegpu_fault")); }
  /// A number that the owner states of a board: the truth to compare readings with.
  double truth(const DeviceId& device, const std::string& key) {
    const std::string status = ask("status --json");
    const std::size_t name = status.find("\"uuid\":\"" + device.text() + "\"");
    if (name == std::string::npos) return std::nan("");
    const std::size_t begin = status.rfind('{', name);
    const std::string board = status.substr(begin, status.find('}', name) - begin);
    const std::size_t at = board.find("\"" + key + "\":");
    if (at == std::string::npos) return std::nan("");
    const std::size_t value = at + key.size() + 3;
    return parse_double(board.substr(value, board.find(',', value) - value)).value_or(std::nan(""));
  }

 private:
  std::string page_;
  pid_t pid_ = -1;
};

class NvmlFakeTest : public testing::Test {
 protected:
  NvmlFakeTest() {
    ::setenv("FLYBALL_FAKEGPU", page.c_str(), 1);
    node.ask("step 5s");
    driver = nvml::make_nvml_driver(options, clock);
    const auto list = driver->devices();
    EXPECT_TRUE(list) << list.error().message();
    if (!list || list->size() != 2) return;
    // Which of the two the owner calls 0, whatever the library's order.
    a = (*list)[0].id;
    b = (*list)[1].id;
    if (node.truth(a, "index") != 0) std::swap(a, b);
  }

  GpuReading read(const DeviceId& id) {
    const auto reading = driver->read(id);
    EXPECT_TRUE(reading) << reading.error().message();
    return reading.value_or(GpuReading());
  }
  std::vector<std::string> doctor() {
    std::vector<std::string> codes;
    for (const Finding& f : cli::doctor_gpus({*driver, clock, system_filesystem(), false})) codes.push_back(f.code);
    return codes;
  }

  TempDir folder;
  std::string page = folder.file("page");
  FakeNode node{page};
  SystemClock clock;
  nvml::NvmlOptions options{.library = build_folder() + "/fakegpu/libnvidia-ml.so.1"};
  std::unique_ptr<Driver> driver;
  DeviceId a;
  DeviceId b;
};

TEST_F(NvmlFakeTest, ReadsWhatTheOwnerStates) {
  for (const DeviceId& id : {a, b}) {
    const GpuReading r = read(id);
    EXPECT_NEAR(r.power_average.value_or(Watts(0)).value(), node.truth(id, "sensor_average_w"), 0.001);
    EXPECT_NEAR(r.power_instant.value_or(Watts(0)).value(), node.truth(id, "sensor_instant_w"), 0.001);
    EXPECT_NEAR(r.energy.value_or(Joules(0)).value(), node.truth(id, "counter_j"), 0.001);
    EXPECT_NEAR(r.temperature.value_or(Celsius(0)).value(), node.truth(id, "temperature_celsius"), 1);
    EXPECT_NEAR(r.sm_clock.value_or(Hertz(0)).value(), node.truth(id, "sm_clock_hz"), 1e6);
    EXPECT_EQ(static_cast<double>(r.limit_enforced.value_or(Milliwatts(0)).value()),
              node.truth(id, "limit_enforced_mw"));
  }
  const auto limits = driver->limits(a);
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->minimum.value_or(Milliwatts(0)), Milliwatts(200'000));
  EXPECT_EQ(limits->maximum.value_or(Milliwatts(0)), Milliwatts(700'000));
  EXPECT_TRUE(limits->persistence.value_or(false));
  EXPECT_EQ(driver->capabilities(a)->write_limit, Status::ok);
}

TEST_F(NvmlFakeTest, SetsTheLimitOfTheBoardThatIsMeant) {
  ASSERT_TRUE(driver->set_power_limit(b, Milliwatts(345'678)));
  EXPECT_EQ(node.truth(b, "limit_requested_mw"), 345'678);
  EXPECT_EQ(node.truth(a, "limit_requested_mw"), 700'000);
  EXPECT_FALSE(driver->set_power_limit(b, Milliwatts(199'999)));
  ASSERT_TRUE(driver->lock_clocks(a, {Hertz(600e6), Hertz(1200e6)}));
  EXPECT_THAT(node.ask("status --json"), HasSubstr("1200000000"));
  ASSERT_TRUE(driver->reset_clocks(a));
  EXPECT_THAT(doctor(), Contains("gpu.limit_not_default"));
}

TEST_F(NvmlFakeTest, OneFieldFailsOrLiesAndTheOtherStands) {
  node.fault("field 185 UNKNOWN");
  EXPECT_EQ(read(a).power_average.status, Status::failed);
  EXPECT_TRUE(read(a).power_instant.ok());
  EXPECT_THAT(doctor(), Contains("gpu.read_failed"));
  node.fault("clear");
  node.fault("poison 186");
  const double truth = node.truth(a, "sensor_instant_w");
  EXPECT_NEAR(read(a).power_instant.value_or(Watts(0)).value(), truth, 0.001) << "taken from the member it names";
  EXPECT_TRUE(read(a).power_average.ok());
}

TEST_F(NvmlFakeTest, SentinelsAreNoValues) {
  for (const char* call : {"power", "temperature", "limit", "enforced", "constraints", "clock", "throttle"}) {
    node.fault(std::string("sentinel ") + call);
  }
  const GpuReading r = read(a);
  EXPECT_FALSE(r.temperature.ok());
  EXPECT_FALSE(r.limit_enforced.ok());
  EXPECT_FALSE(r.sm_clock.ok());
  EXPECT_FALSE(r.throttle.ok());
  EXPECT_FALSE(driver->set_power_limit(a, Milliwatts(300'000))) << "no write without a known range";
  EXPECT_EQ(node.truth(a, "limit_requested_mw"), 700'000);
  EXPECT_THAT(doctor(), Contains("gpu.garbage"));
  EXPECT_THAT(doctor(), Contains("gpu.limits_unknown"));
}

TEST_F(NvmlFakeTest, ALostGpuStaysListedAndTheOtherGoesOn) {
  node.fault("lost on");
  EXPECT_EQ(read(a).state, DeviceState::lost);
  EXPECT_EQ(read(b).state, DeviceState::ok);
  EXPECT_EQ(driver->devices()->size(), 2U);
  EXPECT_THAT(doctor(), Contains("gpu.lost"));
  node.fault("clear");
  ASSERT_TRUE(driver->devices());
  EXPECT_EQ(read(a).state, DeviceState::ok);
}

TEST_F(NvmlFakeTest, BrakeAndExternalCapAreSeen) {
  node.fault("brake on");
  node.fault("bmc 450W");
  node.ask("step 2s");
  const GpuReading r = read(a);
  ASSERT_TRUE(r.throttle.ok());
  EXPECT_TRUE(r.throttle.value.external_brake());
  EXPECT_EQ(r.limit_enforced.value_or(Milliwatts(0)), Milliwatts(450'000));
  EXPECT_EQ(r.limit_requested.value_or(Milliwatts(0)), Milliwatts(700'000));
  EXPECT_THAT(doctor(), Contains("gpu.power_brake"));
  EXPECT_THAT(doctor(), Contains("gpu.enforced_below_requested"));
}

TEST_F(NvmlFakeTest, MigIsShared) {
  node.fault("mig on");
  const auto list = driver->devices();
  ASSERT_TRUE(list);
  for (const DeviceInfo& info : *list) EXPECT_EQ(info.shared, info.id == a);
  EXPECT_THAT(doctor(), Contains("gpu.shared"));
}

TEST_F(NvmlFakeTest, PersistenceOffIsSaid) {
  node.fault("persistence off");
  EXPECT_THAT(doctor(), Contains("gpu.persistence_off"));
}

TEST_F(NvmlFakeTest, ReadsFineButWritesFail) {
  node.fault("no-permission");
  const auto set = driver->set_power_limit(a, Milliwatts(300'000));
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message(), HasSubstr("permission"));
  EXPECT_TRUE(read(a).power_average.ok());
  EXPECT_THAT(doctor(), Contains("gpu.write_denied"));
}

TEST_F(NvmlFakeTest, WithoutFieldsOrCounterTheRestGoesOn) {
  node.fault("unsupported fields");
  node.fault("unsupported energy");
  const GpuReading r = read(a);
  EXPECT_TRUE(r.power_average.ok()) << "the plain call of a Hopper board is a mean";
  EXPECT_EQ(r.power_instant.status, Status::not_supported);
  EXPECT_EQ(r.energy.status, Status::not_supported);
  EXPECT_THAT(doctor(), Contains("gpu.no_energy_counter"));
}

TEST_F(NvmlFakeTest, AResetCounterIsGarbageOnce) {
  EXPECT_TRUE(read(a).energy.ok());
  node.fault("counter-reset");
  node.ask("step 1s");
  EXPECT_EQ(read(a).energy.status, Status::garbage);
  node.ask("step 1s");
  EXPECT_TRUE(read(a).energy.ok());
}

TEST_F(NvmlFakeTest, AReloadedDriverIsFoundAgainInANewEpoch) {
  const auto before = driver->epoch();
  ASSERT_TRUE(before) << before.error().message();
  ASSERT_TRUE(driver->set_power_limit(a, Milliwatts(300'000)));
  node.fault("persistence off");
  node.fault("reload");
  EXPECT_EQ(read(a).state, DeviceState::ok);
  EXPECT_EQ(read(a).limit_enforced.value_or(Milliwatts(0)), Milliwatts(700'000)) << "a reload forgets the limit";
  EXPECT_NE(driver->epoch().value(), *before);
}

TEST_F(NvmlFakeTest, AnotherProcessSeesTheSameEpoch) {
  const auto other = nvml::make_nvml_driver(options, clock);
  EXPECT_EQ(driver->epoch().value(), other->epoch().value());
}

TEST_F(NvmlFakeTest, EveryWayASessionEndsIsRecovered) {
  for (const char* code : {"UNINITIALIZED", "DRIVER_NOT_LOADED", "LIB_RM_VERSION_MISMATCH"}) {
    node.fault(std::string("end-sessions ") + code);
    EXPECT_EQ(read(a).state, DeviceState::ok) << code;
    EXPECT_EQ(read(b).state, DeviceState::ok) << code;
  }
}

TEST_F(NvmlFakeTest, WithoutItsOwnerTheDriverIsAwayUntilItIsBack) {
  const auto before = driver->epoch();
  node.kill();
  EXPECT_EQ(read(a).state, DeviceState::not_ready);
  EXPECT_FALSE(driver->limits(a));
  EXPECT_THAT(doctor(), Contains("gpu.driver_unavailable"));
  node.start();
  const auto fresh = nvml::make_nvml_driver(options, clock);  // without the other's pause
  ASSERT_TRUE(fresh->devices());
  EXPECT_NE(fresh->epoch().value(), *before);
}

TEST_F(NvmlFakeTest, NotReadyIsUnsupportedWithARemedy) {
  node.fault("not-ready on");
  const auto early = nvml::make_nvml_driver(options, clock);
  const auto list = early->devices();
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().exit_code(), 4);
  EXPECT_FALSE(list.error().remedy.empty());
}

TEST_F(NvmlFakeTest, AHungCallLeavesTheOthersWorkingThroughWorkers) {
  worker::WorkerOptions patience;
  patience.call_deadline = Seconds(1);
  VirtualClock pauses;
  worker::WorkerDriver workers("nvml", worker::exec_host(options.library), pauses, patience);
  const auto list = workers.devices();
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(workers.epoch().value(), driver->epoch().value());
  const auto good = workers.read(a);
  ASSERT_TRUE(good);
  EXPECT_NEAR(good->power_average.value_or(Watts(0)).value(), node.truth(a, "sensor_average_w"), 0.001);
  node.fault("hang energy");
  EXPECT_EQ(workers.read(a)->state, DeviceState::hung);
  EXPECT_EQ(workers.read(b)->state, DeviceState::ok);
  const auto codes = cli::doctor_gpus({workers, clock, system_filesystem(), false});
  EXPECT_TRUE(std::any_of(codes.begin(), codes.end(), [](const Finding& f) { return f.code == "gpu.hung"; }));
}

TEST_F(NvmlFakeTest, TheProgramSaysWhatIsWrong) {
  const std::string doctor = build_folder() + "/flyball doctor --source nvml --json --nvml-library " + options.library;
  EXPECT_THAT(output_of(doctor + " || true"), AllOf(HasSubstr("gpu.driver"), Not(HasSubstr("gpu.power_brake"))));
  node.fault("brake on");
  node.fault("lost off");
  node.ask("step 1s");
  EXPECT_THAT(output_of(doctor + " || true"), AllOf(HasSubstr("gpu.power_brake"), HasSubstr(a.text())));
}

}  // namespace
}  // namespace flyball

int main(int argc, char** argv) {
  if (flyball::worker::is_worker_program(argc, argv)) return flyball::worker::run_worker_program(argc, argv);
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
