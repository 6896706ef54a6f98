#include "device/worker/worker_driver.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <new>

#include "device/worker/worker_test_support.h"

namespace flyball::worker {
namespace {

using testing::HasSubstr;

std::size_t open_descriptors() {
  std::size_t count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

class WorkerDriverTest : public testing::Test {
 protected:
  WorkerDriverTest() {
    void* memory = ::mmap(nullptr, sizeof(Switchboard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    board = new (memory) Switchboard;
    host = std::make_shared<ForkHost>([this](int descriptor, std::uint64_t generation) {
      return serve(descriptor, generation, [this] { return std::make_unique<InnerDriver>(*board, host->boards); });
    });
    options.call_deadline = Seconds(20);  // tests that wait for a deadline shorten it
  }
  ~WorkerDriverTest() override {
    const SystemClock real;
    const MonoTime begin = real.now();
    driver.reset();
    // The driver waits 200 ms for a killed child and leaves one that has not ended by then: where the machine has no
    // time for it, it is still a killed one. Without such a wait nothing may be left.
    const bool waited = real.now() - begin >= Seconds(0.2);
    int status = 0;
    pid_t left = 0;
    while ((left = ::waitpid(-1, &status, WNOHANG)) >= 0 && waited && real.now() - begin < Seconds(20)) {
      if (left == 0) {
        ::poll(nullptr, 0, 1);
      } else {
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "a child was not killed";
      }
    }
    EXPECT_EQ(left, -1) << "a child is left behind";
    ::munmap(board, sizeof(Switchboard));
  }

  WorkerDriver& start() {
    driver = std::make_unique<WorkerDriver>("inner", host, clock, options);
    return *driver;
  }
  /// Reads until the answer satisfies, for at most 20 s of real time (a successor needs a moment to start).
  bool reads_until(const DeviceId& device, DeviceState state) {
    const SystemClock real;
    const MonoTime end = real.now() + Seconds(20);
    while (real.now() < end) {
      const auto reading = driver->read(device);
      if (reading && reading->state == state) return true;
      ::poll(nullptr, 0, 1);
    }
    return false;
  }

  Switchboard* board = nullptr;
  std::shared_ptr<ForkHost> host;
  VirtualClock clock;
  WorkerOptions options;
  std::unique_ptr<WorkerDriver> driver;
};

TEST_F(WorkerDriverTest, EveryCallPassesThroughWithItsArgumentsValuesAndErrors) {
  WorkerDriver& d = start();
  EXPECT_EQ(d.epoch()->driver_load, "load");
  const auto list = d.devices();
  ASSERT_TRUE(list) << list.error().message();
  ASSERT_EQ(list->size(), 2U);
  EXPECT_TRUE((*list)[1].shared);
  EXPECT_EQ(d.read(kA)->power_average.value_or(Watts(0)), Watts(100));
  EXPECT_EQ(d.read(kB)->power_average.value_or(Watts(0)), Watts(200));
  EXPECT_EQ(d.capabilities(kA)->read_power, Status::ok);
  EXPECT_TRUE(d.set_power_limit(kA, Milliwatts(250'001)));
  EXPECT_EQ(d.limits(kA)->enforced.value_or(Milliwatts(0)), Milliwatts(250'001));
  EXPECT_TRUE(d.lock_clocks(kA, {Hertz(1e9), Hertz(2e9)}));
  const auto refused = d.set_power_limit(kA, Milliwatts(99'999));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Error{ErrorCode::refused, "below the minimum", kA.text(), "ask for more"}));
  EXPECT_EQ(d.reset_clocks(kA).error().code, ErrorCode::unsupported);
  EXPECT_EQ(host->spawned, 3) << "one lister and one worker a GPU";
}

TEST_F(WorkerDriverTest, AnUnknownGpuGetsTheDriversRefusalAndNoProcess) {
  WorkerDriver& d = start();
  ASSERT_TRUE(d.devices());
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(d.read(DeviceId::of("GPU-x" + std::to_string(i))));
  EXPECT_EQ(host->spawned, 3);
}

TEST_F(WorkerDriverTest, TheDriversOwnErrorsAreNotTheWorkersFault) {
  board->on_list = Fault::driver_error;
  WorkerDriver& d = start();
  EXPECT_EQ(d.devices().error(), (Error{ErrorCode::unsupported, "no driver here", "", "load it"}));
  EXPECT_EQ(d.health({}).abandoned, 0U);
}

TEST_F(WorkerDriverTest, AHungCallCostsItsDeadlineOnceAndTheOtherGpusGoOn) {
  options.call_deadline = Seconds(1);  // the one wait of this test; a call that works is far below
  WorkerDriver& d = start();
  ASSERT_TRUE(d.devices());
  ASSERT_TRUE(reads_until(kA, DeviceState::ok));
  ASSERT_TRUE(reads_until(kB, DeviceState::ok));
  board->on_read_a = Fault::hang;
  const auto hung = d.read(kA);
  ASSERT_TRUE(hung);
  EXPECT_EQ(hung->state, DeviceState::hung);
  EXPECT_EQ(hung->power_average.status, Status::failed);
  EXPECT_EQ(d.health(kA).abandoned, 1U);
  EXPECT_TRUE(reads_until(kB, DeviceState::ok));
  // During the pause nothing is tried, so nothing is waited for.
  const int spawned = host->spawned;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(d.read(kA)->state, DeviceState::hung);
  const auto limits = d.limits(kA);
  ASSERT_FALSE(limits);
  EXPECT_THAT(limits.error().message(), HasSubstr("maximum"));
  EXPECT_FALSE(d.set_power_limit(kA, Milliwatts(300'000)));
  EXPECT_EQ(host->spawned, spawned);
  EXPECT_EQ(board->limit_a, 700'000) << "no write may reach a hung GPU later";
  const auto list = d.devices();
  ASSERT_TRUE(list);
  for (const auto& info : *list) {
    EXPECT_EQ(info.state, info.id == kA ? DeviceState::hung : DeviceState::ok);
  }
  // It gets well again: a successor of the next generation serves it.
  board->on_read_a = Fault::none;
  clock.advance(options.first_pause);
  EXPECT_TRUE(reads_until(kA, DeviceState::ok));
  EXPECT_EQ(d.health(kA).generation, 2U);
  EXPECT_EQ(d.health(kA).state, DeviceState::ok);
}

TEST_F(WorkerDriverTest, AnOpeningThatHangsIsAbandonedAtItsOwnDeadline) {
  board->on_open = Fault::hang;
  options.start_deadline = Seconds(0.05);
  WorkerDriver& d = start();
  const auto list = d.devices();
  ASSERT_FALSE(list);
  EXPECT_THAT(list.error().message(), HasSubstr("opening the driver"));
  EXPECT_EQ(d.health({}).state, DeviceState::hung);
}

TEST_F(WorkerDriverTest, AHungListerLeavesTheBoardsAsLastSeen) {
  options.call_deadline = Seconds(0.2);
  WorkerDriver& d = start();
  ASSERT_TRUE(d.devices());
  ASSERT_TRUE(reads_until(kA, DeviceState::ok));
  board->on_list = Fault::hang;
  const auto list = d.devices();
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(list->size(), 2U);
  EXPECT_EQ(d.health({}).state, DeviceState::hung);
}

TEST_F(WorkerDriverTest, ABoardThatHangsAtTheStartKeepsNoOtherFromItsJournal) {
  board->open_a_hangs = true;
  options.settle = Seconds(0.2);
  WorkerDriver& d = start();
  d.expect({kA, kB});
  const SystemClock real;
  const MonoTime end = real.now() + Seconds(20);
  while (!d.limits(kB) && real.now() < end) ::poll(nullptr, 0, 1);
  EXPECT_EQ(host->spawned, 2) << "nothing was listed";
  EXPECT_TRUE(d.set_power_limit(kB, Milliwatts(300'000)));
  EXPECT_EQ(board->limit_a, 300'000);
  EXPECT_EQ(d.epoch()->driver_load, "load");
  EXPECT_FALSE(d.limits(kA));
  EXPECT_EQ(host->spawned, 2);
}

TEST_F(WorkerDriverTest, BoardsAreListedOneByOneWhileOneHangsFromTheStart) {
  board->open_a_hangs = true;
  options.start_deadline = Seconds(0.5);
  WorkerDriver& d = start();
  d.expect({kA});
  const auto state_of = [&](const DeviceId& device) -> std::optional<DeviceState> {
    (void)d.limits(device);  // a board that hung is well again when it has answered
    const auto list = d.devices();
    if (!list) return std::nullopt;
    for (const auto& info : *list) {
      if (info.id == device) return info.state;
    }
    return std::nullopt;
  };
  const auto until = [&](const DeviceId& device, std::optional<DeviceState> state, Seconds each = {}) {
    const SystemClock real;
    const MonoTime end = real.now() + Seconds(20);
    while (real.now() < end) {
      if (state_of(device) == state) return true;
      clock.advance(each);
      ::poll(nullptr, 0, 1);
    }
    return false;
  };
  EXPECT_TRUE(until(kB, DeviceState::ok));
  EXPECT_TRUE(until(kA, DeviceState::hung)) << "by the name it is expected under";
  EXPECT_EQ(d.devices()->size(), 2U);
  EXPECT_TRUE(reads_until(kB, DeviceState::ok));
  board->open_a_hangs = false;
  EXPECT_TRUE(until(kA, DeviceState::ok, Seconds(1))) << "successors come after pauses";
  EXPECT_EQ(d.devices()->size(), 2U);
}

TEST_F(WorkerDriverTest, ABoardThatHangsAtTheStartAndNobodyExpectsIsListedByItsPlace) {
  board->open_a_hangs = true;
  options.start_deadline = Seconds(0.5);
  WorkerDriver& d = start();
  const SystemClock real;
  const MonoTime end = real.now() + Seconds(20);
  Result<std::vector<DeviceInfo>> list = d.devices();
  const auto settled = [&] {
    return list && list->size() == 2 && list->front().id == kB && list->back().state == DeviceState::hung;
  };
  while (!settled() && real.now() < end) list = d.devices();
  ASSERT_TRUE(settled());
  EXPECT_EQ(list->back().id, unidentified_device(1));
  EXPECT_EQ(list->back().name, "GPU at index 0");
  const auto reading = d.read(unidentified_device(1));
  ASSERT_TRUE(reading) << reading.error().message();
  EXPECT_EQ(reading->state, DeviceState::hung);
}

TEST_F(WorkerDriverTest, WhoWaitsForTheListIsToldBoardByBoardWhileTheListerStillOpens) {
  board->open_a_hangs = true;
  options.list_patience = options.settle = Seconds(0.1);
  WorkerDriver& d = start();
  const SystemClock real;
  const MonoTime end = real.now() + Seconds(20);
  Result<std::vector<DeviceInfo>> list = d.devices();
  while (!(list && list->front().id == kB) && real.now() < end) list = d.devices();
  ASSERT_TRUE(list && list->size() == 2) << (list ? "" : list.error().message());
  EXPECT_EQ(list->front().state, DeviceState::ok);
  EXPECT_EQ(list->back().id, unidentified_device(1));
  EXPECT_EQ(list->back().state, DeviceState::not_ready) << "nobody has waited for its opening to its end";
  EXPECT_EQ(d.health({}).abandoned, 0U);
}

TEST_F(WorkerDriverTest, AHungListerHidesNoLoadingOfTheDriver) {
  options.call_deadline = Seconds(0.2);
  WorkerDriver& d = start();
  ASSERT_TRUE(d.devices());
  ASSERT_TRUE(reads_until(kB, DeviceState::ok));
  board->on_list = Fault::hang;
  ASSERT_TRUE(d.devices());
  ASSERT_EQ(d.health({}).state, DeviceState::hung);
  const auto epoch = d.epoch();
  ASSERT_TRUE(epoch) << epoch.error().message();
  EXPECT_EQ(epoch->driver_load, "load");
}

TEST_F(WorkerDriverTest, ABoardThatHangsFromTheStartHidesNoLoadingOfTheDriver) {
  board->open_a_hangs = true;
  options.start_deadline = Seconds(0.5);
  WorkerDriver& d = start();
  const SystemClock real;
  const MonoTime end = real.now() + Seconds(20);
  Result<DriverEpoch> epoch = d.epoch();
  while (!epoch && real.now() < end) epoch = d.epoch();
  ASSERT_TRUE(epoch) << epoch.error().message();
  EXPECT_EQ(epoch->driver_load, "load");
}

TEST_F(WorkerDriverTest, AWorkerWithoutAProcessorIsGivenTimeButNotForEver) {
  options.call_deadline = Seconds(0.2);
  WorkerDriver& d = start();
  ASSERT_TRUE(reads_until(kA, DeviceState::ok));
  board->on_read_a = Fault::slow;
  host->starved = true;
  EXPECT_EQ(d.read(kA)->state, DeviceState::ok) << "half a second, in which it was ready all the time";
  board->on_read_a = Fault::hang;
  EXPECT_EQ(d.read(kA)->state, DeviceState::hung);
  EXPECT_EQ(d.health(kA).abandoned, 1U);
}

TEST_F(WorkerDriverTest, ThePulseOfAChildIsTheKernels) {
  const pid_t sleeper = ::fork();
  if (sleeper == 0) {
    for (;;) ::pause();
  }
  const SystemClock real;
  const MonoTime end = real.now() + Seconds(20);
  while (host->pulse(sleeper).ready && real.now() < end) ::poll(nullptr, 0, 1);
  EXPECT_FALSE(host->pulse(sleeper).ready);
  EXPECT_TRUE(host->pulse(::getpid()).ready);
  EXPECT_GT(host->pulse(::getpid()).ran, Seconds(0));
  ::kill(sleeper, SIGKILL);
  ::waitpid(sleeper, nullptr, 0);
}

TEST_F(WorkerDriverTest, AKilledWorkerIsNoticedAndReplaced) {
  WorkerDriver& d = start();
  ASSERT_TRUE(d.devices());
  ASSERT_TRUE(reads_until(kA, DeviceState::ok));
  ASSERT_EQ(::kill(board->reader_of_a, SIGKILL), 0);
  const auto dead = d.read(kA);
  ASSERT_TRUE(dead);
  EXPECT_EQ(dead->state, DeviceState::not_ready);
  clock.advance(options.first_pause);
  EXPECT_TRUE(reads_until(kA, DeviceState::ok));
  EXPECT_EQ(d.health(kA).generation, 2U);
}

TEST_F(WorkerDriverTest, AWorkerThatDiesInTheCallIsNoticedBeforeTheDeadline) {
  WorkerDriver& d = start();
  ASSERT_TRUE(d.devices());
  board->on_read_a = Fault::die;
  EXPECT_EQ(d.read(kA)->state, DeviceState::not_ready) << "a death is an end of file, not a silence";
}

TEST_F(WorkerDriverTest, AReadingOfAnotherGpuIsRefused) {
  WorkerDriver& d = start();
  ASSERT_TRUE(d.devices());
  board->on_read_a = Fault::other_device;
  EXPECT_FALSE(d.read(kA));
}

TEST_F(WorkerDriverTest, PausesGrowAndManyGenerationsLeakNothing) {
  WorkerDriver& d = start();
  ASSERT_TRUE(d.devices());
  ASSERT_TRUE(reads_until(kB, DeviceState::ok));
  board->on_read_a = Fault::die;
  ASSERT_EQ(d.read(kA)->state, DeviceState::not_ready);
  const std::size_t before = open_descriptors();
  const SystemClock real;
  const MonoTime end = real.now() + Seconds(60);
  while (d.health(kA).generation < 40 && real.now() < end) {
    (void)d.read(kA);
    clock.advance(Seconds(2));
    ::poll(nullptr, 0, 1);
  }
  EXPECT_EQ(d.health(kA).generation, 40U);
  EXPECT_LE(open_descriptors(), before + 1) << "at most the present worker's descriptor";
  // 40 generations with a pause of 60 s from the seventh on.
  EXPECT_GE(clock.now().seconds(), 33 * 60.0);
  EXPECT_EQ(d.read(kB)->state, DeviceState::ok);
}

TEST_F(WorkerDriverTest, WithTooManyStuckWorkersNoMoreAreStarted) {
  options.call_deadline = Seconds(0.02);
  WorkerDriver& d = start();
  const SystemClock real;
  board->on_list = Fault::none;
  while (!d.devices()) clock.advance(Seconds(60));
  board->on_read_a = Fault::hang;
  host->stuck = true;
  const MonoTime end = real.now() + Seconds(60);
  while (d.health(kA).stuck < options.max_stuck && real.now() < end) {
    (void)d.read(kA);
    clock.advance(options.last_pause);
  }
  EXPECT_EQ(d.health(kA).stuck, options.max_stuck);
  const std::uint64_t generation = d.health(kA).generation;
  for (int i = 0; i < 20; ++i) {
    clock.advance(options.last_pause);
    EXPECT_NE(d.read(kA)->state, DeviceState::ok);
  }
  EXPECT_EQ(d.health(kA).generation, generation);
  EXPECT_THAT(d.limits(kA).error().message(), HasSubstr("stuck"));
  host->stuck = false;  // the kernel let go
  board->on_read_a = Fault::none;
  clock.advance(options.last_pause);
  driver.reset();
}

// --- workers that speak nonsense ---

std::string hello(std::uint64_t generation) { return encode({Kind::hello, Operation::none, generation, 0, {}}); }

bool say(int descriptor, const std::string& bytes) {
  return ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

/// Says hello, then answers each request with what `reply` makes of it.
ForkHost::Body liar(std::function<std::string(const Message&)> reply) {
  return [reply = std::move(reply)](int descriptor, std::uint64_t generation) {
    say(descriptor, hello(generation));
    std::string bytes(kMaxMessageBytes, '\0');
    for (;;) {
      const ssize_t size = ::recv(descriptor, bytes.data(), bytes.size(), 0);
      if (size <= 0) return 0;
      const auto request = decode(std::string_view(bytes).substr(0, static_cast<std::size_t>(size)));
      if (!request || !say(descriptor, reply(*request))) return 1;
    }
  };
}

std::string honest(const Message& m) {
  return encode({Kind::value, m.operation, m.generation, m.sequence, put(DriverEpoch{"b", "l", "v"})});
}

struct Lie {
  const char* name;
  std::function<std::string(const Message&)> reply;
};
class LiarTest : public WorkerDriverTest, public testing::WithParamInterface<Lie> {};

TEST_P(LiarTest, IsRefusedAndReplaced) {
  host->body = liar(GetParam().reply);
  WorkerDriver& d = start();
  const auto epoch = d.epoch();
  ASSERT_FALSE(epoch);
  EXPECT_EQ(d.health({}).abandoned, 1U);
  host->body = liar(honest);
  clock.advance(options.first_pause);
  const SystemClock real;
  const MonoTime end = real.now() + Seconds(20);
  while (!d.epoch() && real.now() < end) ::poll(nullptr, 0, 1);
  EXPECT_EQ(d.epoch()->boot_id, "b");
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, LiarTest,
    testing::Values(Lie{"LateAnswerOfAnAbandonedGeneration", [](Message m) { return m.generation -= 1, honest(m); }},
                    Lie{"AnswerToAnEarlierQuestion", [](Message m) { return m.sequence -= 1, honest(m); }},
                    Lie{"AnswerToAnotherOperation",
                        [](Message m) { return m.operation = Operation::limits, honest(m); }},
                    Lie{"HalfAMessage", [](const Message& m) { return honest(m).substr(0, 30); }},
                    Lie{"LessThanAHeader", [](const Message& m) { return honest(m).substr(0, 5); }},
                    Lie{"Noise", [](const Message&) { return std::string(500, '\xA5'); }},
                    Lie{"TooLong", [](const Message& m) { return honest(m) + std::string(2 * kMaxMessageBytes, 'x'); }},
                    Lie{"ASecondHello", [](const Message& m) { return hello(m.generation); }},
                    Lie{"FlippedPayload",
                        [](const Message& m) {
                          std::string bytes = honest(m);
                          bytes.back() = static_cast<char>(bytes.back() ^ 1);
                          return bytes;
                        }}),
    [](const auto& lie) { return std::string(lie.param.name); });

TEST_F(WorkerDriverTest, AWorkerThatNeverSaysHelloOrSaysAnotherWordIsRefused) {
  host->body = [](int descriptor, std::uint64_t generation) {
    say(descriptor, encode({Kind::value, Operation::none, generation, 0, {}}));
    for (;;) ::pause();
    return 0;
  };
  WorkerDriver& d = start();
  EXPECT_THAT(d.epoch().error().message(), HasSubstr("hello"));
  host->body = [](int, std::uint64_t) { return 0; };
  clock.advance(options.first_pause);
  (void)d.epoch();
  EXPECT_FALSE(d.epoch());
}

TEST_F(WorkerDriverTest, AValueWithAMalformedBodyIsAnError) {
  host->body = liar([](const Message& m) { return encode({Kind::value, m.operation, m.generation, m.sequence, "x"}); });
  WorkerDriver& d = start();
  EXPECT_FALSE(d.epoch());
  EXPECT_FALSE(d.devices());
}

// --- the end of the owner ---

TEST_F(WorkerDriverTest, WorkersEndWithTheirOwnerEvenInTheMiddleOfACall) {
  int lives[2];
  ASSERT_EQ(::pipe(lives), 0);
  board->on_read_a = Fault::hang;
  options.call_deadline = Seconds(600);
  const pid_t owner = ::fork();
  if (owner == 0) {
    ::close(lives[0]);  // the workers inherit the other end: it closes with the last of them
    WorkerDriver& d = start();
    (void)d.devices();
    (void)d.read(kA);
    ::_exit(0);
  }
  ::close(lives[1]);
  const SystemClock real;
  const MonoTime end = real.now() + Seconds(20);
  while (board->reader_of_a == 0 && real.now() < end) ::poll(nullptr, 0, 1);
  ASSERT_NE(board->reader_of_a, 0);
  pollfd wait{lives[0], POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 0), 0) << "they live while the owner lives";
  ASSERT_EQ(::kill(owner, SIGKILL), 0);
  EXPECT_EQ(::waitpid(owner, nullptr, 0), owner);
  EXPECT_EQ(::poll(&wait, 1, 20'000), 1) << "all ends of the pipe closed";
  ::close(lives[0]);
}

TEST_F(WorkerDriverTest, TheSignalsThatStopTheOwnerDoNotStopItsWorkers) {
  WorkerDriver& d = start();
  ASSERT_TRUE(d.devices());
  ASSERT_TRUE(reads_until(kA, DeviceState::ok));
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ASSERT_EQ(::kill(board->reader_of_a, signal), 0);
  EXPECT_EQ(d.read(kA)->state, DeviceState::ok) << "limits must still be restored through it";
  EXPECT_EQ(d.health(kA).generation, 1U);
}

// --- the real program ---

TEST(WorkerProgram, IsThisProgramExecutedAgain) {
  SystemClock clock;
  const std::size_t before = open_descriptors();
  {
    const auto driver = make_nvml_in_workers("libflyball-no-such-library.so.1", clock);
    const auto list = driver->devices();
    ASSERT_FALSE(list);
    EXPECT_EQ(list.error().code, ErrorCode::unsupported) << list.error().message();
    EXPECT_THAT(list.error().message(), HasSubstr("libflyball-no-such-library.so.1"));
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(WorkerProgram, IsNotStartedByHand) {
  std::string words[] = {"flyball-guard", "worker", "x"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  EXPECT_TRUE(is_worker_program(3, argv));
  EXPECT_EQ(run_worker_program(3, argv), 2);
  EXPECT_FALSE(is_worker_program(1, argv));
}

}  // namespace
}  // namespace flyball::worker
