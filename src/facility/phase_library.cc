#include "facility/phase_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/checksum.h"
#include "base/text.h"

namespace flyball::facility {
namespace {

// Of the IT rating, before anything is known: fans and lighting, losses, cooling by load and air.
constexpr double kPriorLevel = 0.3, kPriorLoad = 0.3, kPriorAnswer = 0.5, kPriorAir = 0.1, kPriorAirAnswer = 0.1;
constexpr double kDriftLevel = 0.02;
// Beside what all phases share there is little.
constexpr double kSharedScale = 0.05;
constexpr double kFirstNoise = 0.01;
constexpr Seconds kEvidenceHalfLife = Seconds(86400.0);
// Fewer points say nothing about a tail; after as many the coefficients have left their priors.
constexpr std::uint64_t kLearnedAfter = 50;
// After five lags less than 1 % of a step is left.
constexpr double kSettledAfterLags = 5;
// A day at one point a second; what is more teaches early.
constexpr std::size_t kMostPending = 86'400;
constexpr double kNoiseRate = 0.01, kLeastNoise = 1e-4;
constexpr double kErrorFade = 0.999, kMostAlike = 0.98;
/// Errors of one weather are alike: a week or so sees a tail.
constexpr Seconds kScoreHalfLife = Seconds(8 * 86400.0);
/// So much of the rating may still be on its way when a change counts as answered.
constexpr double kAnswered = 0.02;

enum TermIndex : std::size_t { kLevel, kLoad, kAnswer, kAir, kAirAnswer, kDrift, kTermCount };

std::vector<Term> terms(Seconds memory, bool shared) {
  std::vector<Term> made(kTermCount);
  made[kLevel] = {kPriorLevel, Seconds(0)};
  made[kLoad] = {kPriorLoad, Seconds(0)};
  made[kAnswer] = {kPriorAnswer, Seconds(0)};
  made[kAir] = {kPriorAir, Seconds(0)};
  made[kAirAnswer] = {kPriorAirAnswer, Seconds(0)};
  if (shared)
    for (Term& term : made) term.prior_sd *= kSharedScale;
  made[kDrift] = {shared ? kDriftLevel / 2 : kDriftLevel, memory};
  return made;
}

}  // namespace

PhaseLibrary::PhaseLibrary(const LibraryOptions& options)
    : options_(options),
      felt_(options.dead_time, {{options.first_lag, options.second_lag}}),
      settled_(options.level, kScoreHalfLife),
      unsettled_(options.level, kScoreHalfLife),
      noise_(kFirstNoise) {}

Result<PhaseLibrary> PhaseLibrary::make(const LibraryOptions& options) {
  if (!(options.it_rating > Watts(0)) || !options.it_rating.finite())
    return fail(ErrorCode::input, "the IT rating is not stated", "it_rating", "give the greatest IT power");
  if (!(options.air_spread > Celsius(0))) return fail(ErrorCode::input, "the spread of the air is 0", "air_spread");
  return PhaseLibrary(options);
}

Result<PhaseLibrary> PhaseLibrary::make(LibraryOptions options, ResponseModel response) {
  options.it_rating = response.rating();
  options.air_middle = response.air_middle();
  options.dead_time = response.options().dead_time;
  options.first_lag = response.options().first_lag;
  options.second_lag = response.options().second_lag;
  options.drift_memory = response.options().drift_memory;
  FLYBALL_ASSIGN(PhaseLibrary made, make(options));
  made.response_ = std::move(response);
  return made;
}

double PhaseLibrary::Baseline::independent_noise() const {
  const double alike = squares > 0 ? std::clamp(products / squares, 0.0, kMostAlike) : 0;
  return noise * std::sqrt((1 + alike) / (1 - alike));
}

double PhaseLibrary::Pending::sd() const { return std::hypot(foretold.sd, shared.sd); }

PhaseLibrary::Baseline& PhaseLibrary::baseline(const PhaseKey& key) {
  const auto found = baselines_.find(key);
  if (found != baselines_.end()) return found->second;
  Baseline made{AdaptiveRegression(terms(options_.drift_memory, response_.has_value()), kEvidenceHalfLife),
                RollingInterval(options_.level, kScoreHalfLife),
                RollingInterval(options_.level, kScoreHalfLife),
                0,
                0,
                noise_};
  made.settled.start(settled_);
  made.unsettled.start(unsettled_);
  return baselines_.emplace(key, std::move(made)).first->second;
}

void PhaseLibrary::phase(WallTime at, const PhaseKey& key) {
  if (changed_ && key == now_) return;
  now_ = key;
  changed_ = at;
}

Expectation PhaseLibrary::take(const FacilityPoint& point) {
  while (!pending_.empty() && (pending_.front().at + options_.delay <= point.at || pending_.size() >= kMostPending)) {
    learn(pending_.front());
    pending_.pop_front();
  }
  const double load = point.it / options_.it_rating;
  felt_.take(point.at, load);
  Baseline& known = baseline(now_);
  const double air = point.air ? (*point.air - options_.air_middle) / options_.air_spread : 0;
  Pending pending{now_, point.at, {1, load, felt_.felt(), air, air * felt_.felt(), 1}, {}, 0, {}, {}, false, false, 0};
  double given = load;
  if (response_) {
    moment_ = response_->take(point);
    given = moment_.now.heat;
    pending.shared = response_->forecast(moment_, 0);
    pending.moment = moment_;
  }
  pending.beside = point.facility / options_.it_rating - given;
  pending.foretold = known.model.forecast(pending.x, known.noise, point.at);
  const Seconds settle = options_.dead_time + (options_.first_lag + options_.second_lag) * kSettledAfterLags;
  pending.transient = changed_ && point.at - *changed_ < settle;
  if (response_) {
    const bool answered = std::abs(moment_.now.felt - moment_.now.heat) < kAnswered;
    pending.transient = pending.transient && !answered;
  }
  const RollingInterval& interval = pending.transient ? known.unsettled : known.settled;
  const double half = interval.radius() * pending.sd();
  Expectation made;
  made.transient = pending.transient;
  made.expected = options_.it_rating * (given + pending.mean());
  made.low = made.expected - options_.it_rating * half;
  made.high = made.expected + options_.it_rating * half;
  made.learned = known.points >= kLearnedAfter;
  if (!std::isfinite(pending.beside) || point.exceptional) return made;
  pending.inside = std::abs(pending.beside - pending.mean()) <= half;
  made.deviates = made.learned && !made.transient && !pending.inside;
  if (!frozen_) {
    pending.before = known.waiting++;
    pending_.push_back(std::move(pending));
  }
  return made;
}

void PhaseLibrary::settle() {
  for (const Pending& pending : pending_) learn(pending);
  pending_.clear();
}

void PhaseLibrary::learn(const Pending& pending) {
  static_assert(kTermCount == kTerms);
  Baseline& known = baseline(pending.key);
  const double error = pending.beside - pending.mean();
  if (known.points >= kLearnedAfter) {
    const double score = std::abs(error) / pending.sd();
    RollingInterval& of_all = pending.transient ? unsettled_ : settled_;
    of_all.observe(pending.at, score, pending.inside, 2 * pending_.size());
    (pending.transient ? known.unsettled : known.settled)
        .observe(pending.at, score, pending.inside, pending.before + known.waiting, &of_all);
  }
  if (known.waiting > 0) --known.waiting;
  ++known.points;
  const double noise = response_ ? known.independent_noise() : known.noise;
  double left = pending.beside;
  if (response_) {
    left -= response_->forecast(pending.moment, 0).mean;
    response_->learn(pending.moment, pending.beside - known.model.forecast(pending.x, 0, pending.at).mean, noise,
                     &pending.shared);
  }
  known.model.learn(pending.x, left, noise, pending.at, &pending.foretold);
  // The noise by its median: a step of sign, in ratings.
  constexpr double kNormalMedian = 0.6745;
  for (double* noise_sd : {&known.noise, &noise_}) {
    *noise_sd *= std::exp(kNoiseRate * (std::abs(error) > kNormalMedian * *noise_sd ? 1 : -1));
    *noise_sd = std::max(*noise_sd, kLeastNoise);
  }
  known.products = kErrorFade * known.products + error * known.last_error;
  known.squares = kErrorFade * known.squares + error * error;
  known.last_error = error;
}

std::vector<PhaseLibrary::Entry> PhaseLibrary::entries() const {
  std::vector<Entry> made;
  made.reserve(baselines_.size());
  for (const auto& [key, known] : baselines_)
    made.push_back({key, known.points, known.settled.coverage_fraction(), known.settled.radius()});
  return made;
}

std::string PhaseLibrary::text() const {
  std::string made = "flyball phase library 1\n";
  const auto add = [&](std::string_view name, double value) {
    made += fmt::format("{} {}\n", name, format_exact(value));
  };
  add("it_rating_w", options_.it_rating.value());
  add("air_middle_c", options_.air_middle.value());
  add("air_spread_c", options_.air_spread.value());
  add("dead_time_s", options_.dead_time.value());
  add("first_lag_s", options_.first_lag.value());
  add("second_lag_s", options_.second_lag.value());
  add("delay_s", options_.delay.value());
  add("level_fraction", options_.level);
  add("drift_memory_s", options_.drift_memory.value());
  if (response_) made += response_->text();
  for (const auto& [key, known] : baselines_) {
    made += fmt::format("baseline {} {} {}\n", to_string(key.phase), known.points, key.job_type);
    add("noise", known.noise);
    add("radius", known.settled.radius());
    add("radius_transient", known.unsettled.radius());
    for (const double weight : known.model.weights()) add("weight", weight);
    const RecursiveRegression& middle = known.model.middle();
    for (std::size_t i = 0; i < kTermCount; ++i)
      made += fmt::format("term {} {}\n", format_exact(middle.coefficients()[i]), format_exact(middle.sd(i)));
  }
  return made;
}

namespace {

std::string hash_of(const BaselineVersion& version) {
  // Lengths in front, so that no two versions share one text.
  std::string text;
  for (const std::string* part : {&version.parent, &version.inputs_hash, &version.reason, &version.content})
    text += fmt::format("{}:{}\n", part->size(), *part);
  text += format_rfc3339(version.valid_from);
  return sha256_hex(text);
}

}  // namespace

BaselineVersion version_of(std::string content, std::string inputs_hash, std::string parent, std::string reason,
                           WallTime valid_from) {
  BaselineVersion made{{},         std::move(parent), std::move(inputs_hash), std::move(reason),
                       valid_from, std::move(content)};
  made.hash = hash_of(made);
  return made;
}

bool is_sound(const BaselineVersion& version) { return version.hash == hash_of(version); }

}  // namespace flyball::facility
