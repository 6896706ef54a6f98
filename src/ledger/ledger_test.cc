#include "ledger/ledger.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/random.h"
#include "base/temp_dir.h"
#include "ledger/sqlite.h"

namespace flyball::ledger {
namespace {

using namespace literals;

constexpr WallTime kStart(1'767'225'600'000'000'000);

RunStart start_of_run(std::uint64_t seed = 7) {
  return {"twin test", "sweep", seed, kStart, kStart + 1_s, "0.1.0", R"({"scenario":"test"})"};
}

/// Two GPUs, one write, one finding in each.
DecisionEntry decision(std::uint64_t number) {
  DecisionEntry entry;
  entry.number = number;
  entry.wall = kStart + 10_s * static_cast<double>(number);
  entry.observation.interval = 10_s;
  entry.observation.phase = Phase::training;
  entry.observation.tokens = number * 1000;
  entry.observation.tokens_per_second = 100.25;
  for (const char* name : {"GPU-a", "GPU-b"}) {
    GpuObservation gpu;
    gpu.device = DeviceId::of(name);
    gpu.power = Watts(200.5);
    gpu.limit_enforced = 225'000_mW;
    gpu.coverage_fraction = 1;
    entry.observation.gpus.push_back(gpu);
    entry.proposal.gpus.push_back({gpu.device, 200'000_mW, {}});
  }
  entry.proposal.reason = "trying 200 W";
  entry.writes.push_back({DeviceId::of("GPU-a"), 200'000_mW, 200'000_mW, 200'000_mW, "applied", ""});
  entry.findings.push_back({Severity::warning, "test.finding", DeviceId::of("GPU-b"), "what", "remedy", kStart, 0.5});
  return entry;
}

RunResult result_of_run() {
  RunResult result;
  result.account = {Joules(1e6), Seconds(3600), 5000, 0.99, Scope::board, "counter", 1.5, 2.5};
  result.counterfactual = Account{Joules(1.1e6), Seconds(3600), 5010, 1, Scope::board, "counter", 1.6, 2.6};
  result.saved_fraction = Estimate{0.09, 0.08, 0.10, 0.9};
  result.saved_basis = "twin";
  SwitchbackResult s;
  s.verdict = "saves";
  s.reason = "why";
  s.saved_fraction = Estimate{0.1, 0.09, 0.11, 0.95};
  s.loss_run_fraction = Estimate{0.01, 0.005, 0.015, 0.95};
  s.half_width_fraction = 0.01;
  s.p_value = 0.002;
  s.block = Seconds(120);
  s.blocks_control = 90;
  s.blocks_original = 5;
  s.control_fraction = 0.95;
  s.discarded_fraction = 0.1;
  result.switchback = s;
  result.writes = 3;
  result.restored = true;
  return result;
}

TEST(Ledger, KeepsARunWhole) {
  TempDir dir;
  auto ledger = Ledger::open(dir.file("ledger.db"));
  ASSERT_TRUE(ledger) << ledger.error().message();
  const std::uint64_t seed = 18'446'744'073'709'551'615ULL;
  const auto run = ledger->begin_run(start_of_run(seed));
  ASSERT_TRUE(run);
  for (std::uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(ledger->add_decision(*run, decision(i)));
  EXPECT_EQ(ledger->run(*run)->state, RunState::running);
  EXPECT_FALSE(ledger->run(*run)->result.has_value());
  ASSERT_TRUE(ledger->end_run(*run, RunState::done, kStart + 3600_s, result_of_run()));

  const auto row = ledger->run(*run);
  ASSERT_TRUE(row) << row.error().message();
  EXPECT_EQ(row->state, RunState::done);
  EXPECT_EQ(row->start.seed, seed);
  EXPECT_EQ(row->start.recorded, kStart + 1_s);
  EXPECT_EQ(row->decisions, 3u);
  ASSERT_TRUE(row->result);
  EXPECT_EQ(row->result->account.energy, Joules(1e6));
  EXPECT_EQ(row->result->account.method, "counter");
  EXPECT_EQ(row->result->counterfactual->tokens, 5010);
  EXPECT_DOUBLE_EQ(row->result->saved_fraction->high, 0.10);
  EXPECT_FALSE(row->result->loss_fraction.has_value());
  EXPECT_TRUE(row->result->restored);

  const auto rows = ledger->decisions(*run);
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 6u);
  EXPECT_EQ((*rows)[0].device.text(), "GPU-a");
  EXPECT_EQ(*(*rows)[0].power, Watts(200.5));
  EXPECT_FALSE((*rows)[0].energy.ok()) << "missing stays missing";
  EXPECT_EQ(*(*rows)[0].asked, 200'000_mW);
  EXPECT_EQ(ledger->findings(*run)->size(), 3u);
  EXPECT_TRUE(ledger->check());
  EXPECT_EQ(ledger->runs()->size(), 1u);
}

TEST(Ledger, KeepsWhatTheSwitchbackMeasured) {
  TempDir dir;
  auto ledger = Ledger::open(dir.file("ledger.db"));
  ASSERT_TRUE(ledger);
  const auto with = ledger->begin_run(start_of_run()), without = ledger->begin_run(start_of_run());
  ASSERT_TRUE(with && without);
  RunResult result = result_of_run();
  ASSERT_TRUE(ledger->end_run(*with, RunState::done, kStart + 3600_s, result));
  result.switchback.reset();
  ASSERT_TRUE(ledger->end_run(*without, RunState::done, kStart + 3600_s, result));
  const auto row = ledger->run(*with);
  ASSERT_TRUE(row) << row.error().message();
  ASSERT_TRUE(row->result->switchback);
  const SwitchbackResult& s = *row->result->switchback;
  EXPECT_EQ(s.verdict, "saves");
  EXPECT_EQ(s.saved_fraction->high, 0.11);
  EXPECT_FALSE(s.loss_fraction);
  EXPECT_EQ(s.loss_run_fraction->low, 0.005);
  EXPECT_EQ(s.block, Seconds(120));
  EXPECT_EQ(s.blocks_control, 90u);
  EXPECT_EQ(s.blocks_original, 5u);
  EXPECT_EQ(s.control_fraction, 0.95);
  EXPECT_EQ(s.needed, Seconds(0));
  EXPECT_FALSE(ledger->run(*without)->result->switchback);
}

TEST(Ledger, AnOlderFileIsReadAsItIsAndBroughtUpToDateByAWriter) {
  TempDir dir;
  const std::string path = dir.file("ledger.db");
  RunId run = 0;
  {
    auto ledger = Ledger::open(path);
    ASSERT_TRUE(ledger);
    run = ledger->begin_run(start_of_run()).value();
    RunResult result = result_of_run();
    result.switchback.reset();
    ASSERT_TRUE(ledger->end_run(run, RunState::done, kStart + 3600_s, result));
  }
  {
    auto database = Database::open(path, Database::Mode::read_write);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->execute("DROP TABLE switchbacks; PRAGMA user_version = 1"));
  }
  {
    auto reader = Ledger::open_read_only(path);
    ASSERT_TRUE(reader);
    const auto row = reader->run(run);
    ASSERT_TRUE(row) << row.error().message();
    EXPECT_FALSE(row->result->switchback);
  }
  auto writer = Ledger::open(path);
  ASSERT_TRUE(writer) << writer.error().message();
  ASSERT_TRUE(writer->end_run(run, RunState::done, kStart + 3600_s, result_of_run()));
  EXPECT_TRUE(writer->run(run)->result->switchback);
}

TEST(Ledger, KeepsBaselinesByTheirHashAndNeverChangesOne) {
  TempDir dir;
  auto ledger = Ledger::open(dir.file("ledger.db")).value();
  BaselineRow one{"aa11", "", "in1", "plant x", "first", "0.1.0", "operator", kStart, kStart + 5_s, "text 1"};
  BaselineRow two{"aa22", "aa11", "in2", "plant x", "drift", "0.1.0", "operator", kStart + 1_s, kStart + 9_s, "text 2"};
  ASSERT_TRUE(ledger.add_baseline(one));
  ASSERT_TRUE(ledger.add_baseline(two));
  BaselineRow touched = one;
  touched.content = "other";
  ASSERT_TRUE(ledger.add_baseline(touched));
  EXPECT_EQ(ledger.baseline("aa1").value().content, "text 1");
  EXPECT_EQ(ledger.baseline("aa11").value().parent, "");
  EXPECT_EQ(ledger.baseline("aa22").value().valid_from, two.valid_from);
  EXPECT_FALSE(ledger.baseline("aa"));
  EXPECT_FALSE(ledger.baseline("bb"));
  EXPECT_FALSE(ledger.baseline(""));
  const auto all = ledger.baselines("plant x").value();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].hash, "aa22");
  EXPECT_TRUE(ledger.baselines("plant y").value().empty());
  EXPECT_TRUE(ledger.check());
}

TEST(Ledger, FileIsForTheOperatorsGroupOnly) {
  TempDir dir;
  ASSERT_TRUE(Ledger::open(dir.file("ledger.db")));
  struct stat info {};
  ASSERT_EQ(::stat(dir.file("ledger.db").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777 & ~0640u, 0u);
}

TEST(Ledger, AReaderSeesEachDecisionWhileTheWriterWrites) {
  TempDir dir;
  auto writer = Ledger::open(dir.file("ledger.db"));
  const auto run = writer->begin_run(start_of_run());
  auto reader = Ledger::open_read_only(dir.file("ledger.db"));
  ASSERT_TRUE(reader) << reader.error().message();
  for (std::uint64_t i = 1; i <= 5; ++i) {
    ASSERT_TRUE(writer->add_decision(*run, decision(i)));
    EXPECT_EQ(reader->run(*run)->decisions, i);
  }
  EXPECT_FALSE(reader->begin_run(start_of_run())) << "a reader must not write";
}

TEST(Ledger, ADecisionThatFailsLeavesNothingBehind) {
  TempDir dir;
  auto ledger = Ledger::open(dir.file("ledger.db"));
  const auto run = ledger->begin_run(start_of_run());
  auto twice = decision(1);
  twice.observation.gpus[1].device = twice.observation.gpus[0].device;
  EXPECT_FALSE(ledger->add_decision(*run, twice));
  EXPECT_EQ(ledger->run(*run)->decisions, 0u);
  EXPECT_TRUE(ledger->add_decision(*run, decision(1))) << "and the next one goes on";
  EXPECT_FALSE(ledger->add_decision(*run + 1, decision(1))) << "no decisions without a run";
  EXPECT_FALSE(ledger->run(*run + 1));
}

TEST(Ledger, RefusesWhatIsNotALedger) {
  TempDir dir;
  std::ofstream(dir.file("text.db")) << "this is no database, and it is long enough to be looked at as one. "
                                        "SQLite reads a header of a hundred bytes.";
  const auto text = Ledger::open(dir.file("text.db"));
  ASSERT_FALSE(text);
  EXPECT_FALSE(text.error().remedy.empty());

  auto other = Database::open(dir.file("other.db"), Database::Mode::read_write);
  ASSERT_TRUE(other && other->execute("CREATE TABLE t (x)"));
  const auto foreign = Ledger::open(dir.file("other.db"));
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, ErrorCode::input);

  ASSERT_TRUE(Ledger::open(dir.file("newer.db")));
  auto newer = Database::open(dir.file("newer.db"), Database::Mode::read_write);
  ASSERT_TRUE(newer->execute("PRAGMA user_version = 99"));
  const auto refused = Ledger::open(dir.file("newer.db"));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("99"), std::string::npos);

  EXPECT_FALSE(Ledger::open_read_only(dir.file("absent.db")));
}

TEST(Ledger, AReadOnlyFolderIsAClearError) {
  TempDir dir;
  ASSERT_EQ(::chmod(dir.path().c_str(), 0555), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(2);
    const auto ledger = Ledger::open(dir.file("ledger.db"));
    ::_exit(!ledger && ledger.error().message().find("--state-dir") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ::chmod(dir.path().c_str(), 0755);
}

TEST(Ledger, ADiskThatIsFullIsAnErrorAndTheFileStaysSound) {
  TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) {
    auto ledger = Ledger::open(dir.file("ledger.db"));
    const auto run = ledger->begin_run(start_of_run());
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit little{256 * 1024, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &little);
    Result<> added;
    for (std::uint64_t i = 1; added && i < 100'000; ++i) added = ledger->add_decision(*run, decision(i));
    if (added || added.error().remedy.empty()) ::_exit(1);
    const rlimit enough{RLIM_INFINITY, RLIM_INFINITY};
    ::setrlimit(RLIMIT_FSIZE, &enough);
    ::_exit(ledger->end_run(*run, RunState::failed, kStart, result_of_run()) ? 0 : 3);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  auto ledger = Ledger::open(dir.file("ledger.db"));
  ASSERT_TRUE(ledger);
  EXPECT_TRUE(ledger->check());
  EXPECT_EQ(ledger->runs()->at(0).state, RunState::failed);
}

TEST(Database, FullNamesTheRemedy) {
  TempDir dir;
  auto database = Database::open(dir.file("small.db"), Database::Mode::read_write);
  ASSERT_TRUE(database->execute("PRAGMA max_page_count = 2; CREATE TABLE t (x)"));
  const auto full = database->execute("INSERT INTO t VALUES (zeroblob(100000))");
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().remedy.find("free space"), std::string::npos) << full.error().message();
}

/// Writes decisions until it is killed and tells each commit by a byte.
[[noreturn]] void write_until_killed(const std::string& path, int pipe) {
  auto ledger = Ledger::open(path);
  const auto run = ledger->begin_run(start_of_run());
  for (std::uint64_t i = 1;; ++i) {
    if (!ledger->add_decision(*run, decision(i)) || ::write(pipe, "+", 1) != 1) ::_exit(1);
  }
}

TEST(Ledger, KilledAtAnyMomentItHoldsWholeDecisions) {
  Random random(1);
  for (int round = 0; round < 8; ++round) {
    TempDir dir;
    const std::string path = dir.file("ledger.db");
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      write_until_killed(path, ends[1]);
    }
    ::close(ends[1]);
    const auto until = 1 + random.below(300);
    std::uint64_t committed = 0;
    char byte = 0;
    while (committed < until && ::read(ends[0], &byte, 1) == 1) ++committed;
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ::waitpid(child, nullptr, 0);
    ::close(ends[0]);
    ASSERT_EQ(committed, until);

    auto ledger = Ledger::open(path);
    ASSERT_TRUE(ledger) << ledger.error().message();
    EXPECT_TRUE(ledger->check());
    const auto row = ledger->runs()->at(0);
    EXPECT_EQ(row.state, RunState::running);
    EXPECT_GE(row.decisions, committed);
    EXPECT_EQ(ledger->decisions(row.id)->size(), row.decisions * 2);
    EXPECT_EQ(ledger->findings(row.id)->size(), row.decisions);
    EXPECT_TRUE(ledger->add_decision(row.id, decision(row.decisions + 1)));
  }
}

}  // namespace
}  // namespace flyball::ledger
