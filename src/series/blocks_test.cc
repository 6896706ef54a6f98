#include "series/blocks.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "series/node_power_test_data.h"

namespace flyball::series {
namespace {

WallTime at(double s) { return WallTime(1'700'000'000'000'000'000) + Seconds(s); }

TEST(Blocks, WhiteNoiseAveragesDownWithTheSquareRoot) {
  Random random(4);
  std::vector<Point> points;
  for (int i = 0; i < 40'000; ++i) points.push_back({at(i), 100 + 8 * random.normal()});
  const std::vector<Seconds> widths{Seconds(4), Seconds(16)};
  const auto blocks = block_statistics(std::vector<std::span<const Point>>{points}, widths);
  EXPECT_NEAR(blocks[0].mean_w, 100, 0.2);
  EXPECT_NEAR(blocks[0].sd_w, 8.0 / 2, 0.3);
  EXPECT_NEAR(blocks[1].sd_w, 8.0 / 4, 0.2);
}

TEST(Blocks, ExcludedTimeAndHolesAreInNoBlock) {
  std::vector<Point> points;
  for (int i = 0; i < 300; ++i)
    if (i < 100 || i > 150) points.push_back({at(i), i >= 200 && i < 250 ? 900.0 : 100.0});
  const std::vector<Seconds> widths{Seconds(5)};
  const std::vector<Interval> excluded{{at(199), at(251)}};
  const auto blocks = block_statistics(std::vector<std::span<const Point>>{points}, widths, excluded);
  EXPECT_NEAR(blocks[0].mean_w, 100, 1e-9);
  EXPECT_NEAR(blocks[0].sd_w, 0, 1e-6);
  EXPECT_EQ(blocks[0].blocks, 20u + 8u + 9u);
}

TEST(Blocks, NodesThatShareHalfTheirVarianceCorrelateByHalf) {
  Random random(8);
  std::vector<std::vector<Point>> nodes(6);
  for (int i = 0; i < 5000; ++i) {
    const double common = random.normal();
    for (auto& node : nodes) node.push_back({at(i), 500 + 10 * (common + random.normal())});
  }
  std::vector<std::span<const Point>> spans(nodes.begin(), nodes.end());
  EXPECT_NEAR(pairwise_correlation(spans, Seconds(1)).value(), 0.5, 0.05);
  spans.resize(1);
  EXPECT_FALSE(pairwise_correlation(spans, Seconds(1)));
}

// The figures that the twin of the job is held to (P6), from the recording itself, training only.
TEST(Blocks, OfTheGptRunsAreTheStatedOnes) {
  const auto runs = test::node_power("64x_gpt3");
  if (runs.empty()) GTEST_SKIP() << "shared data not there";
  const auto& run = runs.begin()->second;
  std::vector<Interval> excluded = run.evaluations();
  for (Interval& e : excluded) e = {e.start - Seconds(4), e.stop + Seconds(4)};
  excluded.push_back({run.run().start - Seconds(60), run.run().start + Seconds(12)});
  const std::vector<Seconds> widths{Seconds(2), Seconds(5), Seconds(10), Seconds(30)};
  for (const auto* nodes : {&run.dc, &run.ac}) {
    const bool dc = nodes == &run.dc;
    std::vector<std::span<const Point>> spans;
    for (const auto& [name, points] : *nodes) spans.emplace_back(points);
    const auto blocks = block_statistics(spans, widths, excluded);
    const double correlation = pairwise_correlation(spans, Seconds(2), excluded).value();
    std::printf("P6 %s: mean %.0f kW, sd of block means", dc ? "DC" : "AC", blocks[0].mean_w / 1000);
    for (const auto& b : blocks) std::printf(" %.1f", b.sd_w / 1000);
    std::printf(" kW, pairwise correlation %.2f\n", correlation);
    const std::vector<double> stated =
        dc ? std::vector<double>{18.7, 12.4, 4.9, 3.9} : std::vector<double>{15.1, 10.0, 2.2, 1.6};
    EXPECT_NEAR(blocks[0].mean_w / 1000, dc ? 434 : 442, 5);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(blocks[i].sd_w / 1000 / stated[i], 1, 0.15) << widths[i].value();
    EXPECT_NEAR(correlation, dc ? 0.27 : 0.66, 0.1);
  }
}

}  // namespace
}  // namespace flyball::series
