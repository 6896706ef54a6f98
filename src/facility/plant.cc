#include "facility/plant.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <numbers>

#include "base/checksum.h"
#include "base/stats.h"
#include "base/text.h"

namespace flyball::facility {
namespace {

// Prior standard deviations, in the plant's mean power a spread of load or air. Wide for what every plant has, narrow
// for what bends; chosen on the two measured months, on which the figures hardly depend on them (doc/facility.md).
constexpr double kPriorOff = 0.5, kPriorOn = 1.0, kPriorLoad = 0.5, kPriorLoadSquare = 0.05, kPriorAir = 0.1,
                 kPriorAirLoad = 0.05, kPriorUnit = 0.05, kPriorChange = 0.05, kPriorStart = 0.25, kPriorBefore = 0.03;
constexpr double kDriftLevel = 0.015, kDriftLoad = 0.01, kDriftAir = 0.01, kDriftHour = 0.012;
constexpr Seconds kDriftMemory = Seconds(6 * 86400.0), kHourMemory = Seconds(10 * 86400.0);
constexpr int kHarmonics = 3;
constexpr Seconds kEvidenceHalfLife = Seconds(5 * 86400.0);
// Of what is owed so much a day is paid back, never more than so much of the power.
constexpr double kPayBackPerDay = 0.1, kMostPaidFraction = 0.005;
constexpr Seconds kOwedMemory = Seconds(30 * 86400.0);
constexpr double kFirstNoiseFraction = 0.03;

enum TermIndex : std::size_t {
  kOff,
  kOn,
  kLoad,
  kLoadSquare,
  kAir,
  kAirLoad,
  kChange,
  kStart,
  kBefore,
  kLevelDrift,
  kLoadDrift,
  kAirDrift,
  kFirstHarmonic,
  kFirstUnit = kFirstHarmonic + 2 * kHarmonics,
  kTerms = kFirstUnit + kMostUnits - 1,
};

std::vector<Term> plant_terms(double typical) {
  std::vector<Term> made(kTerms);
  const auto steady = [&](std::size_t i, double sd) { made[i] = {sd * typical, Seconds(0)}; };
  const auto drifting = [&](std::size_t i, double sd, Seconds memory) { made[i] = {sd * typical, memory}; };
  steady(kOff, kPriorOff);
  steady(kOn, kPriorOn);
  steady(kLoad, kPriorLoad);
  steady(kLoadSquare, kPriorLoadSquare);
  steady(kAir, kPriorAir);
  steady(kAirLoad, kPriorAirLoad);
  steady(kChange, kPriorChange);
  steady(kStart, kPriorStart);
  steady(kBefore, kPriorBefore);
  drifting(kLevelDrift, kDriftLevel, kDriftMemory);
  drifting(kLoadDrift, kDriftLoad, kDriftMemory);
  drifting(kAirDrift, kDriftAir, kDriftMemory);
  for (std::size_t h = 0; h < kHarmonics; ++h)
    for (std::size_t part = 0; part < 2; ++part)
      drifting(kFirstHarmonic + 2 * h + part, kDriftHour / static_cast<double>(h + 1), kHourMemory);
  for (std::size_t i = kFirstUnit; i < kTerms; ++i) steady(i, kPriorUnit);
  return made;
}

double units(const PlantSample& sample) { return static_cast<double>(std::popcount(sample.units_on)); }
double unit_load(const PlantSample& sample) { return sample.load.value() / std::max(units(sample), 1.0); }

/// |z| of a normal is below this in half of all cases.
constexpr double kNormalMedian = 0.6745;

}  // namespace

Watts PlantInterval::mean_power() const {
  Watts sum;
  for (const PlantSample& sample : samples) sum += sample.power;
  return samples.empty() ? sum : sum / static_cast<double>(samples.size());
}

Watts PlantInterval::mean_load() const {
  Watts sum;
  for (const PlantSample& sample : samples) sum += sample.load;
  return samples.empty() ? sum : sum / static_cast<double>(samples.size());
}

Intervals intervals_of(std::span<const PlantSample> samples, const IntervalRule& rule) {
  Intervals made;
  const std::int64_t length = std::llround(rule.length.value() * 1e9);
  const auto number = [&](WallTime at) {
    const std::int64_t ns = at.nanoseconds();
    return ns / length - (ns % length < 0 ? 1 : 0);
  };
  std::optional<WallTime> last_start;
  Watts last_load;
  for (std::size_t first = 0; first < samples.size();) {
    std::size_t last = first;
    PlantInterval interval{WallTime(number(samples[first].at) * length), {}, {}, {}};
    if (first > 0 && samples[first].at - samples[first - 1].at < rule.length) interval.before = samples[first - 1];
    if (last_start && interval.start - *last_start <= rule.length * 1.5) interval.load_before = last_load;
    bool weather = true;
    for (; last < samples.size() && number(samples[last].at) == number(samples[first].at); ++last) {
      interval.samples.push_back(samples[last]);
      weather = weather && samples[last].air.has_value();
    }
    first = last;
    last_start = interval.start;
    last_load = interval.mean_load();
    if (interval.samples.size() < rule.fewest_samples)
      ++made.too_few_samples;
    else if (!weather)
      ++made.without_weather;
    else if (interval.mean_load() < rule.least_load)
      made.idle.push_back(std::move(interval));
    else
      made.counted.push_back(std::move(interval));
  }
  return made;
}

std::vector<double> PlantBaseline::features(const PlantInterval& interval) const {
  std::vector<double> x(kTerms, 0.0);
  const double share = 1.0 / static_cast<double>(interval.samples.size());
  const PlantSample* before = interval.before ? &*interval.before : nullptr;
  for (const PlantSample& sample : interval.samples) {
    const double n = units(sample);
    const double u = (unit_load(sample) - load_.middle) / load_.spread;
    const double v = (sample.air->value() - air_.middle) / air_.spread;
    // Beyond the loads that were seen the parabola goes on as its tangent.
    const double inside = std::clamp(u, load_.low, load_.high);
    x[kOff] += n > 0 ? 0 : share;
    x[kOn] += share * n;
    x[kLoad] += share * n * u;
    x[kLoadSquare] += share * n * inside * (2 * u - inside);
    x[kAir] += share * n * v;
    x[kAirLoad] += share * n * u * v;
    for (std::size_t i = 1; i < kMostUnits; ++i)
      if ((sample.units_on >> i & 1U) != 0) x[kFirstUnit + i - 1] += share;
    // Heat on its way: what the load was a sample ago, and whether the unit has just come on.
    const bool follows = before != nullptr && before->units_on == sample.units_on;
    if (n > 0 && follows) x[kChange] += share * (before->load - sample.load).value() / load_.spread;
    if (n > 0 && before != nullptr && before->units_on == 0) x[kStart] += share;
    before = &sample;
  }
  if (interval.load_before) x[kBefore] = x[kOn] * (*interval.load_before - interval.mean_load()).value() / load_.spread;
  x[kLevelDrift] = x[kOn];
  x[kLoadDrift] = x[kLoad];
  x[kAirDrift] = x[kAir];
  constexpr double kDay = 86400;
  const double angle = 2 * std::numbers::pi * std::fmod(interval.start.seconds(), kDay) / kDay;
  for (std::size_t h = 0; h < kHarmonics; ++h) {
    x[kFirstHarmonic + 2 * h] = x[kOn] * std::sin(static_cast<double>(h + 1) * angle);
    x[kFirstHarmonic + 2 * h + 1] = x[kOn] * std::cos(static_cast<double>(h + 1) * angle);
  }
  return x;
}

double PlantBaseline::noise(const PlantInterval& interval) const {
  const double load = interval.mean_load().value();
  const double rough = std::max(rough_level_ + rough_slope_ * load, 0.2 * typical_.value());
  std::size_t i = 0;
  while (i + 2 < kNoiseKnots && load > noise_at_[i + 1]) ++i;
  const double width = noise_at_[i + 1] - noise_at_[i];
  const double part = width > 0 ? std::clamp((load - noise_at_[i]) / width, 0.0, 1.0) : 0;
  return rough * (noise_fraction_[i] + part * (noise_fraction_[i + 1] - noise_fraction_[i]));
}

PlantBaseline::PlantBaseline(const PlantOptions& options)
    : options_(options), model_({}, kEvidenceHalfLife), interval_(options.level) {}

Result<> PlantBaseline::find_scales(std::span<const PlantInterval> train) {
  std::vector<double> loads, airs;
  RunningStats load, power, product;
  for (const PlantInterval& interval : train) {
    for (const PlantSample& sample : interval.samples) {
      if (sample.units_on == 0) continue;
      loads.push_back(unit_load(sample));
      airs.push_back(sample.air->value());
    }
    load.add(interval.mean_load().value());
    power.add(interval.mean_power().value());
  }
  constexpr double kDays = 2;
  if (static_cast<double>(train.size()) * options_.length.value() < kDays * 86400)
    return fail(ErrorCode::input,
                fmt::format("{} intervals of {} are too few to learn from", train.size(), format(options_.length)), {},
                "give at least two days, better four weeks");
  typical_ = Watts(power.mean());
  if (!(typical_ > Watts(0))) return fail(ErrorCode::input, "the plant draws no power in the training data");
  const auto scale = [](const std::vector<double>& values) {
    RunningStats stats;
    for (const double v : values) stats.add(v);
    Scale made{stats.mean(), stats.sd(), 0, 0};
    if (made.spread > 0) {
      made.low = (*std::min_element(values.begin(), values.end()) - made.middle) / made.spread;
      made.high = (*std::max_element(values.begin(), values.end()) - made.middle) / made.spread;
    }
    return made;
  };
  load_ = scale(loads);
  air_ = scale(airs);
  constexpr double kLeastVariation = 1e-3;
  if (!(load_.spread > kLeastVariation * std::abs(load_.middle)))
    return fail(ErrorCode::input, "the load does not vary, so nothing can be learned from it", {},
                "give a longer stretch, or another column as load");
  if (!(air_.spread > 0)) air_.spread = 1;  // one temperature all the time: its coefficients stay at their prior
  for (const PlantInterval& interval : train)
    product.add((interval.mean_load().value() - load.mean()) * (interval.mean_power().value() - power.mean()));
  rough_slope_ = load.variance() > 0 ? std::max(product.mean() / load.variance(), 0.0) : 0;
  rough_level_ = power.mean() - rough_slope_ * load.mean();
  noise_fraction_.fill(kFirstNoiseFraction);
  return {};
}

void PlantBaseline::find_noise(std::span<const PlantInterval> train) {
  std::vector<std::pair<double, double>> by_load;
  for (const PlantInterval& interval : train) {
    const double error = std::abs((interval.mean_power() - forecast(interval).power).value());
    by_load.emplace_back(interval.mean_load().value(), error / noise(interval) * kFirstNoiseFraction);
  }
  std::sort(by_load.begin(), by_load.end());
  std::array<double, kNoiseKnots> fraction{};
  for (std::size_t i = 0; i < kNoiseKnots; ++i) {
    std::vector<double> loads, errors;
    for (std::size_t j = i * by_load.size() / kNoiseKnots; j < (i + 1) * by_load.size() / kNoiseKnots; ++j) {
      loads.push_back(by_load[j].first);
      errors.push_back(by_load[j].second);
    }
    noise_at_[i] = median(loads);
    // A meter cannot be believed to a part in a thousand.
    fraction[i] = std::clamp(median(errors) / kNormalMedian, 0.001, 1.0);
  }
  noise_fraction_ = fraction;
}

std::vector<double> PlantBaseline::run_through(std::span<const PlantInterval> train) {
  constexpr Seconds kUnsettled = Seconds(7 * 86400.0);
  model_ = AdaptiveRegression(plant_terms(typical_.value()), kEvidenceHalfLife);
  std::vector<double> scores;
  for (const PlantInterval& interval : train) {
    const PlantForecast foretold = foretell(interval);
    if (interval.start - train.front().start >= kUnsettled && foretold.mixed.sd > 0)
      scores.push_back(std::abs((interval.mean_power() - foretold.power).value()) / foretold.mixed.sd);
    observe(interval, foretold);
  }
  return scores;
}

Result<PlantBaseline> PlantBaseline::fit(std::span<const PlantInterval> train, const PlantOptions& options) {
  PlantBaseline made(options);
  FLYBALL_TRY(made.find_scales(train));
  made.run_through(train);
  made.settle();
  made.find_noise(train);
  made.interval_.start(made.run_through(train));
  made.balancing_ = true;
  return made;
}

PlantForecast PlantBaseline::forecast(const PlantInterval& interval) const {
  PlantForecast made;
  made.mixed = model_.forecast(features(interval), noise(interval), interval.start);
  double paid = 0;
  if (balancing_) {
    const double faded = owed_days_ * std::exp(-std::max((interval.start - owed_at_) / kOwedMemory, 0.0));
    paid = std::clamp(kPayBackPerDay * faded, -kMostPaidFraction, kMostPaidFraction) * typical_.value();
  }
  made.power = Watts(made.mixed.mean + paid);
  const Watts half = Watts(made.mixed.sd * interval_.radius());
  made.low = made.power - half;
  made.high = made.power + half;
  return made;
}

PlantForecast PlantBaseline::foretell(const PlantInterval& interval) {
  const WallTime known = interval.start - options_.delay;
  while (!pending_.empty() && pending_.front().interval.start + options_.length <= known) {
    learn(pending_.front());
    pending_.pop_front();
  }
  return forecast(interval);
}

void PlantBaseline::observe(const PlantInterval& interval, const PlantForecast& foretold) {
  pending_.push_back({interval, foretold});
}

void PlantBaseline::settle() {
  for (const Pending& pending : pending_) learn(pending);
  pending_.clear();
}

void PlantBaseline::begin_again(WallTime start) {
  settle();
  const Seconds apart = start > last_ ? start - last_ : last_ - start;
  model_.jump(start, apart);
  owed_days_ *= std::exp(-(apart / kOwedMemory));
  owed_at_ = start;
  last_ = start;
}

void PlantBaseline::learn(const Pending& pending) {
  const PlantInterval& interval = pending.interval;
  const Watts measured = interval.mean_power();
  const PlantForecast& foretold = pending.foretold;
  model_.learn(features(interval), measured.value(), noise(interval), interval.start, &foretold.mixed);
  last_ = interval.start;
  if (!balancing_) return;
  if (foretold.mixed.sd > 0) interval_.observe(std::abs((measured - foretold.power).value()) / foretold.mixed.sd);
  owed_days_ *= std::exp(-std::max((interval.start - owed_at_) / kOwedMemory, 0.0));
  owed_days_ += (measured - foretold.power) / typical_ * (options_.length.value() / 86400);
  owed_at_ = interval.start;
}

std::vector<PlantBaseline::Coefficient> PlantBaseline::coefficients() const {
  static constexpr std::pair<TermIndex, std::string_view> kNamed[] = {{kOff, "no unit runs"},
                                                                      {kOn, "one unit, middle of load and air"},
                                                                      {kLoad, "load, a step"},
                                                                      {kLoadSquare, "load squared, a step squared"},
                                                                      {kAir, "wet bulb, a step"},
                                                                      {kAirLoad, "load times wet bulb"},
                                                                      {kChange, "load falling, a step a sample"}};
  std::vector<Coefficient> made;
  const RecursiveRegression& middle = model_.middle();
  for (const auto& [index, name] : kNamed)
    made.push_back({name, Watts(middle.coefficients()[index]), Watts(middle.sd(index))});
  return made;
}

std::string PlantBaseline::text() const {
  std::string made = "flyball plant baseline 1\n";
  const auto add = [&](std::string_view name, std::initializer_list<double> values) {
    made += name;
    for (const double value : values) made += ' ' + format_exact(value);
    made += '\n';
  };
  add("delay_s length_s level_fraction", {options_.delay.value(), options_.length.value(), options_.level});
  add("load_w", {load_.middle, load_.spread, load_.low, load_.high});
  add("air_celsius", {air_.middle, air_.spread});
  add("power_w", {typical_.value(), rough_level_, rough_slope_});
  for (std::size_t i = 0; i < kNoiseKnots; ++i) add("noise_w_fraction", {noise_at_[i], noise_fraction_[i]});
  add("radius", {interval_.radius()});
  add("owed_days", {owed_days_});
  for (const double weight : model_.weights()) add("memory_weight", {weight});
  const RecursiveRegression& middle = model_.middle();
  for (std::size_t i = 0; i < kTerms; ++i) add("term_w", {middle.coefficients()[i], middle.sd(i)});
  return made;
}

std::string hash_of(std::span<const PlantInterval> intervals) {
  std::string text;
  for (const PlantInterval& interval : intervals)
    for (const PlantSample& s : interval.samples)
      text += fmt::format("{} {} {} {} {}\n", s.at.nanoseconds(), format_exact(s.load.value()),
                          format_exact(s.power.value()), s.units_on, s.air ? format_exact(s.air->value()) : "");
  return sha256_hex(text);
}

std::vector<PlantForecast> foretell_all(PlantBaseline& baseline, std::span<const PlantInterval> intervals) {
  std::vector<PlantForecast> made;
  for (const PlantInterval& interval : intervals) {
    made.push_back(baseline.foretell(interval));
    baseline.observe(interval, made.back());
  }
  return made;
}

}  // namespace flyball::facility
