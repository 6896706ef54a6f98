// ctest: needs flyball-guard flyball-fakegpu flyball_fakegpu_library
// Measure G2: real processes, kill -9 at random moments. 40 rounds; FLYBALL_CAMPAIGN=1 makes it 200.

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/random.h"
#include "guard/client.h"
#include "guard_rig.h"

namespace flyball {
namespace {

enum class Victim { client, guard, both, worker };

constexpr Seconds kPatience{90};

/// Leases all boards and writes random limits until something fails. Runs in a process of its own.
[[noreturn]] void be_a_client(const std::string& socket, const std::vector<DeviceId>& ids, std::uint64_t seed) {
  Random random(seed);
  auto client = guard::GuardClient::connect(socket);
  if (!client) ::_exit(1);
  guard::LeaseRequest request;
  request.devices = ids;
  request.purpose = "kill test";
  const auto lease = (*client)->acquire(request);
  if (!lease) ::_exit(2);
  for (;;) {
    std::vector<guard::WriteRequest> writes;
    for (const DeviceId& id : ids) {
      writes.push_back({id, Milliwatts(300'000 + static_cast<std::int64_t>(random.below(150'000))), {}});
    }
    if (!(*client)->write(*lease, writes)) ::_exit(3);
    nap(static_cast<int>(random.below(60)));
    if (!(*client)->renew(*lease)) ::_exit(4);
  }
}

std::vector<pid_t> children_of(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/task/{}/children", pid, pid));
  std::vector<pid_t> children;
  for (pid_t child; in >> child;) children.push_back(child);
  return children;
}

class KillTest : public ::testing::Test {
 protected:
  KillTest() : rig_(2), ids_(rig_.ids()), seed_(1) {
    if (const char* given = std::getenv("FLYBALL_SEED")) seed_ = std::strtoull(given, nullptr, 10);
    random_ = Random(seed_);
  }

  pid_t start_client() {
    const std::uint64_t seed = random_.bits();
    const pid_t client = ::fork();
    if (client == 0) be_a_client(rig_.socket(), ids_, seed);
    return client;
  }
  /// Another program has set what will be found: never what the guard itself has lately written or meant to, which no
  /// guard could tell apart.
  void set_what_is_found(int number) {
    for (const DeviceId& id : ids_) {
      found_[id] = 460'000 + 1'150 * static_cast<std::int64_t>(number);
      rig_.fakegpu({"fault", "foreign-limit", fmt::format("{}mW", found_[id]), "--gpu", id.text()});
    }
  }
  /// As the service does it: ExecStopPost, then a new start.
  void restart_guard() {
    EXPECT_EQ(rig_.run_guard("restore"), 0);
    rig_.start_guard(kPatience);
  }
  bool all_as_found() {
    for (const auto& [id, limit] : rig_.boards()) {
      if (limit != found_.at(id)) return false;
    }
    return true;
  }
  void say_what_is_not() {
    for (const auto& [id, limit] : rig_.boards())
      fmt::print("{} found {} mW, now {} mW\n", id.text(), found_.at(id), limit);
    std::ifstream audit(rig_.file("audit"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(audit, line);) lines.push_back(line);
    for (std::size_t i = lines.size() > 40 ? lines.size() - 40 : 0; i < lines.size(); ++i) fmt::print("{}\n", lines[i]);
  }
  void round(int number) {
    SCOPED_TRACE(fmt::format("round {}; replay: FLYBALL_SEED={} kill_test", number, seed_));
    set_what_is_found(number);
    Process client = Process::adopt(start_client());
    const auto victim = static_cast<Victim>(random_.below(4));
    nap(static_cast<int>(random_.below(700)));
    if (victim == Victim::worker) {
      const auto workers = children_of(rig_.guard().pid());
      if (!workers.empty()) ::kill(workers[random_.below(workers.size())], SIGKILL);
      nap(static_cast<int>(random_.below(300)));
    }
    if (victim == Victim::both && random_.chance(0.5)) client.end(SIGKILL);
    if (victim == Victim::guard || victim == Victim::both) rig_.guard().end(SIGKILL);
    client.end(SIGKILL);
    const SystemClock clock;
    const MonoTime killed = clock.now();
    if (!rig_.guard().running()) restart_guard();
    // Lease + 5 s is the promise, and here the lease ends at once; how long it took is printed, for on a machine that
    // gives these processes no processor no time can decide. The guard answers between its calls: once it does, it has
    // read back what it wrote, and the next foreign write is not taken for what its own call did.
    if (!rig_.wait_until([&] { return all_as_found(); }, kPatience, "not as it was found")) say_what_is_not();
    took_.push_back(clock.now() - killed);
    rig_.wait_until([&] { return rig_.run_guard("status") == 0; }, kPatience, "the guard does not answer");
    if (!rig_.wait_until([&] { return all_as_found(); }, kPatience, "not as it was found")) say_what_is_not();
    ++kills_[victim];
  }

  GuardRig rig_;
  std::vector<DeviceId> ids_;
  std::uint64_t seed_;
  Random random_{1};
  std::map<DeviceId, std::int64_t> found_;
  std::map<Victim, int> kills_;
  std::vector<Seconds> took_;
};

TEST_F(KillTest, WhateverIsKilledTheLimitsComeBack) {
  const int rounds = std::getenv("FLYBALL_CAMPAIGN") != nullptr ? 200 : 40;
  rig_.start_guard();
  for (int i = 0; i < rounds && !HasFailure(); ++i) round(i);
  std::sort(took_.begin(), took_.end());
  const auto late = std::count_if(took_.begin(), took_.end(), [](Seconds took) { return took > Seconds(15); });
  fmt::print("bar: G2 kill -9 of client {}, guard {}, both {}, worker {}: limits not back = {} of {}\n",
             kills_[Victim::client], kills_[Victim::guard], kills_[Victim::both], kills_[Victim::worker],
             HasFailure() ? 1 : 0, took_.size());
  fmt::print(
      "bar: G2 from the kill to all limits back, median / longest; later than lease + 5 s = {:.2f} / {:.2f} s; {}\n",
      took_[took_.size() / 2].value(), took_.back().value(), late);
}

}  // namespace
}  // namespace flyball
