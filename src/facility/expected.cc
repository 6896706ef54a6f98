#include "facility/expected.h"

#include <algorithm>
#include <cmath>

#include "base/stats.h"

namespace flyball::facility {
namespace {

constexpr std::size_t kFewestLessons = 48;
/// Contiguous, so that what is foretold lies days from what was learned.
constexpr std::size_t kParts = 4;
constexpr double kNormalMedian = 0.6745;
/// Doubt of the expectation beyond which conditions count as new, in long-run sd of a block.
constexpr double kNewDoubt = 0.3;
/// A block so far away teaches nothing, even where conditions are new.
constexpr double kAbsurd = 6;

std::vector<Term> terms_of(std::span<const double> prior_sd) {
  std::vector<Term> terms;
  for (const double sd : prior_sd) terms.push_back({sd, Seconds(0)});
  return terms;
}

double robust_sd(std::span<const double> values) {
  std::vector<double> away;
  away.reserve(values.size());
  for (const double v : values) away.push_back(std::abs(v));
  return median(away) / kNormalMedian;
}

RecursiveRegression taught(const std::vector<Term>& terms, std::span<const Lesson> lessons, double noise,
                           std::size_t leave_from, std::size_t leave_to) {
  RecursiveRegression model(terms);
  for (std::size_t i = 0; i < lessons.size(); ++i)
    if (i < leave_from || i >= leave_to) model.learn(lessons[i].x, lessons[i].y, noise, lessons[i].at);
  return model;
}

/// What is left of each lesson where its part was left out.
std::vector<double> left_over(const std::vector<Term>& terms, std::span<const Lesson> lessons, double noise) {
  std::vector<double> made;
  const std::size_t n = lessons.size();
  for (std::size_t part = 0; part < kParts; ++part) {
    const std::size_t from = part * n / kParts, to = (part + 1) * n / kParts;
    const RecursiveRegression model = taught(terms, lessons, noise, from, to);
    for (std::size_t i = from; i < to; ++i)
      made.push_back(lessons[i].y - model.forecast(lessons[i].x, noise, lessons[i].at).mean);
  }
  return made;
}

}  // namespace

double variance_inflation(std::span<const double> values, double centre) {
  const std::size_t most = values.size() / 4;
  double squares = 0;
  for (const double v : values) squares += (v - centre) * (v - centre);
  double sum = 1;
  for (std::size_t lag = 1; lag <= most && squares > 0; ++lag) {
    double products = 0;
    for (std::size_t i = lag; i < values.size(); ++i) products += (values[i] - centre) * (values[i - lag] - centre);
    sum += 2 * (1 - static_cast<double>(lag) / static_cast<double>(most + 1)) * products / squares;
  }
  return std::max(sum, 1.0);
}

Expected::Expected(std::span<const double> prior_sd) : terms_(terms_of(prior_sd)), model_(terms_) {}

Expected Expected::learn(std::span<const Lesson> lessons, std::span<const double> prior_sd, double least_sd,
                         bool rare) {
  Expected made(prior_sd);
  if (lessons.size() < kFewestLessons) return made;
  std::vector<double> values;
  for (const Lesson& lesson : lessons) values.push_back(lesson.y);
  const double middle = median(values);
  for (double& v : values) v -= middle;
  // Twice: the noise that is found weighs the lessons against the priors.
  made.sd_ = std::max(0.3 * robust_sd(values), least_sd);
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<double> left = left_over(made.terms_, lessons, made.sd_);
    RunningStats all;
    for (const double v : left) all.add(v);
    made.sd_ = std::max(rare ? all.sd() : robust_sd(left), least_sd);
    // What a few wild blocks may say about long runs is bounded.
    for (double& v : left) v = std::clamp(v, -4 * made.sd_, 4 * made.sd_);
    made.run_length_ = variance_inflation(left, 0);
  }
  made.model_ = taught(made.terms_, lessons, made.effective_sd(), 0, 0);
  made.learned_ = true;
  return made;
}

double Expected::effective_sd() const { return sd_ * std::sqrt(run_length_); }

Surprise Expected::take(WallTime at, std::span<const double> x, double y, bool suspicion) {
  Surprise made;
  if (!learned_) return made;
  const double noise = effective_sd();
  const Forecast forecast = model_.forecast(x, noise, at);
  const double doubt = std::sqrt(std::max(forecast.sd * forecast.sd - noise * noise, 0.0));
  made.expected = forecast.mean;
  made.difference = y - forecast.mean;
  made.sd = forecast.sd;
  made.z = made.difference / forecast.sd;
  made.doubt = doubt / noise;
  made.known = doubt <= kNewDoubt * noise;
  if (made.known || suspicion) return made;
  if (std::abs(made.z) < kAbsurd) {
    model_.learn(x, y, noise, at);
  } else {
    made.known = true;
  }
  return made;
}

}  // namespace flyball::facility
