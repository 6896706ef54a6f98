// A watch that is killed anywhere tells the same, once.
#include "control/facility_watch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/random.h"
#include "base/temp_dir.h"

namespace flyball::control {
namespace {

/// A small building: a UPS whose loss doubles after two days.
std::string rows(int from, int to, int fault_from = 2 * 1440) {
  std::string text;
  for (int minute = from; minute < to; ++minute) {
    Random random(static_cast<std::uint64_t>(minute) + 1);
    const double it = 500e3 + 50e3 * std::sin(minute / 100.0) + 500 * random.normal();
    const double loss = (minute >= fault_from ? 0.06 : 0.04) * it;
    text += fmt::format("{},{:.0f},{:.0f},{:.0f}\n", 1'767'225'600 + 60 * minute, it,
                        it * 1.005 + 200 * random.normal(), it * 1.005 + loss + 200 * random.normal());
  }
  return text;
}
constexpr const char* kHeader = "time,it_w,ups_out_w,ups_in_w\n";
constexpr int kMinutes = 4 * 1440;

std::string line_of(const FacilityEvent& event) {
  return fmt::format("{} {} {} {}\n", event.number, to_string(event.kind), to_string(event.finding.cause),
                     format_rfc3339(event.finding.since));
}

class FacilityWatching : public testing::Test {
 protected:
  FacilityWatchOptions options(const std::string& folder) {
    FacilityWatchOptions made;
    made.input = dir_.file("in.csv");
    made.folder = dir_.file(folder);
    made.causes.reference_time = Seconds(86400);
    return made;
  }
  void append(const std::string& text) { std::ofstream(dir_.file("in.csv"), std::ios::app) << text; }
  /// All that is there.
  std::string read_all(const std::string& folder) {
    auto watch = FacilityWatch::open(options(folder), system_filesystem(), line_of);
    EXPECT_TRUE(watch) << watch.error().message();
    std::string told;
    do {
      const auto lines = watch->poll();
      EXPECT_TRUE(lines) << lines.error().message();
      for (const std::string& line : *lines) told += line;
    } while (watch->behind());
    notices_ = watch->notices();
    return told;
  }
  std::string events(const std::string& folder) {
    return system_filesystem().read(dir_.file(folder) + "/events.ndjson", 1 << 20).value_or("");
  }

  TempDir dir_;
  std::vector<std::string> notices_;
};

TEST_F(FacilityWatching, FindsWhatBeganAndSaysItOnce) {
  append(kHeader + rows(0, kMinutes));
  const std::string told = read_all("state");
  EXPECT_NE(told.find("found"), told.npos) << told;
  EXPECT_NE(told.find("2026-01-03"), told.npos) << told;
  EXPECT_EQ(read_all("state"), "") << "told again";
  EXPECT_EQ(events("state"), told);
}

TEST_F(FacilityWatching, EndedAnywhereWithTornFilesItTellsTheSame) {
  append(kHeader + rows(0, kMinutes));
  const std::string whole = read_all("whole");
  std::ofstream(dir_.file("in.csv"), std::ios::trunc);
  Random random(7);
  const std::string text = kHeader + rows(0, kMinutes);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t part = 1 + random.below(60'000);
    append(text.substr(at, part));
    at += part;
    read_all("parts");
    for (const char* file : {"/blocks.log", "/events.ndjson"}) {
      const std::string path = dir_.file("parts") + file;
      const std::string kept = system_filesystem().read(path, 1 << 26).value_or("");
      // Torn by a power cut: the last line may be there in part.
      if (random.chance(0.5) && kept.size() > 200) std::ofstream(path, std::ios::app) << "12 ab";
    }
  }
  read_all("parts");
  EXPECT_EQ(events("parts"), whole);
}

TEST_F(FacilityWatching, ARotatedOrShortenedFileIsReadFromItsBeginning) {
  append(kHeader + rows(0, kMinutes));
  const std::string whole = read_all("whole");
  std::ofstream(dir_.file("in.csv"), std::ios::trunc) << kHeader << rows(0, 3000);
  read_all("state");
  std::ofstream(dir_.file("in.csv"), std::ios::trunc) << kHeader << rows(2990, kMinutes);
  read_all("state");
  ASSERT_FALSE(notices_.empty());
  EXPECT_NE(notices_.front().find("beginning"), std::string::npos) << notices_.front();
  EXPECT_EQ(events("state"), whole);
}

std::string joined(const std::vector<std::string>& notices) {
  std::string text;
  for (const std::string& notice : notices) text += notice + "\n";
  return text;
}

/// The blocks, without where they were read.
std::string blocks_of(const std::string& log) {
  std::string text;
  std::istringstream lines(log);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    const std::size_t block = line.find(' ', line.find(' ') + 1);
    text += line.substr(block, line.rfind(' ') - block) + "\n";
  }
  return text;
}

TEST_F(FacilityWatching, HoweverTheFileIsRotatedNoRowIsLostLiveOrOverARestart) {
  const auto log_of = [&](const std::string& folder) {
    return blocks_of(system_filesystem().read(dir_.file(folder) + "/blocks.log", 1 << 26).value_or(""));
  };
  append(kHeader + rows(0, kMinutes));
  const std::string whole = read_all("whole");
  ASSERT_NE(whole, "");
  const std::string input = dir_.file("in.csv");
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (const auto& old : std::filesystem::directory_iterator(std::filesystem::path(input).parent_path()))
      if (old.path().filename().string().starts_with("in.csv")) std::filesystem::remove(old.path());
    Random random(seed);
    const std::string state = fmt::format("state{}", seed);
    append(kHeader + rows(0, 30));
    read_all(state);  // what was rotated before a watch began is nobody's
    std::optional<FacilityWatch> watch;
    int rotations = 0;
    bool seen = false;  // a first row of this file: without, nothing tells a copied file from the one that goes on
    for (int at = 30; at < kMinutes;) {
      const int to = std::min<int>(kMinutes, at + 1 + static_cast<int>(random.below(500)));
      append(rows(at, to));
      at = to;
      if (random.chance(0.5)) {
        const std::string aside = fmt::format("{}-{:03}", input, ++rotations);
        if (random.chance(0.5) || !seen) {
          std::filesystem::rename(input, aside);
        } else {
          std::filesystem::copy_file(input, aside);
        }
        std::ofstream(input, std::ios::trunc) << kHeader;
        seen = false;
      } else {
        seen = true;
      }
      // A watch that runs sees one rotation at a time; one that does not may miss several.
      if (random.chance(0.3)) watch.reset();
      if (!watch && random.chance(0.3) && at < kMinutes) {
        seen = false;
        continue;
      }
      if (!watch) watch.emplace(FacilityWatch::open(options(state), system_filesystem(), line_of).value());
      do ASSERT_TRUE(watch->poll());
      while (watch->behind());
    }
    watch.reset();
    EXPECT_EQ(events(state), whole) << "seed " << seed << ", " << rotations << " rotations";
    EXPECT_TRUE(log_of(state) == log_of("whole")) << "seed " << seed;
    EXPECT_GT(rotations, 3);
  }
}

TEST_F(FacilityWatching, TheOldFileIsReadOnUntilTheNewOneHoldsSomething) {
  append(kHeader + rows(0, 100));
  auto watch = FacilityWatch::open(options("state"), system_filesystem(), line_of);
  ASSERT_TRUE(watch) << watch.error().message();
  ASSERT_TRUE(watch->poll());
  std::ofstream old(dir_.file("in.csv"), std::ios::app);
  std::filesystem::rename(dir_.file("in.csv"), dir_.file("in.csv.1"));
  std::ofstream(dir_.file("in.csv")) << "";
  for (int at = 100; at < 200; at += 50) {
    old << rows(at, at + 50) << std::flush;
    ASSERT_TRUE(watch->poll());
  }
  EXPECT_EQ(watch->blocks(), 19U);
  EXPECT_EQ(joined(watch->notices()), "");
  old << rows(200, 250) << "1767240" << std::flush;
  append(kHeader + rows(250, 300));
  ASSERT_TRUE(watch->poll());
  EXPECT_EQ(watch->blocks(), 29U);
  const std::string said = joined(watch->notices());
  EXPECT_NE(said.find("in.csv:252: the last line has no end"), std::string::npos) << said;
  EXPECT_NE(said.find("another file has this name now"), std::string::npos) << said;
}

TEST_F(FacilityWatching, RowsThatWaitAfterAnOutageGoOnWaitingOverARotation) {
  append(kHeader + rows(0, 2 * 1440) + rows(4 * 1440, 6 * 1440));
  const std::string whole = read_all("whole");
  std::ofstream(dir_.file("in.csv"), std::ios::trunc) << kHeader << rows(0, 2 * 1440);
  auto watch = FacilityWatch::open(options("state"), system_filesystem(), line_of);
  ASSERT_TRUE(watch) << watch.error().message();
  ASSERT_TRUE(watch->poll());
  append(rows(4 * 1440, 4 * 1440 + 10));
  ASSERT_TRUE(watch->poll());
  std::filesystem::rename(dir_.file("in.csv"), dir_.file("in.csv.1"));
  append(kHeader + rows(4 * 1440 + 10, 6 * 1440));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(watch->poll());
  EXPECT_EQ(joined(watch->notices()).find("set aside"), std::string::npos);
  EXPECT_EQ(events("state"), whole);
}

TEST_F(FacilityWatching, ALogOfAnotherFileIsRefusedWithARemedy) {
  append(kHeader + rows(0, 100));
  read_all("state");
  FacilityWatchOptions other = options("state");
  other.input = dir_.file("other.csv");
  std::ofstream(other.input) << kHeader << rows(0, 100);
  const auto watch = FacilityWatch::open(other, system_filesystem(), line_of);
  ASSERT_FALSE(watch);
  EXPECT_NE(watch.error().message().find("--state-dir"), std::string::npos);
}

TEST_F(FacilityWatching, ABadRowCostsItselfAndIsNamed) {
  append(kHeader + rows(0, 100) + "1767231600,many,1,2\n" + rows(101, 200));
  read_all("state");
  ASSERT_FALSE(notices_.empty());
  EXPECT_NE(notices_.front().find("'many'"), std::string::npos);
}

TEST_F(FacilityWatching, AClockThatJumpsAheadCostsItsRowsAndIsNamed) {
  append(kHeader + rows(0, kMinutes));
  const std::string whole = read_all("whole");
  for (const char* wrong : {"2903299200,5,5,5\n", "1767744000,5,5,5\n"}) {
    std::ofstream(dir_.file("in.csv"), std::ios::trunc) << kHeader << rows(0, 2000) << wrong;
    const std::string state = fmt::format("state{}", wrong[0] == '2' ? 1 : 2);
    read_all(state);
    append(rows(2000, 2010));
    std::string first = read_all(state);
    EXPECT_NE(joined(notices_).find(fmt::format("in.csv:2002: column 'time' is '{}'", std::string(wrong, 10))),
              std::string::npos)
        << joined(notices_);
    append(rows(2010, kMinutes));
    read_all(state);
    EXPECT_EQ(events(state), whole) << wrong;
  }
}

TEST_F(FacilityWatching, AnOutageOfDaysIsSurvivedAlsoIfKilledInIt) {
  append(kHeader + rows(0, 2 * 1440) + rows(4 * 1440, 6 * 1440));
  const std::string whole = read_all("whole");
  ASSERT_NE(whole.find("found"), std::string::npos);
  std::ofstream(dir_.file("in.csv"), std::ios::trunc) << kHeader << rows(0, 2 * 1440) << rows(4 * 1440, 4 * 1440 + 5);
  read_all("parts");
  append(rows(4 * 1440 + 5, 4 * 1440 + 50));
  read_all("parts");
  append(rows(4 * 1440 + 50, 6 * 1440));
  read_all("parts");
  EXPECT_EQ(events("parts"), whole);
}

TEST_F(FacilityWatching, AClockSetBackIsToldInOneWarning) {
  append(kHeader + rows(0, 2000) + rows(1880, 2100));
  read_all("state");
  ASSERT_EQ(notices_.size(), 1U) << joined(notices_);
  EXPECT_NE(notices_[0].find("in.csv:2002: "), std::string::npos) << notices_[0];
  EXPECT_NE(notices_[0].find("120 rows are not later"), std::string::npos) << notices_[0];
}

TEST_F(FacilityWatching, AFileWhoseNewestRowComesFirstIsToldWithItsRemedy) {
  append(kHeader);
  for (int minute = 100; minute > 0; --minute) append(rows(minute, minute + 1));
  read_all("state");
  EXPECT_NE(joined(notices_).find("99 rows are not later than the one before and left out; most stand before"),
            std::string::npos)
      << joined(notices_);
  EXPECT_NE(joined(notices_).find("tac"), std::string::npos);
}

TEST_F(FacilityWatching, AStateOfTheFutureIsToldWithItsRemedy) {
  append(kHeader + rows(5'000'000, 5'000'100));  // 2035
  read_all("state");
  std::ofstream(dir_.file("in.csv"), std::ios::trunc) << kHeader << rows(0, 300);
  read_all("state");
  EXPECT_NE(joined(notices_).find("all 300 new rows lie more than a day before"), std::string::npos);
  EXPECT_NE(joined(notices_).find("--state-dir"), std::string::npos);
}

TEST_F(FacilityWatching, LinesAreCountedFromTheFilesBeginningAlsoAfterARestart) {
  append(kHeader + rows(0, 100));
  read_all("state");
  append("1767231600,many,1,2\n");
  read_all("state");
  EXPECT_NE(joined(notices_).find("in.csv:102: column 'it_w' is 'many'"), std::string::npos) << joined(notices_);
}

TEST_F(FacilityWatching, TheHourThatAutumnRepeatsIsReadTwiceAlsoIfKilledInIt) {
  const auto night = [](int from, int to) {
    std::string text;
    for (int minute = from; minute < to; ++minute) {
      const int hour = minute / 60 - (minute >= 180 ? 1 : 0);  // from 180 on the third comes again
      text += fmt::format("2025-10-26 {:02}:{:02}:00,500000,502500,522600\n", hour, minute % 60);
    }
    return text;
  };
  std::vector<std::string> logs;
  for (const int step : {300, 7}) {
    FacilityWatchOptions made = options(fmt::format("state{}", step));
    made.map.zone = "Europe/Berlin";
    std::ofstream(dir_.file("in.csv"), std::ios::trunc) << kHeader;
    for (int at = 0; at < 300; at += step) {
      append(night(at, std::min(300, at + step)));
      auto watch = FacilityWatch::open(made, system_filesystem(), line_of);
      ASSERT_TRUE(watch) << watch.error().message();
      ASSERT_TRUE(watch->poll());
      EXPECT_EQ(watch->notices(), std::vector<std::string>());
    }
    logs.push_back(system_filesystem().read(made.folder + "/blocks.log", 1 << 20).value_or(""));
  }
  EXPECT_EQ(logs[0], logs[1]);
  read_all("unnamed");
  EXPECT_NE(joined(notices_).find("in.csv:182: column 'time' is '2025-10-26 02:00:00': stamps without offset"),
            std::string::npos)
      << joined(notices_);
}

TEST_F(FacilityWatching, ASecondWatchOfAFolderIsRefused) {
  append(kHeader + rows(0, 100));
  {
    const auto first = FacilityWatch::open(options("state"), system_filesystem(), line_of);
    ASSERT_TRUE(first) << first.error().message();
    const auto second = FacilityWatch::open(options("state"), system_filesystem(), line_of);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::refused);
    const std::string said = second.error().message();
    EXPECT_NE(said.find(dir_.file("state")), std::string::npos) << said;
    EXPECT_NE(said.find(fmt::format("process {};", ::getpid())), std::string::npos) << said;
  }
  EXPECT_TRUE(FacilityWatch::open(options("state"), system_filesystem(), line_of)) << "the first has ended";
}

TEST_F(FacilityWatching, AStateIsNotGoneOnWithUnderAnotherReferenceOrMap) {
  append(kHeader + rows(0, 100));
  read_all("state");
  const auto error_of = [&](const FacilityWatchOptions& given) {
    const auto watch = FacilityWatch::open(given, system_filesystem(), line_of);
    EXPECT_FALSE(watch);
    EXPECT_TRUE(watch || watch.error().code == ErrorCode::input);
    return watch ? "" : watch.error().message();
  };
  FacilityWatchOptions other = options("state");
  other.causes.reference_time = Seconds(2 * 86400);
  EXPECT_NE(error_of(other).find("--reference is 172800 s now, and was 86400 s"), std::string::npos) << error_of(other);
  other = options("state");
  other.map.columns = {{"time", {"time", 1, 0}}, {"it_w", {"it_w", 2, 0}}};
  EXPECT_NE(error_of(other).find("--map is one of checksum"), std::string::npos) << error_of(other);
  EXPECT_NE(error_of(other).find("--state-dir"), std::string::npos);
  read_all("state");
}

TEST_F(FacilityWatching, AColumnThatVanishesWithTheFileIsNamedOnce) {
  append(kHeader + rows(0, 100));
  auto watch = FacilityWatch::open(options("state"), system_filesystem(), line_of);
  ASSERT_TRUE(watch) << watch.error().message();
  ASSERT_TRUE(watch->poll());
  EXPECT_EQ(joined(watch->notices()), "");
  std::ofstream(dir_.file("next.csv")) << "time,it_w,ups_out_w\n1767232000,5,5\n";
  ASSERT_EQ(std::rename(dir_.file("next.csv").c_str(), dir_.file("in.csv").c_str()), 0);
  std::string said;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(watch->poll());
    said += joined(watch->notices());
  }
  const std::size_t first = said.find("not any more: ups_in_w;");
  EXPECT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("ups_in_w", first + 20), std::string::npos) << said;
}

}  // namespace
}  // namespace flyball::control
