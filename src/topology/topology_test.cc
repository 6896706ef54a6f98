#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/random.h"
#include "topology/totals.h"
#include "topology/tree.h"

namespace flyball::topology {
namespace {

using namespace literals;

// One utility, feeds A and B with a UPS and a PDU each, two racks on both, cooling on feed A.
std::vector<PartSpec> two_feeds() {
  return {{"grid", PartKind::utility, {}, Watts(1e6)},
          {"feed-a", PartKind::feed, {"grid"}, Watts(5e5)},
          {"feed-b", PartKind::feed, {"grid"}, Watts(5e5)},
          {"ups-a", PartKind::ups, {"feed-a"}, {}},
          {"ups-b", PartKind::ups, {"feed-b"}, {}},
          {"pdu-a", PartKind::pdu, {"ups-a"}, {}},
          {"pdu-b", PartKind::pdu, {"ups-b"}, {}},
          {"rack-1", PartKind::rack, {"pdu-a", "pdu-b"}, 40'000_W},
          {"rack-2", PartKind::rack, {"pdu-a", "pdu-b"}, 40'000_W},
          {"chiller", PartKind::cooling, {"feed-a"}, {}}};
}
std::vector<MeterSpec> meters() {
  return {{"m-a", "pdu-a"}, {"m-b", "pdu-b"}, {"m-1", "rack-1"}, {"m-2", "rack-2"}, {"m-c", "chiller"}};
}

TEST(Topology, ATotalTakesOneLevelAndSaysWhatItCovers) {
  const Tree tree = Tree::make(two_feeds(), meters()).value();
  const std::vector<std::optional<Watts>> all = {60'000_W, 20'000_W, 45'000_W, 30'000_W, 25'000_W};
  const Total it = total_at(tree, PartKind::rack, false, all).value();
  EXPECT_DOUBLE_EQ(it.power.value(), 75'000);
  EXPECT_NEAR(it.coverage_fraction, 2.0 / 3, 1e-12);  // the chiller is not in it
  const Total with_cooling = total_at(tree, PartKind::pdu, true, all).value();
  EXPECT_DOUBLE_EQ(with_cooling.power.value(), 105'000);
  EXPECT_DOUBLE_EQ(with_cooling.coverage_fraction, 1);
  EXPECT_EQ(over_rating(tree, all), std::vector<PartIndex>{7});
  EXPECT_FALSE(total_at(tree, PartKind::ups, false, all));
}

TEST(Topology, ASilentMeterLowersTheCoverageAndIsNamed) {
  const Tree tree = Tree::make(two_feeds(), meters()).value();
  const std::vector<std::optional<Watts>> half = {60'000_W, std::nullopt, 45'000_W, 30'000_W, 25'000_W};
  const Total total = total_at(tree, PartKind::pdu, true, half).value();
  EXPECT_DOUBLE_EQ(total.power.value(), 85'000);
  EXPECT_EQ(total.silent, std::vector<std::string>{"m-b"});
  EXPECT_NEAR(total.coverage_fraction, 2.0 / 3, 1e-12);  // both racks by half, the chiller whole
}

TEST(Topology, CountingTwiceIsAnErrorThatNamesThePair) {
  const Tree tree = Tree::make(two_feeds(), meters()).value();
  const std::vector<std::optional<Watts>> all(5, 1'000_W);
  const std::vector<std::size_t> both = {0, 2};
  const auto total = total_of(tree, both, all);
  ASSERT_FALSE(total);
  EXPECT_EQ(total.error().code, ErrorCode::input);
  EXPECT_NE(total.error().what.find("'m-1'"), std::string::npos) << total.error().what;
  EXPECT_NE(total.error().what.find("'m-a'"), std::string::npos) << total.error().what;
}

TEST(Topology, PartsThatShareALoadAreBalancedTogether) {
  const Tree tree = Tree::make(two_feeds(), meters()).value();
  const std::vector<std::optional<Watts>> all = {60'000_W, 20'000_W, 45'000_W, 30'000_W, 25'000_W};
  const auto made = balances(tree, all);
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].sources.size(), 2u);
  EXPECT_DOUBLE_EQ(made[0].residual().value(), 5'000);
  EXPECT_DOUBLE_EQ(made[0].coverage_fraction, 1);
  // Without feed B's meter nobody knows what came that way.
  EXPECT_TRUE(
      balances(tree, std::vector<std::optional<Watts>>{60'000_W, std::nullopt, 45'000_W, 30'000_W, 0_W}).empty());
}

TEST(Topology, WhatCannotBeIsRefused) {
  const auto what = [](const std::vector<PartSpec>& parts, const std::vector<MeterSpec>& on = {}) {
    const auto tree = Tree::make(parts, on);
    return tree ? std::string() : tree.error().message();
  };
  const PartSpec grid{"grid", PartKind::utility, {}, {}};
  EXPECT_NE(what({grid, grid}).find("two parts"), std::string::npos);
  EXPECT_NE(what({grid, {"r", PartKind::rack, {"nowhere"}, {}}}).find("'nowhere'"), std::string::npos);
  EXPECT_NE(what({grid, {"r", PartKind::rack, {}, {}}}).find("needs a feed"), std::string::npos);
  EXPECT_NE(what({{"g", PartKind::utility, {"r"}, {}}, {"r", PartKind::rack, {"g"}, {}}}).find("no feed"),
            std::string::npos);
  EXPECT_NE(what({grid, {"r", PartKind::rack, {"s"}, {}}, {"s", PartKind::rack, {"r"}, {}}}).find("not fed by"),
            std::string::npos);
  EXPECT_NE(what({grid, {"c", PartKind::cooling, {"grid"}, {}}, {"r", PartKind::rack, {"c"}, {}}}).find("not fed by"),
            std::string::npos);
  EXPECT_NE(what({grid, {"r", PartKind::rack, {"grid", "grid"}, {}}}).find("twice"), std::string::npos);
  EXPECT_NE(what({grid}, {{"m", "grid"}, {"n", "grid"}}).find("'m' and 'n'"), std::string::npos);
  EXPECT_NE(what({grid}, {{"m", "elsewhere"}}).find("'elsewhere'"), std::string::npos);
}

// Whatever the tree: where every part is metered and nothing is lost, each level gives the same total and no residual.
TEST(TopologyProperty, EveryLevelOfALosslessTreeGivesTheSameTotal) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    std::vector<PartSpec> parts = {{"grid", PartKind::utility, {}, {}}};
    std::vector<std::string> above = {"grid"};
    for (const PartKind kind : {PartKind::feed, PartKind::pdu, PartKind::rack, PartKind::node}) {
      std::vector<std::string> level;
      for (std::uint64_t i = 0; i < above.size() + random.below(4); ++i) {
        PartSpec part{fmt::format("{}-{}", to_string(kind), i), kind, {above[i % above.size()]}, {}};
        const std::string second = above[random.below(above.size())];
        if (random.chance(0.5) && second != part.fed_by[0]) part.fed_by.push_back(second);
        level.push_back(part.name);
        parts.push_back(std::move(part));
      }
      above = std::move(level);
    }
    std::vector<MeterSpec> on;
    for (const PartSpec& part : parts) on.push_back({"m-" + part.name, part.name});
    const Tree tree = Tree::make(parts, on).value();
    std::vector<double> flow(parts.size());
    for (std::size_t i = parts.size(); i-- > 0;) {  // from the ends up, split at random between feeds
      if (tree.parts()[i].feeds.empty()) flow[i] = random.uniform(100, 1000);
      const auto& feeds = tree.parts()[i].fed_by;
      const double first = feeds.size() == 1 ? 1 : random.uniform();
      for (std::size_t f = 0; f < feeds.size(); ++f) flow[feeds[f]] += flow[i] * (f == 0 ? first : 1 - first);
    }
    std::vector<std::optional<Watts>> readings;
    for (const double w : flow) readings.emplace_back(Watts(w));
    for (const PartKind kind : {PartKind::feed, PartKind::pdu, PartKind::rack, PartKind::node}) {
      const Total total = total_at(tree, kind, true, readings).value();
      EXPECT_NEAR(total.power.value(), flow[0], 1e-6 * flow[0]) << "seed " << seed;
      EXPECT_NEAR(total.coverage_fraction, 1, 1e-12) << "seed " << seed;
    }
    for (const Balance& balance : balances(tree, readings))
      EXPECT_NEAR(balance.residual().value(), 0, 1e-6 * flow[0]) << "seed " << seed;
  }
}

}  // namespace
}  // namespace flyball::topology
