// The library's life under a running process.
#include "device/nvml/nvml_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <filesystem>
#include <fstream>

#include "base/memory_filesystem.h"
#include "base/random.h"
#include "base/temp_dir.h"
#include "device/nvml/nvml_driver.h"
#include "device/nvml/nvml_error.h"
#include "device/nvml/scripted_nvml.h"

namespace flyball::nvml {
namespace {

using testing::HasSubstr;

const DeviceId kA = DeviceId::of("GPU-aaaa");
const DeviceId kB = DeviceId::of("GPU-bbbb");

class NvmlLifeTest : public testing::Test {
 protected:
  NvmlLifeTest() {
    script.boards.resize(2);
    script.boards[0].uuid = kA.text();
    script.boards[0].usage_mw = 100'000;
    script.boards[1].uuid = kB.text();
    script.boards[1].average.value.as_uint = 222'000;
    EXPECT_TRUE(files.write_atomically("/boot_id", "b007\n"));
  }
  ~NvmlLifeTest() override { EXPECT_EQ(script.stale_handles, 0) << "a handle of an ended session was used"; }

  ScriptedNvml script;
  VirtualClock clock;
  MemoryFilesystem files;
  std::string load = "module-17";
  NvmlDriver driver{script.loader(), clock, files, [this] { return load; }, "/boot_id"};
};

TEST_F(NvmlLifeTest, AnAbsentLibraryIsUnsupportedWithARemedyAndProbedAgain) {
  script.library_present = false;
  const auto list = driver.devices();
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().exit_code(), 4);
  EXPECT_FALSE(list.error().remedy.empty());
  script.library_present = true;
  EXPECT_FALSE(driver.devices()) << "not before the pause is over";
  EXPECT_EQ(script.loads, 1);
  clock.advance(kFirstRetry);
  ASSERT_TRUE(driver.devices());
  EXPECT_EQ(driver.devices()->size(), 2U);
}

TEST_F(NvmlLifeTest, TheRealLoaderSaysWhatIsMissing) {
  const auto loaded = nvml_loader("libflyball-no-such-library.so.1")();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::unsupported);
  EXPECT_THAT(loaded.error().message(), HasSubstr("libflyball-no-such-library.so.1"));
}

TEST_F(NvmlLifeTest, PausesGrowToTheirBound) {
  script.init_result = kDriverNotLoaded;
  int attempts_in_an_hour = 0;
  for (int second = 0; second < 3600; ++second) {
    const int before = script.loads;
    EXPECT_FALSE(driver.epoch());
    attempts_in_an_hour += script.loads - before;
    clock.advance(Seconds(1));
  }
  EXPECT_GE(attempts_in_an_hour, 3600 / 60);
  EXPECT_LE(attempts_in_an_hour, 3600 / 60 + 7);
}

struct StartFault {
  Return code;
  const char* says;
};
class StartFaultTest : public NvmlLifeTest, public testing::WithParamInterface<StartFault> {};

TEST_P(StartFaultTest, EveryFailureToStartNamesItsCauseAndRemedyAndHeals) {
  script.init_result = GetParam().code;
  const auto epoch = driver.epoch();
  ASSERT_FALSE(epoch);
  EXPECT_THAT(epoch.error().message(), HasSubstr(GetParam().says));
  EXPECT_FALSE(epoch.error().remedy.empty());
  script.init_result = kSuccess;
  clock.advance(kLastRetry);
  EXPECT_TRUE(driver.epoch());
}
INSTANTIATE_TEST_SUITE_P(Codes, StartFaultTest,
                         testing::Values(StartFault{kDriverNotLoaded, "not loaded"},
                                         StartFault{kVersionMismatch, "different versions"},
                                         StartFault{kNotReady, "not ready"}, StartFault{kNoPermission, "permission"},
                                         StartFault{kUnknown, "Xid"}));

TEST_F(NvmlLifeTest, ALibraryWithoutTheBasicCallsIsRefused) {
  script.absent.insert("uuid");
  const auto list = driver.devices();
  ASSERT_FALSE(list);
  EXPECT_THAT(list.error().message(), HasSubstr("damaged"));
}

TEST_F(NvmlLifeTest, AReinitialisedLibraryIsReopenedWithinTheSameCallAndBoardsFoundByUuid) {
  EXPECT_EQ(driver.read(kB)->power_average.value_or(Watts(0)), Watts(222));
  script.end_session();
  std::swap(script.boards[0], script.boards[1]);  // another order after the reload
  const auto reading = driver.read(kB);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->power_average.value_or(Watts(0)), Watts(222));
  EXPECT_EQ(reading->device, kB);
  ASSERT_TRUE(driver.set_power_limit(kB, Milliwatts(250'000)));
  EXPECT_EQ(script.boards[0].requested_mw, 250'000U);
  EXPECT_EQ(script.boards[1].requested_mw, 700'000U) << "the other board must not be written";
}

TEST_F(NvmlLifeTest, AWriteIntoAnEndedSessionReachesTheRightBoardOrNone) {
  ASSERT_TRUE(driver.devices());
  std::swap(script.boards[0], script.boards[1]);
  script.end_session();
  script.init_result = kDriverNotLoaded;
  EXPECT_FALSE(driver.set_power_limit(kA, Milliwatts(250'000)));
  for (const auto& board : script.boards) EXPECT_EQ(board.requested_mw, 700'000U);
}

TEST_F(NvmlLifeTest, WhileTheDriverIsAwayKnownBoardsAreNotReadyAndComeBack) {
  ASSERT_TRUE(driver.devices());
  script.end_session();
  script.init_result = kDriverNotLoaded;
  const auto away = driver.read(kA);
  ASSERT_TRUE(away);
  EXPECT_EQ(away->state, DeviceState::not_ready);
  EXPECT_FALSE(away->power_average.ok());
  EXPECT_FALSE(away->energy.ok());
  EXPECT_FALSE(driver.limits(kA));
  script.init_result = kSuccess;
  clock.advance(kLastRetry);
  EXPECT_EQ(driver.read(kA)->state, DeviceState::ok);
}

TEST_F(NvmlLifeTest, ABoardThatDidNotComeBackIsLostAndStaysListed) {
  ASSERT_TRUE(driver.devices());
  script.end_session();
  script.boards.erase(script.boards.begin());
  EXPECT_EQ(driver.read(kA)->state, DeviceState::lost);
  EXPECT_EQ(driver.read(kB)->state, DeviceState::ok);
  EXPECT_EQ(driver.devices()->size(), 2U);
}

/// Which boards a session opens.
class NvmlSelectionTest : public NvmlLifeTest {
 protected:
  std::vector<DeviceId> listed(Selection selection) {
    NvmlDriver some{script.loader(),     clock, files, [] { return std::string("load"); }, "/boot_id",
                    std::move(selection)};
    std::vector<DeviceId> ids;
    const auto list = some.devices();
    if (!list) return ids;
    for (const auto& info : *list) ids.push_back(info.id);
    EXPECT_FALSE(ids == std::vector{kB} && !some.limits(kB));
    return ids;
  }
};

TEST_F(NvmlSelectionTest, OneBoardIsOpenedAndNoOther) {
  EXPECT_EQ(listed(Selection::of(kB)), std::vector{kB});
  EXPECT_EQ(listed(Selection::at(1)), std::vector{kB});
  EXPECT_EQ(script.opened, (std::set<std::string>{kB.text()})) << "what hangs when it is opened hangs nobody else";
  EXPECT_EQ(listed(Selection::at(2)), std::vector<DeviceId>());
  EXPECT_EQ(listed(Selection::of(DeviceId::of("GPU-cccc"))), std::vector<DeviceId>());
  EXPECT_EQ(listed({Selection::Kind::none, 0, {}, {}}).size(), 2U) << "counted";
  EXPECT_EQ(script.opened.size(), 1U);
}

TEST_F(NvmlSelectionTest, ByThePciAddressWhereTheKernelTellsIt) {
  script.boards[1].bus = "00000000:9C:00.0";
  script.searches = 0;
  Selection selection = Selection::of(kB);
  selection.pci_address = [](const DeviceId&) { return std::string("00000000:9C:00.0"); };
  EXPECT_EQ(listed(selection), std::vector{kB});
  EXPECT_EQ(script.searches, 0) << "a search by UUID may open boards on its way";
}

TEST_F(NvmlSelectionTest, APlaceIsRememberedByItsUuidWhenTheOrderChanges) {
  NvmlDriver one{script.loader(), clock, files, [] { return std::string("load"); }, "/boot_id", Selection::at(0)};
  ASSERT_TRUE(one.limits(kA));
  script.end_session();
  std::swap(script.boards[0], script.boards[1]);
  ASSERT_TRUE(one.set_power_limit(kA, Milliwatts(250'000)));
  EXPECT_EQ(script.boards[1].requested_mw, 250'000U);
  EXPECT_EQ(script.boards[0].requested_mw, 700'000U);
}

TEST_F(NvmlSelectionTest, AsTextAndBack) {
  for (const char* text : {"all", "none", "at:3", "GPU-aaaa"}) EXPECT_EQ(Selection::parse(text)->text(), text);
  for (const char* text : {"", "at:", "at:-1", "at:64", "at:x", "7"}) EXPECT_FALSE(Selection::parse(text)) << text;
}

TEST(PciAddress, IsTheFolderWhoseFileNamesTheUuid) {
  const TempDir gpus;
  for (const auto& [address, uuid] : {std::pair("0000:1b:00.0", "GPU-aaaa"), std::pair("0000:9c:00.0", "GPU-bbbb")}) {
    std::filesystem::create_directory(gpus.file(address));
    std::ofstream(gpus.file(std::string(address) + "/information"))
        << "Model: \t\t NVIDIA H100\nGPU UUID: \t " << uuid << "\nBus Location: \t " << address << "\n";
  }
  EXPECT_EQ(pci_address_of(gpus.path(), kB), "0000:9c:00.0");
  EXPECT_EQ(pci_address_of(gpus.path(), DeviceId::of("GPU-cccc")), "");
  EXPECT_EQ(pci_address_of(gpus.file("none"), kB), "");
}

TEST_F(NvmlLifeTest, TheEpochChangesWithBootAndLoading) {
  const auto first = driver.epoch();
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(first->boot_id, "b007");
  EXPECT_EQ(first->driver_load, "module-17");
  EXPECT_EQ(first->version, "550.54.15");
  EXPECT_EQ(driver.epoch().value(), *first);
  script.end_session();
  EXPECT_EQ(driver.epoch().value(), *first) << "only the library was replaced: the driver and its limits stayed";
  script.end_session();
  load = "module-99";
  EXPECT_NE(driver.epoch().value(), *first);
}

TEST_F(NvmlLifeTest, WhereTheLoadingHasNoNameAReopeningIsANewEpoch) {
  load.clear();
  const auto first = driver.epoch();
  ASSERT_TRUE(first);
  script.end_session();
  EXPECT_NE(driver.epoch().value(), *first);
}

TEST_F(NvmlLifeTest, OneLostGpuDoesNotStopTheListingOrTheOthers) {
  ASSERT_TRUE(driver.devices());
  script.boards[0].failing["*"] = kGpuIsLost;
  const auto reading = driver.read(kA);
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->state, DeviceState::lost);
  EXPECT_EQ(reading->power_average.status, Status::lost);
  EXPECT_EQ(driver.read(kB)->state, DeviceState::ok);
  const auto list = driver.devices();
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 2U);
  EXPECT_EQ((*list)[0].state, DeviceState::lost);
  EXPECT_EQ((*list)[1].state, DeviceState::ok);
  const auto limits = driver.limits(kA);
  ASSERT_FALSE(limits);
  EXPECT_THAT(limits.error().message(), HasSubstr("Xid 79"));
  script.boards[0].failing.clear();
  EXPECT_EQ(driver.devices().value()[0].state, DeviceState::ok);
}

TEST_F(NvmlLifeTest, ABoardLostBeforeWeStartedIsListedWithoutItsName) {
  script.boards[0].lost_at_enumeration = true;
  auto list = driver.devices();
  ASSERT_TRUE(list);
  ASSERT_EQ(list->size(), 2U);
  EXPECT_EQ(std::count_if(list->begin(), list->end(), [](auto& d) { return d.state == DeviceState::lost; }), 1);
  EXPECT_EQ(driver.devices()->size(), 2U) << "listed once, however often it is asked";
  script.boards[0].lost_at_enumeration = false;
  list = driver.devices();
  ASSERT_EQ(list->size(), 2U);
  for (const auto& info : *list) EXPECT_EQ(info.state, DeviceState::ok) << info.id.text();
}

TEST_F(NvmlLifeTest, AMadCountIsNotBelieved) {
  script.boards.resize(1000);
  EXPECT_FALSE(driver.devices());
}

// Whatever goes away, is reordered or lost, and whenever: no stale handle, no board taken for another, no value
// from a board that is not there, and all is well again once the faults end.
TEST(NvmlLifeProperty, AnyHistoryOfFaultsHeals) {
  rc::check([] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    Random random(seed);
    ScriptedNvml script;
    script.boards.resize(4);
    for (unsigned i = 0; i < 4; ++i) {
      script.boards[i].uuid = "GPU-" + std::to_string(i);
      script.boards[i].average.value.as_uint = 100'000 * (i + 1);
    }
    VirtualClock clock;
    MemoryFilesystem files;
    NvmlDriver driver(
        script.loader(), clock, files, [] { return std::string("m"); }, "/boot_id");
    const Return codes[] = {kUninitialized, kDriverNotLoaded, kGpuIsLost, kUnknown, kNotSupported, kNoPermission};
    for (int step = 0; step < 60; ++step) {
      clock.advance(Seconds(random.uniform(0, 30)));
      if (random.chance(0.2)) script.end_session();
      if (random.chance(0.2)) std::swap(script.boards[random.below(4)], script.boards[random.below(4)]);
      script.end_session();  // an order only changes with a new session
      script.init_result = random.chance(0.2) ? kDriverNotLoaded : kSuccess;
      script.library_present = !random.chance(0.1);
      auto& victim = script.boards[random.below(4)];
      victim.failing.clear();
      if (random.chance(0.5)) victim.failing[random.chance(0.5) ? "*" : "energy"] = codes[random.below(6)];
      const std::uint64_t asked = random.below(4);
      const auto reading = driver.read(DeviceId::of("GPU-" + std::to_string(asked)));
      if (reading && reading->power_average.ok()) {
        RC_ASSERT(*reading->power_average == Watts(100.0 * static_cast<double>(asked + 1)));
      }
      (void)driver.devices();
    }
    script.init_result = kSuccess;
    script.library_present = true;
    for (auto& board : script.boards) board.failing.clear();
    clock.advance(kLastRetry);
    const auto list = driver.devices();
    RC_ASSERT(list.has_value());
    RC_ASSERT(list->size() == 4U);
    for (const auto& info : *list) RC_ASSERT(info.state == DeviceState::ok);
    RC_ASSERT(script.stale_handles == 0);
  });
}

}  // namespace
}  // namespace flyball::nvml
