#include "facility/response.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/text.h"

namespace flyball::facility {
namespace {

// Of the IT rating, before anything is known: losses and fans, cooling by load and air, and how much they bend.
constexpr double kPriorLevel = 0.3, kPriorLoad = 0.3, kPriorFelt = 0.5, kPriorBend = 0.1, kPriorDynamics = 0.3;
constexpr double kPriorAir = 0.1, kPriorAirBend = 0.03;
constexpr double kPriorKelvin = 0.02;  ///< of the set point, and of the air's dryness
constexpr double kPriorChiller = 0.1, kPriorHour = 0.02, kPriorDrift = 0.02;
constexpr std::size_t kFeltKnots = 4, kAirKnots = 5, kStagingBins = 16;
constexpr Seconds kEvidenceHalfLife = Seconds(86400.0);
constexpr std::size_t kFewestPoints = 100;
/// Beside the lags that were found, faster and slower ones: what the found ones miss is then linear.
constexpr double kFast = 0.3, kSlow = 3;
constexpr Seconds kSlowest = Seconds(2 * 3600.0);
constexpr Seconds kLeastLag = Seconds(30);

std::vector<FeltLoad::Lag> bank(const ResponseOptions& options) {
  const Seconds total = std::max(options.first_lag + options.second_lag, kLeastLag);
  return {{options.first_lag, options.second_lag},
          {total * kFast, Seconds(0)},
          {total * kSlow, Seconds(0)},
          {std::max(total * (kSlow * kSlow), kSlowest), Seconds(0)}};
}

std::vector<double> knots_between(double low, double high, std::size_t count) {
  std::vector<double> made;
  for (std::size_t i = 1; i <= count; ++i)
    made.push_back(low + (high - low) * static_cast<double>(i) / static_cast<double>(count + 1));
  return made;
}

/// Share of points from which a value counts as metered.
constexpr double kMetered = 0.5;

}  // namespace

ResponseModel::ResponseModel(const ResponseOptions& options)
    : options_(options), felt_(options.dead_time, bank(options)), model_({}, kEvidenceHalfLife) {}

double ResponseModel::heat(Watts it) const {
  return (it + (options_.stage ? options_.stage->of(it) : Watts())) / rating_;
}

Result<ResponseModel> ResponseModel::make(std::span<const FacilityPoint> train, const ResponseOptions& options) {
  if (train.size() < kFewestPoints)
    return fail(ErrorCode::input, fmt::format("{} points; at least {}", train.size(), kFewestPoints), "response",
                "give a longer recording");
  ResponseModel made(options);
  for (const FacilityPoint& point : train) made.most_it_ = std::max(made.most_it_, point.it.value());
  if (!(made.most_it_ > 0) || !std::isfinite(made.most_it_))
    return fail(ErrorCode::input, "the IT draws nothing", "response", "name the IT power's column");
  made.rating_ = options.it_rating > Watts(0) ? options.it_rating : Watts(made.most_it_);
  made.find_scales(train);
  made.find_knots(train);
  made.find_switches(train);
  made.model_ = AdaptiveRegression(made.terms(), kEvidenceHalfLife);
  made.felt_ = FeltLoad(options.dead_time, bank(options));
  return made;
}

void ResponseModel::find_scales(std::span<const FacilityPoint> train) {
  std::vector<double> air, dryness, set_points, chillers;
  for (const FacilityPoint& point : train) {
    if (point.air) air.push_back(point.air->value());
    if (point.air && point.dry_bulb) dryness.push_back((*point.dry_bulb - *point.air).value());
    if (point.set_point) set_points.push_back(point.set_point->value());
    if (point.chillers_on) chillers.push_back(*point.chillers_on);
  }
  const auto metered = [&](const std::vector<double>& values) {
    return static_cast<double>(values.size()) > kMetered * static_cast<double>(train.size());
  };
  constexpr double kTail = 0.01;
  if (metered(air)) {
    const double low = quantile(air, kTail), high = quantile(air, 1 - kTail);
    air_.middle = median(air);
    air_.spread = std::max((high - low) / 4, 1.0);
    air_.knots = knots_between((low - air_.middle) / air_.spread, (high - air_.middle) / air_.spread, kAirKnots);
  }
  has_dry_ = metered(dryness);
  if (has_dry_) dryness_middle_ = median(dryness);
  has_set_point_ = metered(set_points);
  if (has_set_point_) set_point_middle_ = median(set_points);
  has_chillers_ = metered(chillers);
  if (has_chillers_) chillers_middle_ = median(chillers);
}

void ResponseModel::find_knots(std::span<const FacilityPoint> train) {
  std::vector<double> felt;
  std::vector<std::pair<double, double>> on;
  FeltLoad load(options_.dead_time, bank(options_));
  for (const FacilityPoint& point : train) {
    load.take(point.at, heat(point.it));
    felt.push_back(load.felt());
    if (point.chillers_on) on.emplace_back(load.felt(), *point.chillers_on);
  }
  constexpr double kTail = 0.002;
  felt_low_ = quantile(felt, kTail);
  felt_high_ = std::max(quantile(felt, 1 - kTail), felt_low_ + 1e-3);
  felt_scale_.knots = knots_between(felt_low_, felt_high_, kFeltKnots);
  if (has_chillers_) find_staging(on);
}

void ResponseModel::find_switches(std::span<const FacilityPoint> train) {
  // Minutes are enough to see a switch, and some ten thousand of them.
  const std::size_t every = std::max<std::size_t>(train.size() / 8000, 1);
  std::vector<SwitchMoment> moments;
  ResponseModel walk = *this;
  walk.rewind();
  SwitchMoment sum;
  std::size_t count = 0;
  for (const FacilityPoint& point : train) {
    const Moment moment = walk.take(point);
    const double beside = point.facility / rating_ - moment.now.heat;
    if (point.exceptional || !std::isfinite(beside)) continue;
    if (count == 0) sum = {0, 0, 0, std::vector<double>(moment.x.size())};
    sum.felt += moment.now.felt, sum.air += moment.now.air, sum.target += beside;
    for (std::size_t i = 0; i < moment.x.size(); ++i) sum.x[i] += moment.x[i];
    if (++count < every) continue;
    const auto n = static_cast<double>(count);
    sum.felt /= n, sum.air /= n, sum.target /= n;
    for (double& v : sum.x) v /= n;
    moments.push_back(std::exchange(sum, {}));
    count = 0;
  }
  switches_ = facility::find_switches(moments);
}

void ResponseModel::turn(Now& now) {
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    on_[i] = switches_[i].next(on_[i], switches_[i].by == Switch::By::felt ? now.felt : now.air);
    now.on[i] = on_[i] ? 1 : 0;
  }
}

void ResponseModel::find_staging(std::span<const std::pair<double, double>> felt_and_on) {
  std::array<std::vector<double>, kStagingBins> bins;
  for (const auto& [felt, on] : felt_and_on) {
    const double at = (felt - felt_low_) / (felt_high_ - felt_low_) * kStagingBins;
    bins[static_cast<std::size_t>(std::clamp(at, 0.0, kStagingBins - 1.0))].push_back(on);
  }
  std::vector<double> weight;
  double last = chillers_middle_, least = chillers_middle_;
  for (const std::vector<double>& bin : bins) {
    constexpr double kLeast = 0.1;
    if (!bin.empty()) {
      last = std::accumulate(bin.begin(), bin.end(), 0.0) / static_cast<double>(bin.size());
      least = quantile(bin, kLeast);
    }
    staging_.push_back(last);
    fewest_.push_back(least);
    weight.push_back(static_cast<double>(bin.size()) + 1e-3);
  }
  staging_ = isotonic_non_decreasing(staging_, weight);
  fewest_ = isotonic_non_decreasing(fewest_, weight);
}

double ResponseModel::between(const std::vector<double>& bins, double felt) const {
  const double at = (felt - felt_low_) / (felt_high_ - felt_low_) * kStagingBins - 0.5;
  const double inside = std::clamp(at, 0.0, kStagingBins - 1.0);
  const auto i = std::min(static_cast<std::size_t>(inside), kStagingBins - 2);
  return bins[i] + (inside - static_cast<double>(i)) * (bins[i + 1] - bins[i]);
}

std::optional<double> ResponseModel::usual_chillers(double felt) const {
  return has_chillers_ ? std::optional(between(staging_, felt)) : std::nullopt;
}

std::vector<Term> ResponseModel::terms() const {
  std::vector<Term> made;
  const auto add = [&](std::size_t count, double prior, Seconds memory = Seconds(0)) {
    made.insert(made.end(), count, Term{prior, memory});
  };
  add(1, kPriorLevel);
  add(2, kPriorLoad);
  add(1, kPriorFelt);
  add(kFeltKnots, kPriorBend);
  add(3, kPriorDynamics);
  if (!air_.knots.empty()) {
    add(2, kPriorAir);
    add(2 * kAirKnots, kPriorAirBend);
  }
  if (has_dry_) add(2, kPriorKelvin);
  if (has_set_point_) add(2, kPriorKelvin);
  if (has_chillers_) add(4, kPriorChiller);
  add(2 * switches_.size(), kPriorChiller);
  add(4, kPriorHour);
  add(3, kPriorDrift, options_.drift_memory);
  return made;
}

std::vector<double> ResponseModel::features(const Now& now) const {
  std::vector<double> x;
  constexpr std::size_t kMostTerms = 48;
  x.reserve(kMostTerms);
  const double q = now.felt;
  x.insert(x.end(), {1.0, now.load, now.load * now.load, q});
  for (const double knot : felt_scale_.knots) x.push_back(std::max(q - knot, 0.0));
  x.insert(x.end(), {now.fast - q, now.slow - q, now.slowest - q});
  if (!air_.knots.empty()) {
    x.insert(x.end(), {now.air, now.air * q});
    for (const double knot : air_.knots) {
      const double above = std::max(now.air - knot, 0.0);
      x.insert(x.end(), {above, above * q});
    }
  }
  if (has_dry_) x.insert(x.end(), {now.dryness, now.dryness * q});
  if (has_set_point_) x.insert(x.end(), {now.set_point, now.set_point * q});
  if (has_chillers_)
    x.insert(x.end(), {now.chillers, now.chillers * q, now.chillers * now.chillers, now.chillers * now.air});
  for (std::size_t i = 0; i < switches_.size(); ++i) x.insert(x.end(), {now.on[i], now.on[i] * q});
  const double turn = 2 * std::numbers::pi * now.hour / 24, share = now.day_share;
  x.insert(x.end(),
           {share * std::sin(turn), share * std::cos(turn), share * std::sin(2 * turn), share * std::cos(2 * turn)});
  x.insert(x.end(), {1.0, q, now.air * q});
  return x;
}

ResponseModel::Now ResponseModel::outside(const FacilityPoint& point) const {
  Now now;
  now.load = point.it / rating_;
  now.heat = heat(point.it);
  if (point.air) now.air = (point.air->value() - air_.middle) / air_.spread;
  if (point.air && point.dry_bulb) now.dryness = (*point.dry_bulb - *point.air).value() - dryness_middle_;
  if (point.set_point) now.set_point = point.set_point->value() - set_point_middle_;
  const auto seconds = point.at.nanoseconds() / 1'000'000'000 % 86'400;
  now.hour = static_cast<double>(seconds) / 3600;
  return now;
}

ResponseModel::Moment ResponseModel::take(const FacilityPoint& point) {
  Now now = outside(point);
  felt_.take(point.at, now.heat);
  now.felt = felt_.felt(0);
  now.fast = felt_.felt(1);
  now.slow = felt_.felt(2);
  now.slowest = felt_.felt(3);
  if (has_chillers_) now.chillers = point.chillers_on.value_or(between(staging_, now.felt)) - chillers_middle_;
  turn(now);
  return moment_of(now, point.at);
}

ResponseModel::Moment ResponseModel::answered(const FacilityPoint& point) const {
  Now now = outside(point);
  now.felt = now.fast = now.slow = now.slowest = now.heat;
  if (has_chillers_) now.chillers = between(staging_, now.felt) - chillers_middle_;
  // Between its two thresholds a switch may be either way: half.
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    const double value = switches_[i].by == Switch::By::felt ? now.felt : now.air;
    now.on[i] = ((switches_[i].next(false, value) ? 1 : 0) + (switches_[i].next(true, value) ? 1 : 0)) / 2.0;
  }
  return moment_of(now, point.at);
}

ResponseModel::Moment ResponseModel::fewest_chillers(const Moment& moment) const {
  Now now = moment.now;
  if (has_chillers_) now.chillers = std::min(now.chillers, between(fewest_, now.felt) - chillers_middle_);
  return moment_of(now, moment.at);
}

ResponseModel::Moment ResponseModel::steady(const Conditions& conditions, WallTime at) const {
  const FacilityPoint point{at, conditions.it, {}, conditions.air, conditions.dry_bulb, conditions.set_point,
                            {}, false};
  Now now = answered(point).now;
  now.day_share = 0;
  if (has_chillers_ && conditions.chillers_on) now.chillers = *conditions.chillers_on - chillers_middle_;
  return moment_of(now, at);
}

void ResponseModel::rewind() {
  felt_ = FeltLoad(options_.dead_time, bank(options_));
  on_ = {};
}

AdaptiveRegression::Mixed ResponseModel::forecast(const Moment& moment, double noise) const {
  return model_.forecast(moment.x, noise, moment.at);
}

void ResponseModel::learn(const Moment& moment, double beside, double noise,
                          const AdaptiveRegression::Mixed* foretold) {
  model_.learn(moment.x, beside, noise, moment.at, foretold);
}

Estimate ResponseModel::power_w(std::span<const double> x, double heat, WallTime at, double level) const {
  const auto mixed = model_.forecast(x, 0, at);
  const double value = (heat + mixed.mean) * rating_.value();
  const double half = normal_quantile((1 + level) / 2) * mixed.sd * rating_.value();
  return {value, value - half, value + half, level};
}

std::string ResponseModel::text() const {
  std::string made = "response 1\n";
  const auto add = [&](std::string_view name, double value) {
    made += fmt::format("{} {}\n", name, format_exact(value));
  };
  add("rating_w", rating_.value());
  add("most_it_w", most_it_);
  add("dead_time_s", options_.dead_time.value());
  add("first_lag_s", options_.first_lag.value());
  add("second_lag_s", options_.second_lag.value());
  if (options_.stage) {
    add("stage_rating_w", options_.stage->rating.value());
    add("stage_idle_w", options_.stage->idle.value());
    add("stage_proportional", options_.stage->proportional_fraction);
    add("stage_square", options_.stage->square_fraction);
  }
  add("felt_low", felt_low_);
  add("felt_high", felt_high_);
  add("air_middle_c", air_.middle);
  add("air_spread_c", air_.spread);
  for (const double knot : air_.knots) add("air_knot", knot);
  add("dryness_middle_k", dryness_middle_);
  add("set_point_middle_c", set_point_middle_);
  add("chillers_middle", chillers_middle_);
  for (const double on : staging_) add("staging", on);
  for (const Switch& each : switches_) {
    add(each.by == Switch::By::felt ? "switch_felt_up" : "switch_air_up", each.up);
    add("down", each.down);
  }
  for (const double weight : model_.weights()) add("weight", weight);
  const RecursiveRegression& middle = model_.middle();
  for (std::size_t i = 0; i < middle.coefficients().size(); ++i)
    made += fmt::format("term {} {}\n", format_exact(middle.coefficients()[i]), format_exact(middle.sd(i)));
  return made;
}

}  // namespace flyball::facility
