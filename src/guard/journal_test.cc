#include "guard/journal.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/memory_filesystem.h"
#include "base/random.h"

namespace flyball::guard {
namespace {

Hold random_hold(Random& random, int board) {
  const auto limit = [&] { return Milliwatts(static_cast<std::int64_t>(random.below(700'000))); };
  Hold hold;
  hold.device = DeviceId::of("GPU-" + std::string(1, static_cast<char>('a' + board)));
  hold.kind = random.chance(0.5) ? LeaseKind::budget : LeaseKind::saving;
  hold.owner = static_cast<Authority>(random.below(3));
  hold.found.requested = limit();
  hold.found.enforced = Sample<Milliwatts>::absent(Status::garbage);
  hold.found.persistence = random.chance(0.5);
  hold.found.epoch = {"boot", "load", "550.54"};
  hold.found.last_writer = "factory default";
  hold.found.taken = WallTime(static_cast<std::int64_t>(random.bits() >> 1));
  hold.safe_cap = limit();
  hold.parked = random.chance(0.5);
  hold.clocks_locked = random.chance(0.5);
  if (random.chance(0.5)) hold.accepted = limit();
  for (std::uint64_t i = random.below(4); i > 0; --i) hold.add_intent(limit());
  for (std::uint64_t i = random.below(3); i > 0; --i) hold.sticky.push_back({random.bits(), Authority::fleet, limit()});
  return hold;
}

/// Saves and closes at random; returns what must be found.
std::map<DeviceId, Hold> fill(Journal& journal, Random& random, int records) {
  std::map<DeviceId, Hold> expected = journal.found().holds;
  for (int i = 0; i < records; ++i) {
    const Hold hold = random_hold(random, static_cast<int>(random.below(4)));
    if (random.chance(0.2)) {
      EXPECT_TRUE(journal.close(hold.device, Durability::survives_power_cut));
      expected.erase(hold.device);
    } else {
      EXPECT_TRUE(journal.save(hold, Durability::survives_power_cut));
      expected.insert_or_assign(hold.device, hold);
    }
  }
  return expected;
}

TEST(Journal, ReadsBackWhatWasWritten) {
  rc::check("over restarts and compactions", [](std::uint64_t seed) {
    Random random(seed);
    MemoryFilesystem disk;
    std::map<DeviceId, Hold> expected;
    for (int start = 0; start < 4; ++start) {
      auto journal = *Journal::open(disk, "/journal");
      RC_ASSERT(journal->found().damage.empty());
      RC_ASSERT(journal->found().holds == expected);
      RC_ASSERT(journal->generation() == static_cast<std::uint64_t>(start + 1));
      expected = fill(*journal, random, static_cast<int>(random.below(30)));
    }
  });
}

TEST(Journal, ATornTailLosesTheLastRecordOnly) {
  Random random(1);
  MemoryFilesystem disk;
  std::map<DeviceId, Hold> before;
  std::size_t length = 0;
  {
    auto journal = *Journal::open(disk, "/journal");
    before = fill(*journal, random, 10);
    length = disk.content("/journal").size();
    ASSERT_TRUE(journal->save(random_hold(random, 0), Durability::survives_crash));
  }
  const std::string whole = disk.content("/journal");
  for (std::size_t keep = length; keep < whole.size(); ++keep) {
    const auto cut = parse_journal(std::string_view(whole).substr(0, keep));
    EXPECT_EQ(cut.holds, before) << keep;
    EXPECT_EQ(cut.torn_tail, keep > length) << keep;
    EXPECT_TRUE(cut.damage.empty()) << keep << ": " << cut.damage.front();
    const auto zeros = parse_journal(whole.substr(0, length) + std::string(keep - length, '\0'));
    EXPECT_EQ(zeros.holds, before);
    EXPECT_TRUE(zeros.damage.empty());
  }
}

TEST(Journal, DamageInTheMiddleIsNamedAndTheRestIsRead) {
  Random random(2);
  MemoryFilesystem disk;
  auto journal = *Journal::open(disk, "/journal");
  fill(*journal, random, 10);
  const Hold last = random_hold(random, 3);
  ASSERT_TRUE(journal->save(last, Durability::survives_crash));
  const std::string whole = disk.content("/journal");
  const std::size_t last_record = whole.rfind("FBJr");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.below(8)));
    const auto content = parse_journal(damaged);
    EXPECT_TRUE(!content.damage.empty() || content.torn_tail) << "byte " << at;
    if (at < last_record) {
      ASSERT_TRUE(content.holds.contains(last.device)) << at;
      EXPECT_EQ(content.holds.at(last.device), last) << at;
    }
  }
}

TEST(Journal, MissingAndRepeatedRecordsAreNamed) {
  Random random(3);
  MemoryFilesystem disk;
  auto journal = *Journal::open(disk, "/journal");
  std::vector<std::size_t> ends = {disk.content("/journal").size()};
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(journal->save(random_hold(random, i), Durability::survives_crash));
    ends.push_back(disk.content("/journal").size());
  }
  const std::string whole = disk.content("/journal");
  const auto without = parse_journal(whole.substr(0, ends[1]) + whole.substr(ends[2]));
  ASSERT_EQ(without.damage.size(), 1u);
  EXPECT_NE(without.damage.front().find("1 record(s) missing"), std::string::npos) << without.damage.front();
  const auto twice = parse_journal(whole + whole.substr(ends[1], ends[2] - ends[1]));
  EXPECT_EQ(twice.damage.size(), 1u);
}

TEST(Journal, ADamagedFileIsKeptBesideTheNewOne) {
  Random random(4);
  MemoryFilesystem disk;
  { fill(**Journal::open(disk, "/journal"), random, 10); }
  disk.content("/journal")[60] ^= 1;
  const std::string damaged = disk.content("/journal");
  auto journal = *Journal::open(disk, "/journal");
  EXPECT_FALSE(journal->found().damage.empty());
  EXPECT_EQ(disk.content("/journal.damaged"), damaged);
  EXPECT_TRUE(parse_journal(disk.content("/journal")).damage.empty());
}

TEST(Journal, AFailedAppendIsMendedBeforeAnythingElseIsWritten) {
  Random random(5);
  MemoryFilesystem disk;
  auto journal = *Journal::open(disk, "/journal");
  auto expected = fill(*journal, random, 10);
  disk.set_space_left(20);
  const Hold hold = random_hold(random, 1);
  EXPECT_FALSE(journal->save(hold, Durability::survives_crash));
  EXPECT_TRUE(journal->broken());
  EXPECT_EQ(parse_journal(disk.content("/journal")).holds, expected);
  disk.set_space_left(1 << 20);
  ASSERT_TRUE(journal->mend());
  EXPECT_FALSE(journal->broken());
  expected.insert_or_assign(hold.device, hold);
  EXPECT_EQ(parse_journal(disk.content("/journal")).holds, expected);
}

TEST(Journal, CompactsInsteadOfGrowing) {
  Random random(6);
  MemoryFilesystem disk;
  auto journal = *Journal::open(disk, "/journal");
  const auto expected = fill(*journal, random, 20'000);
  EXPECT_LT(disk.content("/journal").size(), 1u << 21);
  EXPECT_EQ(parse_journal(disk.content("/journal")).holds, expected);
}

TEST(Journal, SurvivesAnyBytes) {
  rc::check("garbage", [](const std::string& bytes) {
    const auto content = parse_journal(bytes);
    RC_ASSERT(content.holds.empty());
    (void)decode_hold(bytes);
  });
}

}  // namespace
}  // namespace flyball::guard
