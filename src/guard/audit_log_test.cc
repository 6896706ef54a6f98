#include "guard/audit_log.h"

#include <gtest/gtest.h>

#include "base/memory_filesystem.h"
#include "base/random.h"

namespace flyball::guard {
namespace {

class AuditLogTest : public ::testing::Test {
 protected:
  AuditLogTest() { reopen(); }
  void reopen() { log = *AuditLog::open(disk, "/audit"); }
  void add(int events) {
    for (int i = 0; i < events; ++i) {
      ASSERT_TRUE(log->record({WallTime(1'000'000'000LL * i), "write", DeviceId::of("GPU-a"), 7, "applied",
                               "700 W to 600 W \"quoted\"\n\x01"}));
    }
    ASSERT_TRUE(log->seal());
  }
  AuditVerdict verdict() { return *verify_audit_files(disk, "/audit"); }
  std::string& text() { return disk.content("/audit"); }

  MemoryFilesystem disk;
  std::unique_ptr<AuditLog> log;
};

TEST_F(AuditLogTest, SoundAcrossRestarts) {
  add(3);
  reopen();
  add(2);
  EXPECT_TRUE(verdict().sound());
  EXPECT_EQ(verdict().lines, 5u);
  EXPECT_EQ(verdict().unsealed, 0u);
}

TEST_F(AuditLogTest, EveryFlippedBitIsFound) {
  add(3);
  const std::string good = text();
  Random random(1);
  for (std::size_t at = 0; at < good.size(); ++at) {
    text() = good;
    text()[at] = static_cast<char>(good[at] ^ (1 << random.below(7)));
    EXPECT_FALSE(verdict().sound()) << "byte " << at;
  }
}

TEST_F(AuditLogTest, DeletionReorderAndTruncationAreFound) {
  add(5);
  const std::string good = text();
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < good.size();) {
    const std::size_t end = good.find('\n', at) + 1;
    lines.push_back(good.substr(at, end - at));
    at = end;
  }
  for (std::size_t gone = 0; gone < lines.size(); ++gone) {
    text().clear();
    for (std::size_t i = 0; i < lines.size(); ++i) text() += i == gone ? "" : lines[i];
    EXPECT_FALSE(verdict().sound()) << "without line " << gone;
  }
  for (std::size_t moved = 0; moved + 1 < lines.size(); ++moved) {
    auto swapped = lines;
    std::swap(swapped[moved], swapped[moved + 1]);
    text().clear();
    for (const auto& line : swapped) text() += line;
    EXPECT_FALSE(verdict().sound()) << "swapped " << moved;
  }
  for (std::size_t kept = 0; kept < good.size(); ++kept) {
    text() = good.substr(0, kept);
    EXPECT_FALSE(verdict().sound()) << "cut to " << kept;
  }
  text() = good;
  disk.content("/audit.head").clear();
  EXPECT_FALSE(verdict().sound()) << "without its head a cut end would not show";
}

TEST_F(AuditLogTest, AHeadKeptElsewhereConvictsAForgedLog) {
  add(3);
  const AuditHead kept = verdict().head;
  EXPECT_EQ(*parse_audit_head(std::to_string(kept.count) + ":" + kept.hash), kept);
  EXPECT_FALSE(parse_audit_head("nonsense"));
  add(2);
  EXPECT_TRUE(verify_audit_files(disk, "/audit", kept)->sound());
  disk = MemoryFilesystem();
  reopen();
  ASSERT_TRUE(log->record({WallTime(5), "other", {}, 0, "", ""}));
  add(4);
  EXPECT_TRUE(verdict().sound()) << "sound in itself";
  EXPECT_FALSE(verify_audit_files(disk, "/audit", kept)->sound());
}

TEST_F(AuditLogTest, FullFilesBecomeSegmentsOfOneChain) {
  while (disk.list("/")->size() < 4) add(5000);  // the log, its head, two segments
  reopen();
  add(10);
  const auto whole = verdict();
  EXPECT_TRUE(whole.sound()) << whole.problems.front().text;
  EXPECT_EQ(whole.first, 1u);
  EXPECT_EQ(whole.lines, whole.head.count);
  const auto names = *disk.list("/");
  ASSERT_TRUE(disk.remove("/" + names[1]));  // the oldest segment is archived
  EXPECT_TRUE(verdict().sound());
  EXPECT_GT(verdict().first, 1u);
  text().clear();
  EXPECT_FALSE(verdict().sound()) << "cut";
}

TEST_F(AuditLogTest, ACrashBeforeSealingIsNotAFault) {
  add(2);
  ASSERT_TRUE(log->record({WallTime(1), "write", {}, 0, "", ""}));
  EXPECT_TRUE(verdict().sound());
  EXPECT_EQ(verdict().unsealed, 1u);
  text() += "{\"hash\":\"torn";
  reopen();
  add(1);
  EXPECT_TRUE(verdict().sound());
  EXPECT_EQ(verdict().lines, 4u);
}

TEST_F(AuditLogTest, AFullDiskLosesTheEventAndSaysSo) {
  add(1);
  disk.set_space_left(10);
  EXPECT_FALSE(log->record({WallTime(1), "write", {}, 0, "", ""}));
  disk.set_space_left(1 << 20);
  add(1);
  const auto seen = verdict();
  EXPECT_EQ(seen.lines, 2u);
  ASSERT_EQ(seen.problems.size(), 1u);
  EXPECT_EQ(seen.problems.front().fault, AuditFault::unreadable) << "the torn line";
}

}  // namespace
}  // namespace flyball::guard
