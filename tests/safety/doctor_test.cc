// ctest: needs flyball flyball-guard flyball-fakegpu flyball_fakegpu_library
// `flyball doctor` on fake boards with every fault that they know: what is wrong, on which board, what to do.

#include <fmt/format.h>

#include "base/filesystem.h"
#include "core/device.h"
#include "guard/client.h"
#include "guard_rig.h"

namespace flyball {
namespace {

using nlohmann::json;
using Words = std::vector<std::string>;

constexpr Seconds kPatience{180};

class Doctor : public ::testing::Test {
 protected:
  Doctor() : rig(2, {"--speed", "20"}), ids(rig.ids()) {
    EXPECT_TRUE(system_filesystem().write_atomically(rig.file("flyball.toml"),
                                                     fmt::format("[guard]\nsocket = \"{}\"\n", rig.socket())));
  }
  void fault(Words words, bool of_first = true) {
    words.insert(words.begin(), "fault");
    if (of_first) words.insert(words.end(), {"--gpu", ids[0].text()});
    const std::string answer = rig.fakegpu(words);
    EXPECT_NE(answer.find("flyball.fakegpu_fault/1"), std::string::npos) << answer;
  }
  json checks() {
    Process doctor(
        {build_folder() + "/flyball", "doctor", "--source", "nvml", "--json", "--config", rig.file("flyball.toml"),
         "--state-dir", rig.file("state"), "--nvml-library", build_folder() + "/fakegpu/libnvidia-ml.so.1"},
        rig.log("doctor.out"));
    const int code = doctor.wait();
    EXPECT_TRUE(code == 0 || code == 1) << code;
    const json made =
        json::parse(system_filesystem().read(rig.file("doctor.out"), 1 << 20).value_or(""), nullptr, false);
    return made.is_object() ? made.at("checks") : json::array();
  }
  /// What is said of a board, or of the machine for an empty id; not what is said of every healthy one.
  static std::vector<json> of(const json& all, const std::string& device) {
    std::vector<json> said;
    for (const json& check : all) {
      const std::string name = check.at("name");
      const bool about_gpus = name.starts_with("gpu.") || name.starts_with("guard");
      const bool usual = name == "gpu.power_cap_binds";
      const std::string whose = check.at("device").is_null() ? "" : check.at("device").get<std::string>();
      if (about_gpus && !usual && whose == device) said.push_back(check);
    }
    return said;
  }
  static std::string shown(const std::vector<json>& said) {
    std::string text;
    for (const json& check : said) text += check.dump() + "\n";
    return text;
  }
  /// One of them has that name and state, says this, and what to do.
  static bool says(const std::vector<json>& said, const std::string& name, const std::string& state,
                   const std::string& sentence) {
    return std::any_of(said.begin(), said.end(), [&](const json& check) {
      const bool remedied = state == "ok" || check.at("remedy").is_string();
      return check.at("name") == name && check.at("state") == state && remedied &&
             check.at("found").get<std::string>().find(sentence) != std::string::npos;
    });
  }

  GuardRig rig;
  std::vector<DeviceId> ids;
};

struct Case {
  Words fault;
  std::string name;
  std::string state;
  std::string sentence;
};

TEST_F(Doctor, NamesEveryFaultThatReadingShowsAndItsBoardAlone) {
  const std::vector<Case> cases = {
      {{"return", "temperature", "UNKNOWN"}, "gpu.read_failed", "warn", "could not be read: temperature"},
      {{"return", "limit", "NO_PERMISSION"}, "gpu.read_denied", "warn", "requested limit"},
      {{"unsupported", "throttle"}, "gpu.not_told", "warn", "throttle reasons"},
      {{"unsupported", "energy"}, "gpu.no_energy_counter", "ok", "no energy counter"},
      {{"unsupported", "constraints"}, "gpu.limits_unknown", "warn", "range of limits is not known"},
      {{"sentinel", "constraints"}, "gpu.limits_unknown", "warn", "garbage"},
      {{"sentinel", "enforced"}, "gpu.garbage", "warn", "enforced limit"},
      {{"value", "temperature", "500"}, "gpu.garbage", "warn", "temperature"},
      {{"field", "186", "UNKNOWN"}, "gpu.read_failed", "warn", "instantaneous power"},
      {{"bmc", "250W"}, "gpu.enforced_below_requested", "fail", "250.0 W is enforced"},
      {{"brake", "on"}, "gpu.power_brake", "fail", "power brake"},
      {{"mig", "on"}, "gpu.shared", "ok", "MIG"},
      {{"persistence", "off"}, "gpu.persistence_off", "warn", "persistence is off"},
      {{"foreign-limit", "450W"}, "gpu.limit_not_default", "ok", "its limit is 450.0 W, the factory default 700.0 W"},
  };
  const std::vector<json> healthy = of(checks(), ids[0].text());
  EXPECT_TRUE(healthy.empty()) << shown(healthy);
  for (const Case& each : cases) {
    SCOPED_TRACE(fmt::format("fault {}", fmt::join(each.fault, " ")));
    fault(each.fault);
    const json all = checks();
    const auto said = of(all, ids[0].text());
    EXPECT_TRUE(says(said, each.name, each.state, each.sentence)) << shown(said);
    const auto of_other = of(all, ids[1].text());
    EXPECT_TRUE(of_other.empty()) << shown(of_other);
    fault({"clear"});
    fault({"persistence", "on"});
    fault({"foreign-limit", "700W"});
  }
}

TEST_F(Doctor, ALostBoardIsNamedByItsPlace) {
  // From the start on it has told no UUID.
  fault({"lost", "on"});
  const json all = checks();
  const auto said = of(all, "GPU-unidentified-1");
  EXPECT_TRUE(says(said, "gpu.lost", "fail", "fallen off the bus")) << shown(said);
  EXPECT_TRUE(says(said, "gpu.unidentified", "warn", "has not told its UUID")) << shown(said);
  // The other's rank waits for the lost one from then on: of that board this is told, as soon as its power has fallen.
  rig.wait_until([&] { return says(of(checks(), ids[1].text()), "gpu.job_waits", "warn", "fully used"); }, kPatience,
                 "the rank that is left waits, and nobody says so");
  for (const json& said_of_other : of(all, ids[1].text())) EXPECT_EQ(said_of_other.at("name"), "gpu.job_waits");
}

TEST_F(Doctor, AValueInAnotherMemberOfTheUnionIsReadForWhatItIs) {
  fault({"poison", "185"});
  const auto said = of(checks(), ids[0].text());
  EXPECT_TRUE(said.empty()) << shown(said);
}

TEST_F(Doctor, NamesWhatConcernsTheWholeNode) {
  fault({"not-ready", "on"}, false);
  EXPECT_TRUE(says(of(checks(), ""), "gpu.driver_unavailable", "warn", "not loaded"));
  fault({"clear"}, false);
  fault({"hung-job", "on"}, false);
  rig.wait_until([&] { return says(of(checks(), ids[1].text()), "gpu.job_waits", "warn", "fully used"); }, kPatience,
                 "a job that waits for ever is not told");
  fault({"clear"}, false);
  // A process that begins anew sees nothing of a session that ended, or of a counter that began anew: nothing is wrong.
  fault({"end-sessions", "UNINITIALIZED"}, false);
  fault({"counter-reset"}, false);
  for (const DeviceId& id : ids) {
    const auto said = of(checks(), id.text());
    EXPECT_FALSE(says(said, "gpu.garbage", "warn", "")) << shown(said);
  }
}

TEST_F(Doctor, ABoardThatHangsFromTheStartIsNamedByItsPlace) {
  fault({"hang", "all"});
  const json all = checks();
  EXPECT_TRUE(says(of(all, "GPU-unidentified-1"), "gpu.not_ready", "warn", "opening it has not come back"))
      << all.dump(1);
  EXPECT_TRUE(says(of(all, "GPU-unidentified-1"), "gpu.unidentified", "warn", "GPU at index 0")) << all.dump(1);
  EXPECT_TRUE(of(all, ids[1].text()).empty()) << all.dump(1);
}

/// What reading cannot show the guard has found, and the doctor passes it on.
class DoctorAndGuard : public Doctor {
 protected:
  DoctorAndGuard() {
    // Longer than a doctor takes on a board that hangs.
    EXPECT_TRUE(system_filesystem().write_atomically(rig.file("guard.toml"), "[guard]\nlease = \"300s\"\n"));
    rig.start_guard(kPatience, {"--config", rig.file("guard.toml")});
    client = *guard::GuardClient::connect(rig.socket(), kPatience);
    guard::LeaseRequest request;
    request.devices = {ids[0]};
    request.time_to_live = Seconds(300);
    const auto acquired = client->acquire(request);
    EXPECT_TRUE(acquired) << acquired.error().message();
    lease = acquired.value_or(0);
    EXPECT_EQ(write(Milliwatts(600'000)), guard::WriteState::applied);
  }
  guard::WriteState write(Milliwatts limit) {
    const auto outcomes = client->write(lease, {{ids[0], limit, {}}});
    return outcomes ? outcomes->front().state : guard::WriteState::failed;
  }
  void expect(const std::string& name, const std::string& state, const std::string& sentence) {
    std::vector<json> said;
    rig.wait_until(
        [&] {
          (void)client->renew(lease);
          said = of(checks(), ids[0].text());
          return says(said, name, state, sentence);
        },
        kPatience, name + " is not told");
    if (HasFailure()) fmt::print("{}", shown(said));
  }
  std::unique_ptr<guard::GuardClient> client;
  guard::LeaseId lease = 0;
};

TEST_F(DoctorAndGuard, ASetterThatLies) {
  fault({"lie", "on"});
  EXPECT_EQ(write(Milliwatts(500'000)), guard::WriteState::deferred) << "so soon after the first";
  expect("guard.write_failed", "warn", "the driver accepted 500.0 W and then shows 600.0 W");
}

TEST_F(DoctorAndGuard, ASetterThatMayNot) {
  fault({"no-permission"});
  EXPECT_EQ(write(Milliwatts(500'000)), guard::WriteState::deferred) << "so soon after the first";
  expect("guard.write_failed", "warn", "permission");
}

TEST_F(DoctorAndGuard, AnotherProgram) {
  fault({"foreign-limit", "450W"});
  expect("guard.drift", "warn", "foreign_writer");
}

TEST_F(DoctorAndGuard, ADriverThatWasLoadedAgain) {
  fault({"persistence", "off"});
  fault({"reload"}, false);
  expect("guard.reload", "warn", "loaded again and forgot the limit");
}

TEST_F(DoctorAndGuard, AnExternalLimit) {
  fault({"bmc", "250W"});
  expect("guard.external_limit", "warn", "holds it at 250.0 W, below the 600.0 W that the guard set");
}

TEST_F(DoctorAndGuard, ABoardThatHangs) {
  fault({"hang", "all"});
  expect("guard.board", "fail", "the guard finds it hung");
}

}  // namespace
}  // namespace flyball
