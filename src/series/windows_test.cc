#include "series/windows.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "base/random.h"

namespace flyball::series {
namespace {

WallTime at(double seconds) { return WallTime(1'700'000'000'000'000'000) + Seconds(seconds); }

struct Naive {
  std::uint64_t judged = 0, violations = 0, uncovered = 0;
  double judged_s = 0, violation_s = 0, over_j = 0, worst = 0;
};

// The definition, word for word: each sample's own stretch of time, each window's overlap with it.
struct NaiveWindows {
  struct Piece {
    double begin, end, power;
  };
  std::vector<Piece> pieces;
  double from, to;

  NaiveWindows(const Samples& s, const WindowOptions& o) {
    from = o.clip ? s.seconds_of(o.clip->start) : -s.period.value();
    to = o.clip ? s.seconds_of(o.clip->stop) : s.t_s.back();
    for (std::size_t i = 0; i < s.size(); ++i) {
      const double since = i > 0 ? s.t_s[i] - s.t_s[i - 1] : s.period.value();
      const double length = since > o.gap.periods * s.period.value() ? s.period.value() : since;
      const double begin = std::max(from, s.t_s[i] - length), end = std::min(to, s.t_s[i]);
      if (end > begin) pieces.push_back({begin, end, s.value[i]});
    }
  }
  void judge(Naive& n, double start, double stop, double weight, double coverage, double budget) const {
    double energy = 0, covered = 0;
    for (const Piece& p : pieces) {
      const double overlap = std::min(stop, p.end) - std::max(start, p.begin);
      if (overlap <= 0) continue;
      energy += overlap * p.power;
      covered += overlap;
    }
    if (covered <= 0 || covered < coverage * (stop - start) * (1 - 1e-9)) {
      ++n.uncovered;
      return;
    }
    const double mean = energy / covered;
    n.worst = n.judged++ == 0 ? mean : std::max(n.worst, mean);
    n.judged_s += weight;
    if (mean <= budget + 1e-9 * std::max(1.0, budget)) return;
    ++n.violations;
    n.violation_s += weight;
    n.over_j += (mean - budget) * weight;
  }
  Naive tumbling(double width, double budget, double coverage) const {
    Naive n;
    for (int k = 0; from + (k + 1) * width <= to + 1e-9 * width; ++k)
      judge(n, from + k * width, from + (k + 1) * width, width, coverage, budget);
    return n;
  }
  Naive sliding(double width, double budget, double coverage) const {
    Naive n;
    for (const Piece& p : pieces)
      if (p.end - width >= from - 1e-9 * (1 + width)) judge(n, p.end - width, p.end, p.end - p.begin, coverage, budget);
    return n;
  }
};

void expect_same(const Tally& t, const Naive& n) {
  RC_ASSERT(t.judged == n.judged);
  RC_ASSERT(t.violations == n.violations);
  RC_ASSERT(t.uncovered == n.uncovered);
  RC_ASSERT(std::fabs(t.judged_time.value() - n.judged_s) < 1e-6);
  RC_ASSERT(std::fabs(t.violation_time.value() - n.violation_s) < 1e-6);
  RC_ASSERT(std::fabs(t.over.value() - n.over_j) < 1e-5 * (1 + n.over_j));
  RC_ASSERT(std::fabs(t.worst_mean.value() - n.worst) < 1e-6 * (1 + std::fabs(n.worst)));
}

// S3. Times in whole tenths and powers in whole watts, so that windows fall on samples and means on budgets.
TEST(Windows, EqualTheNaiveDefinitionOnRandomSeries) {
  EXPECT_TRUE(rc::check([] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    Random random(seed);
    std::vector<Point> points;
    double t = 0;
    const std::uint64_t n = 2 + random.below(120);
    for (std::uint64_t i = 0; i < n; ++i) {
      t += 0.1 * static_cast<double>(1 + random.below(random.chance(0.05) ? 300 : 12));
      const double power = random.chance(0.3) ? 100 : static_cast<double>(random.below(300));
      points.push_back({at(t), power, random.chance(0.05) ? Status::garbage : Status::ok});
    }
    const Samples samples = usable_samples(points);
    RC_PRE(samples.size() >= 2u);
    WindowOptions options;
    options.min_coverage = random.uniform();
    if (random.chance(0.5)) {
      const double a = 0.1 * static_cast<double>(random.below(100)) - 3,
                   b = a + 0.1 * static_cast<double>(1 + random.below(600));
      options.clip = Interval{at(a), at(b)};
    }
    const std::vector<Seconds> windows{Seconds(0.1 * static_cast<double>(1 + random.below(20))), Seconds(2),
                                       Seconds(7.3), Seconds(0.1 * static_cast<double>(1 + random.below(400)))};
    const std::vector<Watts> budgets{Watts(100), Watts(static_cast<double>(random.below(300)))};
    const auto results = exceedance(samples, windows, budgets, options);
    RC_ASSERT(results.size() == windows.size() * budgets.size());
    const NaiveWindows naive(samples, options);
    for (const Exceedance& e : results) {
      expect_same(e.tumbling, naive.tumbling(e.window.value(), e.budget.value(), options.min_coverage));
      expect_same(e.sliding, naive.sliding(e.window.value(), e.budget.value(), options.min_coverage));
    }
  }));
}

std::vector<Point> every(double dt, std::initializer_list<double> watts) {
  std::vector<Point> points;
  double t = 0;
  for (double w : watts) points.push_back({at(t += dt), w});
  return points;
}

TEST(Windows, AtTheSamplingPeriodItIsTheShareOfSamplesOverTheBudget) {
  const auto points = every(0.5, {90, 110, 120, 80, 100, 101, 60, 60});
  const std::vector<Seconds> windows{Seconds(0.5), Seconds(1), Seconds(4)};
  const std::vector<Watts> budgets{Watts(100)};
  const auto r = exceedance(points, windows, budgets);
  EXPECT_DOUBLE_EQ(r[0].tumbling.violation_fraction(), 3.0 / 8);
  EXPECT_DOUBLE_EQ(r[0].sliding.violation_fraction(), 3.0 / 8);
  EXPECT_DOUBLE_EQ(r[0].tumbling.over.value(), 0.5 * (10 + 20 + 1));
  EXPECT_EQ(r[0].tumbling.worst_mean.value(), 120);
  EXPECT_EQ(r[0].tumbling.worst_stop, at(1.5));
  EXPECT_DOUBLE_EQ(r[1].tumbling.violation_fraction(), 1.0 / 4) << "means 100, 100, 100.5, 60";
  EXPECT_EQ(r[2].tumbling.judged, 1u);
  EXPECT_EQ(r[2].tumbling.violations, 0u);
}

TEST(Windows, AHoleIsNeitherKeptNorBroken) {
  std::vector<Point> points;
  for (int i = 1; i <= 20; ++i) points.push_back({at(i), 200});
  for (int i = 51; i <= 70; ++i) points.push_back({at(i), 50});
  const std::vector<Seconds> windows{Seconds(10)};
  const std::vector<Watts> budgets{Watts(100)};
  const auto r = exceedance(points, windows, budgets);
  EXPECT_EQ(r[0].tumbling.judged, 4u);
  EXPECT_EQ(r[0].tumbling.violations, 2u);
  EXPECT_EQ(r[0].tumbling.uncovered, 3u);
  EXPECT_DOUBLE_EQ(r[0].tumbling.violation_fraction(), 0.5);
}

TEST(Windows, ShorterThanTheSamplingIsSaidSo) {
  const auto points = every(2, {90, 110, 120, 80});
  const std::vector<Seconds> windows{Seconds(0.5), Seconds(2)};
  const std::vector<Watts> budgets{Watts(100)};
  const auto r = exceedance(points, windows, budgets);
  EXPECT_FALSE(r[0].resolved);
  EXPECT_TRUE(r[1].resolved);
}

TEST(Windows, WindowsThatCannotBeAreLeftOut) {
  const auto points = every(1, {1, 2, 3});
  const std::vector<Seconds> windows{Seconds(0), Seconds(-1), Seconds(1)};
  const std::vector<Watts> budgets{Watts(2)};
  EXPECT_EQ(exceedance(points, windows, budgets).size(), 1u);
  EXPECT_TRUE(exceedance(std::vector<Point>{}, windows, budgets).empty());
  const std::vector<Seconds> longer{Seconds(1000)};
  const auto r = exceedance(points, longer, budgets);
  EXPECT_EQ(r[0].tumbling.judged + r[0].sliding.judged, 0u);
}

TEST(Windows, PieceByPieceIsTheSameAsAllAtOnce) {
  EXPECT_TRUE(rc::check([] {
    Random random(*rc::gen::arbitrary<std::uint64_t>());
    std::vector<Point> points;
    double t = 0;
    for (std::uint64_t i = 0; i < 20 + random.below(3000); ++i) {
      t += 0.5 * static_cast<double>(1 + random.below(random.chance(0.01) ? 300 : 2));
      points.push_back({at(t), static_cast<double>(random.below(300))});
    }
    WindowOptions options;
    if (random.chance(0.5)) options.clip = Interval{at(10), at(200)};
    const std::vector<Seconds> windows{Seconds(0.5), Seconds(30), Seconds(301)};
    const std::vector<Watts> budgets{Watts(150)};
    const Samples all = usable_samples(points);
    const auto whole = exceedance(all, windows, budgets, options);
    ExceedanceMeter meter(all.period, windows, budgets, options);
    for (std::size_t from = 0; from < points.size();) {
      const std::size_t count = std::min<std::size_t>(points.size() - from, 1 + random.below(700));
      meter.add(usable_samples(std::span(points).subspan(from, count)));
      from += count;
    }
    const auto pieces = meter.result();
    RC_ASSERT(whole.size() == pieces.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      for (const auto& [a, b] :
           {std::pair(whole[i].tumbling, pieces[i].tumbling), std::pair(whole[i].sliding, pieces[i].sliding)}) {
        RC_ASSERT(a.judged == b.judged);
        RC_ASSERT(a.violations == b.violations);
        RC_ASSERT(a.uncovered == b.uncovered);
        RC_ASSERT(std::fabs((a.over - b.over).value()) < 1e-6 * (1 + a.over.value()));
        RC_ASSERT(a.worst_stop == b.worst_stop);
      }
    }
  }));
}

}  // namespace
}  // namespace flyball::series
