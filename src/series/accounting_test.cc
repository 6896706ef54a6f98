#include "series/accounting.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace flyball::series {
namespace {

WallTime utc(const char* text) { return parse_rfc3339(text).value(); }

std::vector<Point> constant(WallTime start, double hours, double watts, double dt = 60) {
  std::vector<Point> points;
  for (double t = 0; t <= hours * 3600; t += dt) points.push_back({start + Seconds(t), watts});
  return points;
}

TEST(Accounting, ConstantRatesAndDerivedFigures) {
  const WallTime start = utc("2026-03-01T00:00:00Z");
  const auto samples = usable_samples(constant(start, 2, 5000));
  const Tariff tariff{RateSeries(0.30), RateSeries(400)};
  const auto a = account_power(samples, {start, start + Seconds(7200)}, tariff,
                               {.scope = Scope::node_ac, .signal = "power_average", .tokens = 1e6, .gap = {}})
                     .value();
  EXPECT_NEAR(a.energy.value(), 3.6e7, 1);
  EXPECT_NEAR(a.cost, 3.0, 1e-9);
  EXPECT_NEAR(a.carbon_g, 4000, 1e-6);
  EXPECT_NEAR(a.tokens_per_mwh(), 1e8, 1);
  EXPECT_NEAR(a.wh_per_1000_tokens(), 10, 1e-9);
  EXPECT_EQ(a.method, "trapezoid of power_average");
  EXPECT_DOUBLE_EQ(a.coverage_fraction, 1);
}

// The night the clocks go back: local 02:00 comes twice, with offsets +02:00 and +01:00; 25 hours have 25 prices.
TEST(Accounting, HourlyPricesAreByInstantOnTheDayOfTwentyFiveHours) {
  std::string csv = "time,per_kwh\n";
  csv +=
      "2026-10-25T01:00:00+02:00,1\n2026-10-25T02:00:00+02:00,2\n2026-10-25T02:00:00+01:00,3\n2026-10-25T03:00:00+01:"
      "00,4\n";
  const auto price = RateSeries::parse_csv(csv).value();
  const WallTime start = utc("2026-10-24T23:00:00Z");
  EXPECT_EQ(price.at(start), 1);
  EXPECT_EQ(price.at(utc("2026-10-25T01:30:00Z")), 3);
  EXPECT_EQ(price.at(utc("2026-10-25T03:00:00Z")), std::nullopt);
  const auto samples = usable_samples(constant(start, 4, 1000));
  const auto a = account_power(samples, {start, start + Seconds(4 * 3600)}, {price, RateSeries(0)}).value();
  EXPECT_NEAR(a.cost, 1 + 2 + 3 + 4, 1e-9);
  EXPECT_FALSE(account_power(samples, {start, start + Seconds(5 * 3600)}, {price, RateSeries(0)}))
      << "an hour without a price is not free";
}

TEST(Accounting, LocalStampsWithoutZoneAndDisorderAreRefused) {
  EXPECT_FALSE(RateSeries::parse_csv("time,per_kwh\n2026-10-25T02:00:00,1\n2026-10-25T03:00:00,1\n"));
  EXPECT_FALSE(RateSeries::parse_csv("time,per_kwh\n2026-10-25T02:00:00Z,1\n2026-10-25T02:00:00Z,1\n"));
  EXPECT_FALSE(RateSeries::parse_csv("time,per_kwh\n2026-10-25T02:00:00Z,1\n"));
  EXPECT_FALSE(RateSeries::parse_csv("time,per_kwh\n2026-10-25T02:00:00Z,0,16\n2026-10-25T03:00:00Z,1\n"));
}

TEST(Accounting, PricesSplitEnergyWithoutRemainder) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    const WallTime start = utc("2026-05-01T00:10:00Z");
    std::vector<Point> points;
    for (double t = 0; t < 20'000; t += random.uniform(1, 20))
      points.push_back({start + Seconds(t), random.uniform(0, 9000)});
    std::vector<RateSeries::Step> steps;
    for (int h = 0; h < 8; ++h) steps.push_back({utc("2026-05-01T00:00:00Z") + Seconds(3600.0 * h), 0.25});
    const auto price = RateSeries::of(steps).value();
    const Interval clip{start + Seconds(100), start + Seconds(19'000)};
    const auto a = account_power(usable_samples(points), clip, {price, RateSeries(100)}).value();
    ASSERT_NEAR(a.cost, 0.25 * a.energy.value() / 3.6e6, 1e-9 * a.cost + 1e-12) << seed;
    ASSERT_NEAR(a.carbon_g, 100 * a.energy.value() / 3.6e6, 1e-9 * a.carbon_g) << seed;
  }
}

TEST(Accounting, CountersAndConstantsPriceTheSame) {
  const WallTime start = utc("2026-05-01T00:00:00Z");
  std::vector<Point> counter;
  for (int i = 0; i <= 120; ++i) counter.push_back({start + Seconds(60.0 * i), 60'000.0 * i});
  const Interval two_hours{start, start + Seconds(7200)};
  const Tariff tariff{RateSeries::of({{start, 0.1}, {start + Seconds(3600), 0.3}}).value(), RateSeries(0)};
  const auto c = account_counter(counter, two_hours, tariff, {}).value();
  const auto k = account_constant(Watts(1000), two_hours, tariff).value();
  EXPECT_NEAR(c.cost, 0.4, 1e-9);
  EXPECT_NEAR(k.cost, 0.4, 1e-9);
  EXPECT_EQ(c.method, "counter");
}

TEST(Accounting, ScopesAreNeverAddedAcrossEachOther) {
  Account node, board;
  node.scope = Scope::node_ac;
  board.scope = Scope::board;
  node.energy = board.energy = Joules(10);
  EXPECT_FALSE(add_side_by_side(std::vector<Account>{node, board}));
  const auto sum = add_side_by_side(std::vector<Account>{node, node}, 7).value();
  EXPECT_EQ(sum.energy.value(), 20);
  EXPECT_EQ(sum.tokens, 7);
}

Estimate exactly(double x) { return {x, x, x, 1}; }

/// An hour of eight boards at 200 W, a tenth saved a token and a hundredth of the tokens lost.
Account an_hour() {
  Account run;
  run.duration = Seconds(3600);
  run.tokens = 990;
  run.energy = Joules(8 * 200 * 3600.0);
  run.scope = Scope::board;
  return run;
}

TEST(Accounting, WorthCountsEnergyForTheTokensMadeAndTheTimeLost) {
  const Rates rates{.price_per_kwh = 0.5,
                    .carbon_g_per_kwh = 100,
                    .gpu_hour_price = 2,
                    .other_power_per_gpu = Watts(100),
                    .currency = "EUR"};
  const Worth w = worth(exactly(0.1), exactly(0.01), an_hour(), rates, 8);
  const double kwh = 1.6 * 0.1 / 0.9;
  EXPECT_NEAR(w.energy_saved_kwh.value, kwh, 1e-12);
  EXPECT_NEAR(w.net_money->value, kwh * 0.5 - 0.01 * 8 * 2, 1e-12);
  EXPECT_NEAR(w.carbon_saved_g->value, kwh * 100, 1e-9);
  EXPECT_NEAR(w.power_reduction_fraction.value, 1 - 0.9 * 0.99, 1e-12);
  // The node by hand: 200 W were 200 / 0.891 W, 100 W stand beside them in both cases.
  const double before = (200 / 0.891 + 100) / 1.0, now = (200 + 100) / 0.99;
  EXPECT_NEAR(w.node_saved_fraction.value, 1 - now / before, 1e-12);
  EXPECT_NEAR(w.fixed_feed_gain_fraction.value, before / now - 1, 1e-12);
  EXPECT_LT(w.node_saved_fraction.value, 0.1) << "what stands beside the boards saves nothing";
}

TEST(Accounting, WorthOfANodesMeterAddsNothingToIt) {
  Account run = an_hour();
  run.scope = Scope::node_ac;
  Rates rates;
  rates.other_power_per_gpu = Watts(100);
  const Worth w = worth(exactly(0.1), exactly(0.01), run, rates, 8);
  EXPECT_NEAR(w.node_saved_fraction.value, 0.1, 1e-12);
  EXPECT_FALSE(w.net_money) << "no price is stated";
  EXPECT_FALSE(w.carbon_saved_g);
}

TEST(Accounting, WorthIsWorstWhereLittleWasSavedAndMuchLost) {
  Rates rates;
  rates.price_per_kwh = 0.5;
  rates.gpu_hour_price = 2;
  const Estimate saved{0.1, 0.08, 0.12, 0.95}, lost{0.01, 0.005, 0.015, 0.95};
  const Worth w = worth(saved, lost, an_hour(), rates, 8);
  EXPECT_EQ(w.net_money->low, worth(exactly(0.08), exactly(0.015), an_hour(), rates, 8).net_money->value);
  EXPECT_EQ(w.net_money->high, worth(exactly(0.12), exactly(0.005), an_hour(), rates, 8).net_money->value);
  for (const Estimate& e :
       {w.power_reduction_fraction, w.node_saved_fraction, w.fixed_feed_gain_fraction, *w.net_money}) {
    EXPECT_LE(e.low, e.value);
    EXPECT_LE(e.value, e.high);
  }
}

TEST(Accounting, WorthOfNothingMeasuredIsNothing) {
  const Worth w = worth(exactly(0), exactly(0), Account{}, {}, 8);
  EXPECT_EQ(w.energy_saved_kwh.value, 0);
  EXPECT_EQ(w.node_saved_fraction.value, 0);
}

}  // namespace
}  // namespace flyball::series
