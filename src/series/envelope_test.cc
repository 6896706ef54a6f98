#include "series/envelope.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace flyball::series {
namespace {

std::vector<double> noise(std::size_t size, Random& random) {
  std::vector<double> values;
  for (std::size_t i = 0; i < size; ++i) values.push_back(std::floor(random.normal() * 20) * (i % 7 == 0 ? -0.5 : 1));
  return values;
}

double extreme_of(const std::vector<double>& values, std::ptrdiff_t from, std::ptrdiff_t to, bool largest) {
  double best = largest ? -INFINITY : INFINITY;
  for (std::ptrdiff_t i = from; i <= to; ++i) {
    if (i < 0 || i >= static_cast<std::ptrdiff_t>(values.size())) continue;
    const double v = values[static_cast<std::size_t>(i)];
    best = largest ? std::max(best, v) : std::min(best, v);
  }
  return best;
}

// By the definition: the smallest of the largest over all stretches of that width that hold the place.
double closed(const std::vector<double>& values, std::ptrdiff_t at, std::ptrdiff_t width, bool largest_first) {
  double best = largest_first ? INFINITY : -INFINITY;
  for (std::ptrdiff_t from = at - width + 1; from <= at; ++from) {
    const double v = extreme_of(values, from, from + width - 1, largest_first);
    best = largest_first ? std::min(best, v) : std::max(best, v);
  }
  return best;
}

TEST(Envelope, ClosingAndOpeningAreWhatTheirDefinitionSays) {
  Random random(11);
  for (std::size_t size : {1U, 2U, 7U, 64U, 203U}) {
    const auto values = noise(size, random);
    for (std::size_t width : {2U, 3U, 5U, 30U, 300U}) {
      const auto up = closing(values, width), down = opening(values, width);
      ASSERT_EQ(up.size(), size);
      for (std::size_t i = 0; i < size; ++i) {
        ASSERT_EQ(up[i], closed(values, static_cast<std::ptrdiff_t>(i), static_cast<std::ptrdiff_t>(width), true));
        ASSERT_EQ(down[i], closed(values, static_cast<std::ptrdiff_t>(i), static_cast<std::ptrdiff_t>(width), false));
      }
    }
  }
}

TEST(Envelope, LongSeriesAreDividedAsShortOnes) {
  // Long ones are sorted in another way than short ones; the same values over again have the same two classes.
  Random random(12);
  std::vector<double> once;
  for (int i = 0; i < 1000; ++i) once.push_back((i % 100 < 20 ? -300 : 100) + random.normal() * 9);
  std::vector<double> often;
  for (int i = 0; i < 5; ++i) often.insert(often.end(), once.begin(), once.end());
  const Separation a = separation_below(once, 0.4), b = separation_below(often, 0.4);
  EXPECT_GT(a.ratio, 1);
  EXPECT_NEAR(a.threshold, b.threshold, 3);
  EXPECT_NEAR(a.difference, b.difference, 3);
  EXPECT_DOUBLE_EQ(a.minority_fraction, b.minority_fraction);
}

}  // namespace
}  // namespace flyball::series
