#include "control/replay_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/memory_filesystem.h"
#include "base/presets.h"
#include "control/board_reader.h"
#include "control/run_recorder.h"
#include "control/sampler.h"
#include "control/twin_progress.h"
#include "control/virtual_run.h"
#include "device/twin/twin_driver.h"
#include "series/recording_writer.h"
#include "twin/scenario.h"

namespace flyball::control {
namespace {

using namespace literals;

constexpr WallTime kStart(1'767'225'600'000'000'000);

/// A run of the loop that was recorded, as `flyball run --record` does.
struct Recorded {
  MemoryFilesystem disk;
  VirtualRun run;
  std::string& bytes() { return disk.content("/run.fbr"); }
};

std::unique_ptr<Recorded> record_run(const std::string& policy, std::uint64_t seed, Seconds duration,
                                     const std::string& scenario_name = "v100-bert", std::optional<Watts> budget = {}) {
  auto made = std::make_unique<Recorded>();
  auto scenario = twin::load_scenario(system_filesystem(), *presets_folder(), scenario_name);
  EXPECT_TRUE(scenario) << scenario.error().message();
  scenario->parameters.seed = seed;
  const auto writer = series::RecordingWriter::open(made->disk, "/run.fbr",
                                                    {kStart, MonoTime(), "", "test", scenario->plant(), Seconds(0.5)});
  EXPECT_TRUE(writer);
  VirtualRunOptions options;
  options.build = [scenario = *scenario] { return scenario.build(); };
  options.policy = policy;
  options.objective.max_loss_fraction = 0.012;
  options.duration = duration;
  options.seed = seed;
  options.started = options.recorded = kStart;
  options.recording = writer->get();
  options.budget = budget;
  auto done = run_virtual(options, nullptr);
  EXPECT_TRUE(done) << done.error().message();
  made->run = *std::move(done);
  return made;
}

Result<ReplayRun> replay(const std::string& bytes, const ReplayRunOptions& options = {}) {
  return replay_run([&] { return raw_bytes_in_memory(bytes); }, "run", {}, options);
}

ReplayRunOptions with_policy(const std::string& policy) {
  ReplayRunOptions options;
  options.policy = policy;
  options.objective.max_loss_fraction = 0.012;
  return options;
}

TEST(ReplayRun, ARecordedRunComesOutAgainToTheLastBit) {
  for (const char* policy : {"none", "static:200W", "sweep"}) {
    SCOPED_TRACE(policy);
    const auto recorded = record_run(policy, 3, 3600_s);
    const auto again = replay(recorded->bytes());
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_EQ(again->policy, policy);
    EXPECT_EQ(again->seed, 3u);
    EXPECT_EQ(again->decisions, recorded->run.decisions);
    EXPECT_EQ(again->frozen, recorded->run.frozen);
    ASSERT_TRUE(again->audit);
    EXPECT_EQ(again->audit->recorded, recorded->run.decisions);
    EXPECT_EQ(again->audit->identical, recorded->run.decisions) << again->audit->first_difference;
    EXPECT_EQ(again->audit->first_difference, "");
    EXPECT_EQ(again->account.energy, recorded->run.result.account.energy);
    EXPECT_EQ(again->account.tokens, recorded->run.result.account.tokens);
    EXPECT_EQ(again->findings.size(), recorded->run.result.findings.size());
  }
}

TEST(ReplayRun, ARunUnderABudgetComesOutAgain) {
  const auto recorded = record_run("model", 3, 1800_s, "pretrain-8", Watts(2800));
  const auto again = replay(recorded->bytes());
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->policy, "budget:2800W:model");
  ASSERT_TRUE(again->audit);
  EXPECT_EQ(again->audit->identical, recorded->run.decisions) << again->audit->first_difference;
}

TEST(ReplayRun, TwiceTheSameAndWithAnotherPolicyProposalsButNoSaving) {
  const auto recorded = record_run("none", 5, 3600_s);
  const auto first = replay(recorded->bytes(), with_policy("static:150W"));
  const auto second = replay(recorded->bytes(), with_policy("static:150W"));
  ASSERT_TRUE(first && second) << first.error().message();
  EXPECT_EQ(first->digest, second->digest);
  EXPECT_FALSE(first->digest.empty());
  EXPECT_FALSE(first->audit) << "another policy than the recorded one has nothing to be compared with";
  ASSERT_EQ(first->wishes.size(), 1u);
  EXPECT_EQ(first->wishes[0].number, 1u);
  EXPECT_EQ(first->wishes[0].power_limit, Milliwatts(150'000));
  EXPECT_EQ(first->wishes[0].allowed, Milliwatts(150'000));
  EXPECT_EQ(*first->wishes[0].in_force, Milliwatts(250'000));
  EXPECT_EQ(first->account.energy, recorded->run.result.account.energy) << "the past is as it was";
  EXPECT_NE(replay(recorded->bytes(), with_policy("static:160W"))->digest, first->digest);
  const auto below = replay(recorded->bytes(), with_policy("static:50W"));
  EXPECT_EQ(below->wishes[0].power_limit, Milliwatts(50'000));
  EXPECT_EQ(below->wishes[0].allowed, Milliwatts(100'000));
}

TEST(ReplayRun, AChangedReadingIsFoundByTheAudit) {
  // The same run with another seed: its readings differ, its wishes do not.
  const auto recorded = record_run("static:200W", 1, 600_s);
  const auto other = record_run("static:200W", 2, 600_s);
  series::RecordingSink mine, theirs;
  ASSERT_TRUE(series::read_bytes(raw_bytes_in_memory(recorded->bytes()), "a", {}, mine));
  ASSERT_TRUE(series::read_bytes(raw_bytes_in_memory(other->bytes()), "b", {}, theirs));
  MemoryFilesystem disk;
  const auto writer =
      *series::RecordingWriter::open(disk, "/mixed.fbr", {kStart, MonoTime(), "", "test", "mixed", Seconds(0.5)});
  const auto mono = [](WallTime at) { return MonoTime(at.nanoseconds() - kStart.nanoseconds()); };
  for (std::size_t i = 0; i < mine.recording.series.size(); ++i) {
    const auto number = writer->begin_series(mine.recording.series[i].key);
    for (const series::Point& p : theirs.recording.series[i].points)
      ASSERT_TRUE(writer->point(number, mono(p.at), p.value, p.status));
  }
  for (const series::Event& e : mine.recording.events) ASSERT_TRUE(writer->event(mono(e.at), e));
  ASSERT_TRUE(writer->close(mono(kStart), "done"));
  const auto again = replay(disk.content("/mixed.fbr"));
  ASSERT_TRUE(again) << again.error().message();
  ASSERT_TRUE(again->audit);
  EXPECT_EQ(again->audit->recorded, 60u);
  EXPECT_LT(again->audit->identical, 60u);
  EXPECT_NE(again->audit->first_difference.find("observed="), std::string::npos) << again->audit->first_difference;
}

/// The same recording with what `bend` makes of each point.
std::string rewritten(const std::string& bytes,
                      const std::function<void(const series::SeriesKey&, series::Point&)>& bend) {
  series::RecordingSink sink;
  EXPECT_TRUE(series::read_bytes(raw_bytes_in_memory(bytes), "a", {}, sink));
  MemoryFilesystem disk;
  const auto writer =
      *series::RecordingWriter::open(disk, "/bent.fbr", {kStart, MonoTime(), "", "test", "bent", Seconds(0.5)});
  const auto mono = [](WallTime at) { return MonoTime(at.nanoseconds() - kStart.nanoseconds()); };
  for (const series::Series& series : sink.recording.series) {
    const auto number = writer->begin_series(series.key);
    for (series::Point p : series.points) {
      bend(series.key, p);
      EXPECT_TRUE(writer->point(number, mono(p.at), p.value, p.status));
    }
  }
  for (const series::Event& e : sink.recording.events) EXPECT_TRUE(writer->event(mono(e.at), e));
  EXPECT_TRUE(writer->close(mono(kStart), "done"));
  return disk.content("/bent.fbr");
}

TEST(ReplayRun, LimitsThatTheRecordedRunWroteFreezeNoOtherPolicy) {
  const auto recorded = record_run("sweep", 4, 3600_s);
  ASSERT_EQ(recorded->run.frozen, 0u);
  for (const char* policy : {"static:200W", "pi", "model", "none"}) {
    SCOPED_TRACE(policy);
    const auto other = replay(recorded->bytes(), with_policy(policy));
    ASSERT_TRUE(other) << other.error().message();
    EXPECT_EQ(other->decisions, recorded->run.decisions);
    EXPECT_EQ(other->frozen, 0u);
    for (const Finding& f : other->findings) EXPECT_FALSE(f.code.starts_with("limit.")) << f.what;
  }
}

TEST(ReplayRun, ALimitThatNobodyExplainsStillFreezes) {
  const auto recorded = record_run("static:200W", 4, 1800_s);
  const WallTime from = kStart + 600_s, to = kStart + 900_s;
  const std::string bent = rewritten(recorded->bytes(), [&](const series::SeriesKey& key, series::Point& p) {
    if (key.signal == Signal::limit_enforced && p.at >= from && p.at < to) p.value = 150;
  });
  const auto other = replay(bent, with_policy("static:230W"));
  ASSERT_TRUE(other) << other.error().message();
  EXPECT_GE(other->frozen, 29u);
  EXPECT_LE(other->frozen, 31u);
  EXPECT_TRUE(std::any_of(other->findings.begin(), other->findings.end(),
                          [](const Finding& f) { return f.code == "limit.external"; }));
}

TEST(ReplayRun, ARecordingOfReadingsAloneIsReplayedWithANamedPolicy) {
  twin::MachineParameters parameters;
  parameters.gpus = 2;
  twin::Machine machine = *twin::Machine::create(parameters);
  VirtualClock clock;
  device::TwinDriver driver(machine, clock);
  TwinProgress job(machine);
  MemoryFilesystem disk;
  const auto writer =
      *series::RecordingWriter::open(disk, "/r.fbr", {clock.wall(), clock.now(), "boot", "test", "twin", Seconds(0.5)});
  BoardReader boards(driver, clock, *writer, {}, &job);
  Sampler sampler(boards, clock, *writer, {}, {});
  ASSERT_TRUE(sampler.start());
  while (clock.now() < MonoTime() + 300_s) {
    clock.sleep_until(sampler.due());
    sampler.round();
  }
  ASSERT_TRUE(writer->close(clock.now(), "done"));
  const auto none = replay(disk.content("/r.fbr"));
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message().find("names no policy"), std::string::npos);
  const auto made = replay(disk.content("/r.fbr"), with_policy("static:200W"));
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->decisions, 30u);
  EXPECT_EQ(made->wishes.size(), 2u);
  EXPECT_GT(made->account.tokens, 0);
  EXPECT_DOUBLE_EQ(made->account.coverage_fraction, 1);
}

std::string smi_rows(int seconds, bool with_hole) {
  std::string text = "timestamp, uuid, power.draw [W], enforced.power.limit [W]\n";
  for (int i = 0; i < seconds; ++i) {
    if (with_hole && i >= 100 && i < 200) continue;
    text += fmt::format("2024/05/17 15:{:02}:{:02}.000, GPU-a, 240.{} W, 300.00 W\n", i / 60, i % 60, i % 10);
  }
  return text;
}

TEST(ReplayRun, TelemetryOfOtherToolsIsReplayedAndItsHolesFreezeThePolicy) {
  const auto whole = replay(smi_rows(600, false), with_policy("static:200W"));
  ASSERT_TRUE(whole) << whole.error().message();
  EXPECT_EQ(whole->poll, 1_s);
  EXPECT_EQ(whole->decisions, 59u);
  EXPECT_EQ(whole->frozen, 0u);
  EXPECT_EQ(whole->wishes.at(0).allowed, std::nullopt) << "the range of the board is not in it";
  const auto holed = replay(smi_rows(600, true), with_policy("static:200W"));
  ASSERT_TRUE(holed) << holed.error().message();
  EXPECT_GT(holed->frozen, 4u);
  EXPECT_NEAR(holed->account.coverage_fraction, 498.0 / 599, 0.01);
}

TEST(ReplayRun, InputOutOfOrderOfTimeIsPutInOrder) {
  // Board after board, as some loggers write.
  std::string by_board = "time,gpu,power_w\n", by_time = by_board;
  for (const char* gpu : {"GPU-a", "GPU-b"})
    for (int i = 0; i < 100; ++i) by_board += fmt::format("{},{},{}\n", 1'715'960'000 + i, gpu, 200 + i % 7);
  for (int i = 0; i < 100; ++i)
    for (const char* gpu : {"GPU-a", "GPU-b"})
      by_time += fmt::format("{},{},{}\n", 1'715'960'000 + i, gpu, 200 + i % 7);
  const auto a = replay(by_board, with_policy("static:180W")), b = replay(by_time, with_policy("static:180W"));
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->digest, b->digest);
  EXPECT_EQ(a->account.energy, b->account.energy);
  EXPECT_EQ(a->decisions, 9u);
}

TEST(ReplayRun, WhatCannotBeReplayedIsRefused) {
  EXPECT_FALSE(replay("time,gpu,power_w\n", with_policy("none")));
  EXPECT_FALSE(replay(smi_rows(100, false), with_policy("no-such-policy")));
  ReplayRunOptions options = with_policy("none");
  options.devices = {DeviceId::of("GPU-of-another-machine")};
  const auto refused = replay(smi_rows(100, false), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::input);
}

TEST(ReplayRun, StopsWhenToldAndSaysSo) {
  int polls = 0;
  ReplayRunOptions options = with_policy("none");
  options.stop = [&] { return ++polls > 50; };
  const auto stopped = replay(smi_rows(600, false), options);
  ASSERT_TRUE(stopped);
  EXPECT_TRUE(stopped->interrupted);
  EXPECT_EQ(stopped->polls, 50u);
}

TEST(RunRecorder, EventsReadBackAsTheyWere) {
  RecordedPolicy policy{"static:250 W", {}, 7, Seconds(21600), Seconds(10)};
  policy.objective.alpha = 0.1;
  const auto read = parse_policy_event(policy_event(policy));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->policy, "static:250 W");
  EXPECT_EQ(read->objective.alpha, 0.1);
  EXPECT_FALSE(read->objective.max_loss_fraction);
  EXPECT_EQ(read->seed, 7u);
  EXPECT_FALSE(read->switchback);
  policy.switchback = {.share = 0.1, .rare = experiment::Arm::control};
  const auto canary = parse_policy_event(policy_event(policy));
  ASSERT_TRUE(canary && canary->switchback);
  EXPECT_EQ(canary->switchback->share, 0.1);
  EXPECT_EQ(canary->switchback->rare, experiment::Arm::control);
  EXPECT_EQ(canary->policy, "static:250 W");
  loop::DecisionRecord record;
  guard::WriteOutcome outcome;
  outcome.device = DeviceId::of("GPU-a");
  outcome.state = guard::WriteState::deferred;
  outcome.asked = Milliwatts(123'456);
  outcome.accepted = Milliwatts(150'001);
  outcome.reason = "enforced_mw=7 is a trap";
  record.writes = {outcome};
  const auto write = parse_write_event(write_events(record).at(0));
  ASSERT_TRUE(write) << write.error().message();
  EXPECT_EQ(write->state, guard::WriteState::deferred);
  EXPECT_EQ(write->asked, outcome.asked);
  EXPECT_EQ(write->accepted, outcome.accepted);
  EXPECT_FALSE(write->enforced.ok());
  EXPECT_EQ(write->reason, outcome.reason);
  for (const char* bad : {"", "alpha=x policy=none", "run_length_s=1 decision_s=0 policy=none", "run_length_s=-1"})
    EXPECT_FALSE(parse_policy_event({{}, "policy", {}, {}, 1, bad})) << bad;
  EXPECT_FALSE(parse_policy_event({{}, "policy", {}, {}, -1, policy_event(policy).detail}));
  for (const char* bad : {"", "minimum_mw=5 maximum_mw=4", "minimum_mw=-1 maximum_mw=4", "minimum_mw=1"})
    EXPECT_FALSE(parse_range_event({{}, "board_range", outcome.device, {}, 1, bad})) << bad;
}

}  // namespace
}  // namespace flyball::control
