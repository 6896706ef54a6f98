#include <gtest/gtest.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/memory_filesystem.h"
#include "base/random.h"
#include "base/temp_dir.h"
#include "series/recording_format.h"
#include "series/recording_reader.h"
#include "series/recording_writer.h"
#include "series/writer_csv.h"

namespace flyball::series {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
const std::string kPath = "run.fbr";

RecordingSession session(std::int64_t mono_s = 1000, std::int64_t wall_s = 1'767'225'600, std::string boot = "boot-a") {
  return {WallTime(wall_s * kSecond),
          MonoTime(mono_s * kSecond),
          std::move(boot),
          "flyball test",
          "twin seed 7",
          Seconds(0.5)};
}

const SeriesKey kPower{DeviceId::of("GPU-a"), Signal::power_average, Scope::board, "nvml"};
const SeriesKey kEnergy{DeviceId::of("GPU-a"), Signal::energy, Scope::board, "nvml"};
const SeriesKey kClock{DeviceId::of("GPU-b"), Signal::sm_clock, Scope::board, "nvml, with \"quotes\""};

struct Read {
  Recording recording;
  RecordingDetails details;
  ReadSummary summary;
  std::string error;
  std::size_t points() const {
    std::size_t n = 0;
    for (const auto& series : recording.series) n += series.points.size();
    return n;
  }
};

Read read(std::string_view bytes) {
  Read r;
  RecordingSink sink;
  const auto source = raw_bytes_in_memory(bytes);
  const auto summary = read_recording(*source, "test", sink, r.details);
  if (summary) {
    r.summary = *summary;
  } else {
    r.error = summary.error().message();
  }
  r.recording = std::move(sink.recording);
  return r;
}

bool warned(const Read& r, std::string_view word) {
  return std::any_of(r.summary.warnings.begin(), r.summary.warnings.end(),
                     [&](const std::string& text) { return text.find(word) != std::string::npos; });
}

/// `count` points of two series, half a second apart, in blocks of ten, 250 W upwards.
std::string small_file(std::size_t count, bool close = true) {
  MemoryFilesystem disk;
  RecordingWriter::Options options;
  options.points_per_block = 10;
  options.blocks_per_definition = 2;
  auto writer = *RecordingWriter::open(disk, kPath, session(), options);
  const auto power = writer->begin_series(kPower);
  const auto energy = writer->begin_series(kEnergy);
  for (std::size_t i = 0; i < count; ++i) {
    const MonoTime at(1000 * kSecond + static_cast<std::int64_t>(i) * kSecond / 2);
    EXPECT_TRUE(writer->point(power, at, 250 + static_cast<double>(i), Status::ok));
    EXPECT_TRUE(writer->point(energy, at, 1000 * static_cast<double>(i) / 3, i % 7 == 3 ? Status::failed : Status::ok));
  }
  EXPECT_TRUE(writer->event(MonoTime(1001 * kSecond), {{}, "step", DeviceId::of("GPU-a"), "job", 3, "x"}));
  EXPECT_TRUE(close ? writer->close(MonoTime(1010 * kSecond), "duration") : writer->flush());
  return disk.content(kPath);
}

/// Each point of `part` is in `whole`, at the same time and with the same value.
void expect_subset(const Recording& part, const Recording& whole) {
  for (const auto& series : part.series) {
    const auto same =
        std::find_if(whole.series.begin(), whole.series.end(), [&](const Series& s) { return s.key == series.key; });
    ASSERT_NE(same, whole.series.end());
    for (const auto& point : series.points) {
      const auto found =
          std::find_if(same->points.begin(), same->points.end(), [&](const Point& p) { return p.at == point.at; });
      ASSERT_NE(found, same->points.end());
      EXPECT_EQ(found->value, point.value);
      EXPECT_EQ(found->status, point.status);
    }
  }
}

TEST(Recording, ComesBackExactly) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    MemoryFilesystem disk;
    RecordingWriter::Options options;
    options.points_per_block = 1 + random.below(300);
    options.blocks_per_definition = 1 + random.below(4);
    auto writer = *RecordingWriter::open(disk, kPath, session(), options);
    std::vector<Series> expected;
    std::vector<Event> events;
    for (const auto& key : {kPower, kEnergy, kClock}) expected.push_back({key, {}});
    std::int64_t mono = 1000 * kSecond;
    for (std::uint64_t n = random.below(500); n > 0; --n) {
      mono += 1 + static_cast<std::int64_t>(random.below(2 * kSecond));
      auto& series = expected[random.below(3)];
      const auto status = random.chance(0.8) ? Status::ok : static_cast<Status>(random.below(9));
      double value = status == Status::ok ? random.uniform(0.001, 2999) : 0;
      if (random.chance(0.5)) value = std::floor(value * 1000) / 1000 + (status == Status::ok ? 0.001 : 0);
      ASSERT_TRUE(writer->point(writer->begin_series(series.key), MonoTime(mono), value, status));
      series.points.push_back({WallTime(session().wall.nanoseconds() + mono - 1000 * kSecond), value, status});
      if (random.chance(0.05)) {
        Event event{series.points.back().at, "eval_start", random.chance(0.5) ? kPower.device : DeviceId(), "run",
                    random.normal(),         "d\nd"};
        ASSERT_TRUE(writer->event(MonoTime(mono), event));
        events.push_back(event);
      }
    }
    ASSERT_TRUE(writer->close(MonoTime(mono), "done"));
    const Read r = read(disk.content(kPath));
    ASSERT_EQ(r.error, "");
    EXPECT_TRUE(r.summary.warnings.empty()) << r.summary.warnings.front();
    EXPECT_EQ(r.summary.quarantined, 0U);
    for (const auto& series : expected) {
      const auto found = std::find_if(r.recording.series.begin(), r.recording.series.end(),
                                      [&](const Series& s) { return s.key == series.key; });
      if (series.points.empty()) continue;
      ASSERT_NE(found, r.recording.series.end());
      ASSERT_EQ(found->points.size(), series.points.size()) << "seed " << seed;
      for (std::size_t i = 0; i < series.points.size(); ++i) {
        ASSERT_EQ(found->points[i].at, series.points[i].at);
        ASSERT_EQ(found->points[i].value, series.points[i].value);
        ASSERT_EQ(found->points[i].status, series.points[i].status);
      }
    }
    ASSERT_EQ(r.recording.events.size(), events.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
      EXPECT_EQ(r.recording.events[i].at, events[i].at);
      EXPECT_EQ(r.recording.events[i].value, events[i].value);
      EXPECT_EQ(r.recording.events[i].device, events[i].device);
      EXPECT_EQ(r.recording.events[i].detail, "d\nd");
    }
    ASSERT_EQ(r.details.sessions.size(), 1U);
    EXPECT_TRUE(r.details.sessions[0].closed);
    EXPECT_EQ(r.details.sessions[0].session.source, "twin seed 7");
  }
}

TEST(Recording, CutAtEveryByteGivesWholeBlocksAndSaysWhatIsLost) {
  const std::string whole = small_file(40);
  const Recording all = read(whole).recording;
  std::size_t last = 0;
  for (std::size_t keep = 0; keep < whole.size(); ++keep) {
    const Read r = read(std::string_view(whole).substr(0, keep));
    if (keep < fbr::kFileHeaderBytes) {
      EXPECT_NE(r.error, "") << keep;
      continue;
    }
    ASSERT_EQ(r.error, "");
    expect_subset(r.recording, all);
    EXPECT_GE(r.points(), last);  // what is on disk stays readable however much follows
    last = r.points();
    if (keep > fbr::kFileHeaderBytes + 100) {
      EXPECT_TRUE(warned(r, "was not closed")) << keep;
    }
  }
  EXPECT_EQ(read(whole).points(), 80U);
}

TEST(Recording, FlippedBytesCostOneBlockAndNeverAValue) {
  const std::string whole = small_file(60);
  const Recording all = read(whole).recording;
  for (std::size_t at = fbr::kFileHeaderBytes; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    const Read r = read(damaged);
    ASSERT_EQ(r.error, "");
    expect_subset(r.recording, all);
    EXPECT_TRUE(!r.summary.warnings.empty()) << at;  // never in silence
  }
}

TEST(Recording, ALossIsToldFromWhenToWhenAndHowManyPoints) {
  MemoryFilesystem disk;
  RecordingWriter::Options options;
  options.points_per_block = 10;
  std::vector<std::size_t> ends;
  {
    auto writer = *RecordingWriter::open(disk, kPath, session(), options);
    const auto power = writer->begin_series(kPower);
    for (int i = 0; i < 30; ++i) {
      ASSERT_TRUE(writer->point(power, MonoTime((1000 + i) * kSecond), 100 + i, Status::ok));
      if (i % 10 == 9) ends.push_back(disk.content(kPath).size());
    }
    ASSERT_TRUE(writer->close(MonoTime(1031 * kSecond), "done"));
  }
  disk.content(kPath)[ends[1] - 3] ^= 1;  // in the second block of points
  const Read r = read(disk.content(kPath));
  ASSERT_EQ(r.points(), 20U);
  ASSERT_EQ(r.details.losses.size(), 1U);
  const auto& points = r.recording.series.at(0).points;
  EXPECT_EQ(r.details.losses[0].from, points[9].at);
  EXPECT_EQ(r.details.losses[0].to, points[10].at);
  EXPECT_TRUE(warned(r, "(11.00 s)"));
  EXPECT_TRUE(warned(r, "10 points that the session wrote are lost"));
}

TEST(Recording, DamagedDefinitionCostsNoMoreThanUntilTheNextOne) {
  std::string whole = small_file(60);
  whole[fbr::kFileHeaderBytes + fbr::kBlockHeaderBytes + 2] ^= 1;  // inside the first session block
  const Read r = read(whole);
  EXPECT_GT(r.details.orphaned_points, 0U);
  EXPECT_GE(r.points(), 60U);
  EXPECT_EQ(r.points() + r.details.orphaned_points, 120U);
}

TEST(Recording, GoesOnBehindATornTail) {
  MemoryFilesystem disk;
  for (int life = 0; life < 3; ++life) {
    auto writer = *RecordingWriter::open(disk, kPath, session(1000 + life * 100, 1'767'225'600 + life * 100));
    const auto power = writer->begin_series(kPower);
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(writer->point(power, MonoTime((1000 + life * 100 + i) * kSecond), 100 + life, Status::ok));
    }
    ASSERT_TRUE(writer->flush());
    for (int i = 10; i < 20; ++i) {  // killed in the middle of the next block
      ASSERT_TRUE(writer->point(power, MonoTime((1000 + life * 100 + i) * kSecond), 999, Status::ok));
    }
    const std::size_t sound = disk.content(kPath).size();
    ASSERT_TRUE(writer->flush());
    disk.content(kPath).resize(sound + 30);
  }
  const Read r = read(disk.content(kPath));
  ASSERT_EQ(r.recording.series.size(), 1U);
  ASSERT_EQ(r.points(), 30U);
  for (const auto& point : r.recording.series[0].points) EXPECT_LT(point.value, 200);
  EXPECT_EQ(r.details.sessions.size(), 3U);
  EXPECT_GT(r.details.lost_bytes, 0U);
}

TEST(Recording, PowerCutKeepsWhatWasFlushed) {
  MemoryFilesystem disk;
  auto writer = *RecordingWriter::open(disk, kPath, session());
  const auto power = writer->begin_series(kPower);
  ASSERT_TRUE(writer->point(power, MonoTime(1000 * kSecond), 100, Status::ok));
  ASSERT_TRUE(writer->flush());
  ASSERT_TRUE(writer->point(power, MonoTime(1001 * kSecond), 101, Status::ok));
  disk.lose_power(7);
  EXPECT_EQ(read(disk.content(kPath)).points(), 1U);
}

TEST(Recording, FullDiskIsAnErrorAndLaterSpaceSavesWhatWaited) {
  MemoryFilesystem disk;
  auto writer = *RecordingWriter::open(disk, kPath, session());
  const auto power = writer->begin_series(kPower);
  disk.set_space_left(40);
  ASSERT_TRUE(writer->point(power, MonoTime(1000 * kSecond), 100, Status::ok));
  const auto full = writer->flush();
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message().find("space"), std::string::npos);
  ASSERT_TRUE(writer->point(power, MonoTime(1001 * kSecond), 101, Status::ok));
  EXPECT_FALSE(writer->flush());
  disk.set_space_left(static_cast<std::size_t>(-1));
  ASSERT_TRUE(writer->close(MonoTime(1002 * kSecond), "done"));
  const Read r = read(disk.content(kPath));
  EXPECT_EQ(r.points(), 2U);
  EXPECT_TRUE(r.details.sessions.at(0).closed);
  EXPECT_EQ(writer->dropped_points(), 0U);
}

TEST(Recording, WaitingPointsAreBoundedAndTheLossIsRecorded) {
  MemoryFilesystem disk;
  RecordingWriter::Options options;
  options.points_per_block = 10;
  options.max_waiting_points = 100;
  auto writer = *RecordingWriter::open(disk, kPath, session(), options);
  const auto power = writer->begin_series(kPower);
  disk.set_space_left(0);
  for (int i = 0; i < 1000; ++i) (void)writer->point(power, MonoTime((1000 + i) * kSecond), 100, Status::ok);
  EXPECT_GE(writer->dropped_points(), 890U);
  disk.set_space_left(1 << 20);
  ASSERT_TRUE(writer->close(MonoTime(3000 * kSecond), "done"));
  const Read r = read(disk.content(kPath));
  EXPECT_EQ(r.points() + writer->dropped_points(), 1000U);
  double told = 0;
  for (const auto& event : r.recording.events) told += event.kind == "points_dropped" ? event.value : 0;
  EXPECT_EQ(told, static_cast<double>(writer->dropped_points()));
}

TEST(Recording, UnknownBlocksAreSkippedAndNewerFilesRefused) {
  std::string file = small_file(5);
  const std::string payload = "something of the year 2031";
  fbr::Bytes header;
  for (const int v : {200, 0, 0, 0}) header.u8(static_cast<std::uint8_t>(v));
  header.u32(static_cast<std::uint32_t>(payload.size()));
  header.u32(static_cast<std::uint32_t>(payload.size()));
  header.u32(crc32(payload));
  const std::string unsealed = std::string(fbr::kSync) + header.str();
  fbr::Bytes crc;
  crc.u32(crc32(unsealed));
  file.insert(fbr::kFileHeaderBytes, unsealed + crc.str() + payload);
  const Read r = read(file);
  EXPECT_EQ(r.points(), 10U);
  EXPECT_EQ(r.details.unknown_blocks, 1U);
  EXPECT_EQ(r.details.lost_bytes, 0U);

  fbr::Bytes version;
  version.u32(2);
  std::string newer = std::string(fbr::kMagic) + version.str();
  fbr::Bytes newer_crc;
  newer_crc.u32(crc32(newer));
  newer += newer_crc.str();
  EXPECT_NE(read(newer).error.find("version 2"), std::string::npos);
  MemoryFilesystem disk;
  disk.content(kPath) = newer;
  const auto refused = RecordingWriter::open(disk, kPath, session());
  ASSERT_FALSE(refused);
  EXPECT_EQ(disk.content(kPath), newer);
}

TEST(Recording, OtherFilesAreNotWrittenInto) {
  MemoryFilesystem disk;
  disk.content(kPath) = "time,0\n1,2\n";
  const auto refused = RecordingWriter::open(disk, kPath, session());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::input);
  EXPECT_EQ(disk.content(kPath), "time,0\n1,2\n");
  disk.content(kPath) = std::string(fbr::kMagic).substr(0, 5);  // a creation that was cut off
  EXPECT_TRUE(RecordingWriter::open(disk, kPath, session()));
}

TEST(Recording, StepOfTheWallClockMovesNoPoint) {
  MemoryFilesystem disk;
  const auto record = [&](std::int64_t mono_s, std::int64_t wall_s, const std::string& boot) {
    auto writer = *RecordingWriter::open(disk, kPath, session(mono_s, wall_s, boot));
    const auto power = writer->begin_series(kPower);
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(writer->point(power, MonoTime((mono_s + i) * kSecond), 100, Status::ok));
    ASSERT_TRUE(writer->close(MonoTime((mono_s + 10) * kSecond), "done"));
  };
  record(1000, 1'767'225'600, "boot-a");
  record(1100, 1'767'225'600 + 100 - 3600, "boot-a");  // the wall clock was set back by an hour meanwhile
  record(5, 1'767'225'600 + 500, "boot-b");
  const Read r = read(disk.content(kPath));
  ASSERT_EQ(r.points(), 30U);
  EXPECT_EQ((r.recording.series[0].points[10].at - r.recording.series[0].points[0].at).value(), 100);
  EXPECT_NEAR((r.recording.series[0].points[20].at - r.recording.series[0].points[0].at).value(), 500, 1e-6);
  ASSERT_EQ(r.recording.events.size(), 1U);
  EXPECT_EQ(r.recording.events[0].kind, "wall_step");
  EXPECT_EQ(r.recording.events[0].value, -3600);
}

TEST(Recording, IsFoundByContentAndReadFromAFile) {
  const TempDir dir;
  auto writer = *RecordingWriter::open(system_filesystem(), dir.file("a.fbr"), session());
  ASSERT_TRUE(writer->point(writer->begin_series(kPower), MonoTime(1000 * kSecond), 100, Status::ok));
  ASSERT_TRUE(writer->close(MonoTime(1002 * kSecond), "done"));
  RecordingSink sink;
  const auto summary = read_file(dir.file("a.fbr"), {}, sink);
  ASSERT_TRUE(summary) << summary.error().message();
  EXPECT_EQ(summary->format, Format::recording);
  EXPECT_EQ(summary->good_points(), 1U);
}

TEST(WriterCsv, ReadsBackTheSame) {
  const Recording original = read(small_file(40)).recording;
  std::string points;
  std::string events;
  CsvWriter writer([&](std::string_view text) { return points += text, Result<>(); },
                   [&](std::string_view text) { return events += text, Result<>(); });
  for (const auto& series : original.series) {
    const auto number = writer.begin_series(series.key);
    for (const auto& point : series.points) writer.point(number, point);
  }
  for (const auto& event : original.events) writer.event(event);
  ASSERT_TRUE(writer.finish());
  RecordingSink sink;
  const auto summary = read_bytes(bytes_in_memory(points), "csv", {}, sink);
  ASSERT_TRUE(summary) << summary.error().message();
  EXPECT_EQ(summary->format, Format::flyball_csv);
  EXPECT_EQ(summary->quarantined, 0U);
  ASSERT_EQ(sink.recording.series.size(), original.series.size());
  expect_subset(sink.recording, original);
  EXPECT_EQ(summary->all_points(), 80U);
  RecordingSink event_sink;
  ASSERT_TRUE(read_bytes(bytes_in_memory(events), "csv", {}, event_sink));
  ASSERT_EQ(event_sink.recording.events.size(), 1U);
  EXPECT_EQ(event_sink.recording.events[0].kind, "step");
  EXPECT_EQ(event_sink.recording.events[0].at, original.events[0].at);
  EXPECT_EQ(event_sink.recording.events[0].value, 3);
}

TEST(WriterCsv, ErrorOfTheOutputComesOut) {
  CsvWriter writer([](std::string_view) -> Result<> { return fail(ErrorCode::failed, "the pipe is closed"); });
  const auto number = writer.begin_series(kPower);
  for (int i = 0; i < 10'000; ++i) writer.point(number, {WallTime(i), 1, Status::ok});
  EXPECT_FALSE(writer.finish());
}

}  // namespace
}  // namespace flyball::series
