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
constexpr double kFirstNoise = 0.01;
constexpr Seconds kEvidenceHalfLife = Seconds(86400.0);
// Fewer points say nothing about a tail; after as many the coefficients have left their priors.
constexpr std::uint64_t kLearnedAfter = 50;
// After five lags less than 1 % of a step is left.
constexpr double kSettledAfterLags = 5;
// A day at one point a second; what is more teaches early.
constexpr std::size_t kMostPending = 86'400;
constexpr double kNoiseRate = 0.01, kLeastNoise = 1e-4;

enum TermIndex : std::size_t { kLevel, kLoad, kAnswer, kAir, kAirAnswer, kDrift, kTermCount };

std::vector<Term> terms(Seconds memory) {
  std::vector<Term> made(kTermCount);
  made[kLevel] = {kPriorLevel, Seconds(0)};
  made[kLoad] = {kPriorLoad, Seconds(0)};
  made[kAnswer] = {kPriorAnswer, Seconds(0)};
  made[kAir] = {kPriorAir, Seconds(0)};
  made[kAirAnswer] = {kPriorAirAnswer, Seconds(0)};
  made[kDrift] = {kDriftLevel, memory};
  return made;
}

}  // namespace

Result<PhaseLibrary> PhaseLibrary::make(const LibraryOptions& options) {
  if (!(options.it_rating > Watts(0)) || !options.it_rating.finite())
    return fail(ErrorCode::input, "the IT rating is not stated", "it_rating", "give the greatest IT power");
  if (!(options.air_spread > Celsius(0))) return fail(ErrorCode::input, "the spread of the air is 0", "air_spread");
  return PhaseLibrary(options);
}

PhaseLibrary::Baseline& PhaseLibrary::baseline(const PhaseKey& key) {
  const auto found = baselines_.find(key);
  if (found != baselines_.end()) return found->second;
  constexpr double kRate = 0.02;
  return baselines_
      .emplace(key, Baseline{AdaptiveRegression(terms(options_.drift_memory), kEvidenceHalfLife),
                             AdaptiveInterval(options_.level, kRate), AdaptiveInterval(options_.level, kRate), 0,
                             kFirstNoise})
      .first->second;
}

void PhaseLibrary::phase(WallTime at, const PhaseKey& key) {
  if (changed_ && key == now_) return;
  now_ = key;
  changed_ = at;
}

void PhaseLibrary::answer(WallTime at, Watts it) {
  const double load = it / options_.it_rating;
  if (!felt_.started) {
    felt_ = {true, at, load, load, load, {}};
    return;
  }
  // What left the dead time since: each piece holds until the next.
  felt_.waiting.emplace_back(at + options_.dead_time, load);
  const auto move = [&](WallTime to) {
    const double h = std::max((to - felt_.at).value(), 0.0);
    const auto share = [&](Seconds lag) { return lag > Seconds(0) ? 1 - std::exp(-h / lag.value()) : 1.0; };
    felt_.first += (felt_.input - felt_.first) * share(options_.first_lag);
    felt_.second += (felt_.first - felt_.second) * share(options_.second_lag);
    felt_.at = std::max(felt_.at, to);
  };
  std::size_t left = 0;
  for (; left < felt_.waiting.size() && felt_.waiting[left].first <= at; ++left) {
    move(felt_.waiting[left].first);
    felt_.input = felt_.waiting[left].second;
    // Without lags the answer is there at once.
    if (!(options_.first_lag > Seconds(0))) felt_.first = felt_.input;
    if (!(options_.second_lag > Seconds(0))) felt_.second = felt_.first;
  }
  felt_.waiting.erase(felt_.waiting.begin(), felt_.waiting.begin() + static_cast<std::ptrdiff_t>(left));
  move(at);
}

Expectation PhaseLibrary::take(const FacilityPoint& point) {
  while (!pending_.empty() && (pending_.front().at + options_.delay <= point.at || pending_.size() >= kMostPending)) {
    learn(pending_.front());
    pending_.pop_front();
  }
  answer(point.at, point.it);
  const Baseline& known = baseline(now_);
  const double load = point.it / options_.it_rating;
  const double air = point.air ? (*point.air - options_.air_middle) / options_.air_spread : 0;
  Pending pending{now_, point.at, {1, load, felt_.second, air, air * felt_.second, 1}, 0, {}, false};
  pending.beside = (point.facility - point.it) / options_.it_rating;
  pending.foretold = known.model.forecast(pending.x, known.noise, point.at);
  const Seconds settle = options_.dead_time + (options_.first_lag + options_.second_lag) * kSettledAfterLags;
  pending.transient = changed_ && point.at - *changed_ < settle;
  const AdaptiveInterval& interval = pending.transient ? known.unsettled : known.settled;
  const double half = interval.radius() * pending.foretold.sd;
  Expectation made;
  made.transient = pending.transient;
  made.expected = point.it + options_.it_rating * pending.foretold.mean;
  made.low = made.expected - options_.it_rating * half;
  made.high = made.expected + options_.it_rating * half;
  made.learned = known.points >= kLearnedAfter;
  if (!std::isfinite(pending.beside)) return made;
  made.deviates = made.learned && !made.transient && std::abs(pending.beside - pending.foretold.mean) > half;
  if (!frozen_) pending_.push_back(std::move(pending));
  return made;
}

void PhaseLibrary::learn(const Pending& pending) {
  static_assert(kTermCount == kTerms);
  Baseline& known = baseline(pending.key);
  const double error = std::abs(pending.beside - pending.foretold.mean);
  if (known.points >= kLearnedAfter)
    (pending.transient ? known.unsettled : known.settled).observe(error / pending.foretold.sd);
  ++known.points;
  known.model.learn(pending.x, pending.beside, known.noise, pending.at, &pending.foretold);
  // The noise by its median: a step of sign, in ratings.
  constexpr double kNormalMedian = 0.6745;
  known.noise *= std::exp(kNoiseRate * (error > kNormalMedian * known.noise ? 1 : -1));
  known.noise = std::max(known.noise, kLeastNoise);
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
