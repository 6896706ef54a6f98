#include "control/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/memory_filesystem.h"
#include "control/board_reader.h"
#include "device/twin/twin_driver.h"
#include "series/reader.h"
#include "series/recording_reader.h"
#include "twin/machine.h"

namespace flyball::control {
namespace {

/// A twin of two boards, a recording in memory, and a sampler between them.
struct World {
  explicit World(SamplerOptions options = {}, std::function<Seconds()> core_time = {})
      : machine(*twin::Machine::create(parameters())), driver(machine, clock) {
    writer = *series::RecordingWriter::open(disk, "run.fbr",
                                            {clock.wall(), clock.now(), "boot", "test", "twin", options.interval});
    reader.emplace(driver, clock, *writer, std::vector<DeviceId>(), nullptr);
    sampler.emplace(*reader, clock, *writer, options, std::move(core_time));
    EXPECT_TRUE(sampler->start());
  }
  static twin::MachineParameters parameters() {
    twin::MachineParameters p;
    p.gpus = 2;
    return p;
  }
  void run(Seconds length) {
    const MonoTime end = sampler->due() + length;
    while (sampler->due() < end) {
      clock.sleep_until(sampler->due());
      sampler->round();
    }
  }
  series::Recording recording() {
    EXPECT_TRUE(writer->close(clock.now(), "done"));
    series::RecordingSink sink;
    series::RecordingDetails details;
    const auto bytes = raw_bytes_in_memory(disk.content("run.fbr"));
    EXPECT_TRUE(series::read_recording(*bytes, "run", sink, details));
    return std::move(sink.recording);
  }

  VirtualClock clock;
  MemoryFilesystem disk;
  twin::Machine machine;
  device::TwinDriver driver;
  std::unique_ptr<series::RecordingWriter> writer;
  std::optional<BoardReader> reader;
  std::optional<Sampler> sampler;
};

const series::Series* find(const series::Recording& recording, const DeviceId& device, Signal signal) {
  const auto found = std::find_if(recording.series.begin(), recording.series.end(),
                                  [&](const auto& s) { return s.key.device == device && s.key.signal == signal; });
  return found == recording.series.end() ? nullptr : &*found;
}

/// The board's power, by whichever of the two sources this kind of board has.
const series::Series* find_power(const series::Recording& recording, const DeviceId& device) {
  const auto* average = find(recording, device, Signal::power_average);
  return average != nullptr && average->points.size() > 1 ? average : find(recording, device, Signal::power_instant);
}

std::vector<series::Event> events(const series::Recording& recording, std::string_view kind) {
  std::vector<series::Event> found;
  for (const auto& event : recording.events) {
    if (event.kind == kind) found.push_back(event);
  }
  return found;
}

TEST(Sampler, RecordsEveryBoardAtTheInterval) {
  World world;
  world.run(Seconds(60));
  const auto boards = *world.driver.devices();
  const auto recording = world.recording();
  for (const auto& board : boards) {
    const auto* power = find_power(recording, board.id);
    ASSERT_NE(power, nullptr);
    EXPECT_EQ(power->points.size(), 120U);
    EXPECT_NEAR((power->points.back().at - power->points.front().at).value(), 59.5, 1e-9);
    EXPECT_EQ(power->key.source, "twin");
  }
  EXPECT_EQ(world.sampler->report().gaps, 0U);
  EXPECT_EQ(world.sampler->report().rounds, 120U);
}

TEST(Sampler, GapIsAGapAndMissedRoundsAreNotMadeUpFor) {
  World world;
  world.run(Seconds(10));
  world.clock.advance(Seconds(30));  // the machine slept
  world.run(Seconds(10));
  const auto report = world.sampler->report();
  EXPECT_EQ(report.gaps, 1U);
  EXPECT_NEAR(report.longest_gap.value(), 30, 1);
  EXPECT_LT(report.rounds, 45U);
  EXPECT_EQ(events(world.recording(), "recording_gap").size(), 1U);
}

TEST(Sampler, StepOfTheWallClockIsAnEventAndMovesNoPoint) {
  World world;
  world.run(Seconds(10));
  world.clock.step_wall(Seconds(-3600));
  world.run(Seconds(10));
  const DeviceId board = world.driver.devices()->front().id;
  const auto recording = world.recording();
  ASSERT_EQ(events(recording, "wall_step").size(), 1U);
  EXPECT_NEAR(events(recording, "wall_step")[0].value, -3600, 1e-6);
  EXPECT_EQ(find_power(recording, board)->points.size(), 40U);
}

TEST(Sampler, SlowsDownWhereReadingCostsTooMuchAndComesBack) {
  double core_seconds = 0;
  double cost_per_round = 0.02;  // 4 % of a core at 0.5 s
  World world({}, [&] { return Seconds(core_seconds); });
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      world.clock.sleep_until(world.sampler->due());
      core_seconds += cost_per_round;
      world.sampler->round();
    }
  };
  rounds(200);
  EXPECT_GE(world.sampler->report().slowed, 3U);
  EXPECT_GE(world.sampler->report().interval, Seconds(4));
  EXPECT_LE(world.sampler->report().interval, Seconds(10));
  EXPECT_GT(world.sampler->report().core_fraction, 0.003);
  cost_per_round = 0.0001;
  rounds(500);
  EXPECT_EQ(world.sampler->report().interval, Seconds(0.5));
  EXPECT_FALSE(events(world.recording(), "interval_changed").empty());
}

TEST(Sampler, SlowCallsSlowItDownToo) {
  World world;
  const auto boards = *world.driver.devices();
  for (const auto& board : boards) world.driver.faults(board.id).call_time = Seconds(0.1);
  world.run(Seconds(60));
  EXPECT_GE(world.sampler->report().slowed, 1U);
  EXPECT_NEAR(world.sampler->report().call_time_max.value(), 0.2, 0.05);
}

TEST(Sampler, FailedReadsAreFailedPointsAndOneLostBoardStopsNoOther) {
  World world;
  const auto boards = *world.driver.devices();
  world.run(Seconds(5));
  world.driver.faults(boards[0].id).reads_fail = true;
  world.run(Seconds(5));
  EXPECT_EQ(world.sampler->report().failed_reads, 10U);
  const auto recording = world.recording();
  const auto* power = find_power(recording, boards[0].id);
  ASSERT_EQ(power->points.size(), 20U);
  EXPECT_EQ(power->points.back().status, Status::failed);
  EXPECT_EQ(find_power(recording, boards[1].id)->points.back().status, Status::ok);
}

TEST(Sampler, UnknownBoardIsRefused) {
  World world;
  BoardReader other(world.driver, world.clock, *world.writer, {DeviceId::of("GPU-of-another-machine")}, nullptr);
  const auto refused = other.find();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::input);
}

TEST(Sampler, FullDiskIsToldAndReadingGoesOn) {
  World world;
  world.run(Seconds(6));
  world.disk.set_space_left(0);
  world.run(Seconds(20));
  EXPECT_GT(world.sampler->report().flush_failures, 0U);
  EXPECT_NE(world.sampler->report().flush_error.find("space"), std::string::npos);
  world.disk.set_space_left(1 << 20);
  const DeviceId board = world.driver.devices()->front().id;
  EXPECT_EQ(find_power(world.recording(), board)->points.size(), 52U);
}

}  // namespace
}  // namespace flyball::control
