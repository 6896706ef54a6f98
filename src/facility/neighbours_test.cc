#include "facility/neighbours.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace flyball::facility {
namespace {

constexpr double kHour = 3600;
WallTime at(double hours) { return WallTime(0) + Seconds(kHour * hours); }

/// Every half hour of some days; a plant that has two stages: 10 below x = 0.5, 20 above.
std::vector<Lesson> stages(double days, double noise) {
  Random random(2);
  std::vector<Lesson> made;
  for (double h = 0; h < 24 * days; h += 0.5) {
    const double x = random.uniform(0, 1);
    made.push_back({at(h), {x}, (x < 0.5 ? 10 : 20) + noise * random.normal()});
  }
  return made;
}
Neighbours learned_from(const std::vector<Lesson>& lessons) {
  Neighbours made({{0.05}, 0.1, 0});
  made.learn(lessons);
  return made;
}

TEST(Neighbours, NoneOrOneTellNothing) {
  for (const std::size_t count : {0, 1}) {
    std::vector<Lesson> few = stages(1, 0);
    few.resize(count);
    Neighbours neighbours = learned_from(few);
    EXPECT_FALSE(neighbours.learned());
    const Surprise surprise = neighbours.take(at(100), std::vector<double>{0.2}, 10);
    EXPECT_FALSE(surprise.known);
    EXPECT_EQ(surprise.z, 0);
    EXPECT_TRUE(std::isfinite(surprise.expected));
  }
}

TEST(Neighbours, EachStageIsItsOwnNorm) {
  Neighbours neighbours = learned_from(stages(10, 0.2));
  ASSERT_TRUE(neighbours.learned());
  for (const double x : {0.2, 0.8}) {
    const double norm = x < 0.5 ? 10 : 20;
    const Surprise usual = neighbours.take(at(241), std::vector<double>{x}, norm);
    EXPECT_TRUE(usual.known);
    EXPECT_NEAR(usual.expected, norm, 0.2);
    EXPECT_GT(neighbours.take(at(242), std::vector<double>{x}, norm + 5).z, 4);
    EXPECT_LT(neighbours.take(at(242), std::vector<double>{x}, norm - 5).z, -4);
  }
}

TEST(Neighbours, OneLongStretchIsOneTime) {
  std::vector<Lesson> lessons;
  for (int i = 0; i < 300; ++i) lessons.push_back({at(i / 60.0), {0.5}, 10});
  Neighbours neighbours = learned_from(lessons);
  EXPECT_FALSE(neighbours.take(at(48), std::vector<double>{0.5}, 15).known);
}

TEST(Neighbours, TimesThatAreAllTheSameLeaveTheLeastSd) {
  std::vector<Lesson> lessons;
  for (int i = 0; i < 200; ++i) lessons.push_back({at(i), {0.5}, 10});
  const Surprise surprise = learned_from(lessons).take(at(201), std::vector<double>{0.5}, 10);
  EXPECT_TRUE(surprise.known);
  EXPECT_NEAR(surprise.difference, 0, 1e-6);
  EXPECT_GE(surprise.sd, 0.1);
  EXPECT_TRUE(std::isfinite(surprise.z));
}

TEST(Neighbours, NewConditionsTeachAndWhatIsAbsurdDoesNot) {
  Neighbours neighbours = learned_from(stages(10, 0.2));
  const std::vector<double> far = {2};
  EXPECT_FALSE(neighbours.take(at(241), far, 40).known);
  for (double h = 242; h < 242 + 96; ++h) neighbours.take(at(h), far, 40);
  EXPECT_TRUE(neighbours.take(at(340), far, 40).known);
  EXPECT_NEAR(neighbours.take(at(341), far, 40).expected, 40, 0.5);

  // Just beyond what was seen, where a little is known: a wild value stays unlearned however long it lasts.
  Neighbours edge = learned_from(stages(3, 0.2));
  std::vector<double> x = {1.0};
  while (edge.take(at(73), x, 20).known) x[0] += 0.02;
  const double before = edge.take(at(73), x, 1000).expected;
  for (double h = 74; h < 170; ++h) EXPECT_FALSE(edge.take(at(h), x, 1000).known);
  EXPECT_NEAR(edge.take(at(171), x, 1000).expected, before, 1e-9);
}

}  // namespace
}  // namespace flyball::facility
