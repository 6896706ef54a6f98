#include "series/spool.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace flyball::series {
namespace {

WallTime at(double s) { return WallTime(1'700'000'000'000'000'000) + Seconds(s); }
const SeriesKey kKey{DeviceId::of("GPU-a"), Signal::power_average, Scope::board, "test"};

TEST(Spool, GivesBackAnyStretchWithItsNeighboursWhereverItLies) {
  for (const std::size_t in_memory : {std::size_t{0}, Scratch::kInMemory}) {
    Spool spool(in_memory);
    const auto number = spool.begin_series(kKey);
    for (int i = 0; i < 5000; ++i) spool.point(number, {at(i), 200.0 + i % 10});
    ASSERT_TRUE(spool.end_file());
    ASSERT_EQ(spool.parts().size(), 1u);
    EXPECT_EQ(spool.parts()[0].points, 5000u);
    EXPECT_EQ(spool.parts()[0].period(), Seconds(1));
    Random random(4);
    for (int k = 0; k < 200; ++k) {
      const auto from = static_cast<int>(random.below(5000)), to = from + static_cast<int>(random.below(600));
      const auto margin = random.below(20);
      const auto got = spool.load(0, {at(from), at(to)}, margin);
      ASSERT_TRUE(got);
      const int first = std::max(0, from - static_cast<int>(margin));
      const int last = std::min(4999, std::min(to, 4999) + static_cast<int>(margin));
      ASSERT_EQ(got->front().at, at(first));
      ASSERT_EQ(got->back().at, at(last));
      ASSERT_EQ(got->size(), static_cast<std::size_t>(last - first + 1));
    }
    EXPECT_TRUE(spool.load(0, {at(-100), at(-50)}, 0)->empty());
    EXPECT_EQ(spool.load(0, {at(9000), at(9001)}, 3)->size(), 3u);
  }
}

// S4: what the readers cannot tell without neighbours is told here, also where a chunk ends beside it.
TEST(Spool, NoGarbageGetsIn) {
  Spool spool;
  const auto number = spool.begin_series(kKey);
  std::uint64_t put_in = 0;
  for (int i = 0; i < 3000; ++i) {
    Point p{at(i), 250.0 + i % 7};
    if (i % 64 == 40) p.value = 0.25, ++put_in;              // a reading in kW
    if (i % 96 == 80) p.value = 65.535, ++put_in;            // all bits set, in thousandths
    if (i % 200 == 20) p.status = Status::failed, ++put_in;  // said to be none
    spool.point(number, p);
  }
  ASSERT_TRUE(spool.end_file());
  EXPECT_EQ(spool.parts()[0].points + put_in, 3000u);
  EXPECT_EQ(spool.parts()[0].not_ok, put_in);
  const auto all = spool.load(0, {at(0), at(3000)}, 0);
  ASSERT_TRUE(all);
  for (const Point& p : *all) ASSERT_GE(p.value, 250);
}

TEST(Spool, FilesArePartsOfTheirOwnAndOnlyUsedEventsStay) {
  Spool spool;
  for (int file = 0; file < 2; ++file) {
    const auto number = spool.begin_series(kKey);
    EXPECT_EQ(number, 0u);
    for (int i = 0; i < 10; ++i) spool.point(number, {at(100 * file + i), 200});
    spool.event({at(0), "run_start", {}, {}, 0, {}});
    spool.event({at(0), "limit_write", {}, {}, 0, {}});
    ASSERT_TRUE(spool.end_file());
  }
  ASSERT_EQ(spool.parts().size(), 2u);
  EXPECT_EQ(spool.parts()[1].first, at(100));
  EXPECT_EQ(spool.load(1, {at(0), at(1000)}, 0)->size(), 10u);
  EXPECT_EQ(spool.events().size(), 2u);
}

}  // namespace
}  // namespace flyball::series
