#include "facility/relief.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

namespace flyball::facility {
namespace {

/// What is capped; the answer bends so little that any small share tells the same.
constexpr double kCapped = 0.1;
constexpr double kLeastIt = 0.002;  ///< quantile of the IT that no cap reaches
constexpr Seconds kBlock = Seconds(300);
constexpr int kParts = 10;  ///< of the records, left out in turn: days, so that a front or a job is in one of them
constexpr double kFirstNoise = 0.01;
/// Two class 1 meters, as in `PueOptions`.
constexpr double kMeters = 0.00577 * 1.41421356;

/// What a type of job draws of its own, by its place in the rooms, say; and of as many types.
constexpr double kPriorJob = 0.003;
constexpr std::size_t kMostJobs = 16;

/// A few minutes: what explains, types of job last, and what the facility draws beside the heat, in ratings.
struct Block {
  std::vector<double> x;
  double beside = 0;
  WallTime at;
  int part = 0;
};

/// What a cap takes away, summed over moments.
struct Capped {
  std::vector<double> x;
  double it = 0, heat = 0;  ///< in ratings
  double sum_it_w = 0, sum_air_c = 0;
  std::size_t count = 0, with_air = 0;

  void take(const FacilityPoint& point, const ResponseModel::Moment& was, const ResponseModel::Moment& less) {
    x.resize(was.x.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += was.x[i] - less.x[i];
    it += was.now.load - less.now.load;
    heat += was.now.heat - less.now.heat;
    sum_it_w += point.it.value();
    ++count;
    if (point.air) sum_air_c += point.air->value(), ++with_air;
  }
  double relief(std::span<const double> coefficients) const {
    double sum = heat;
    for (std::size_t i = 0; i < x.size(); ++i) sum += coefficients[i] * x[i];
    return sum / it - 1;
  }
};

/// Without drift: over days it would take for a wandering slope what the load does.
std::vector<Term> steady_terms(const ResponseModel& response) {
  std::vector<Term> made = response.terms();
  std::erase_if(made, [](const Term& term) { return term.memory > Seconds(0); });
  return made;
}

std::vector<double> fit(std::span<const Block> blocks, const std::vector<Term>& terms, double noise, int without) {
  RecursiveRegression model(terms);
  for (const Block& block : blocks)
    if (block.part != without) model.learn(std::span(block.x).first(terms.size()), block.beside, noise, block.at);
  return {model.coefficients().begin(), model.coefficients().end()};
}

double scatter(std::span<const Block> blocks, std::span<const double> coefficients) {
  double squares = 0;
  for (const Block& block : blocks) {
    double error = block.beside;
    for (std::size_t i = 0; i < coefficients.size(); ++i) error -= coefficients[i] * block.x[i];
    squares += error * error;
  }
  return std::sqrt(squares / static_cast<double>(blocks.size()));
}

/// The fits to all, and to all less each part.
struct Fits {
  std::vector<double> all;
  std::vector<std::vector<double>> without;
};

Fits fits_of(std::span<const Block> blocks, const std::vector<Term>& terms) {
  Fits made;
  constexpr int kNone = -1;
  constexpr double kLeastNoise = 1e-5;
  const double noise = std::max(scatter(blocks, fit(blocks, terms, kFirstNoise, kNone)), kLeastNoise);
  made.all = fit(blocks, terms, noise, kNone);
  for (int part = 0; part < kParts; ++part) made.without.push_back(fit(blocks, terms, noise, part));
  return made;
}

/// `alike`: jobs differ by nothing but their load; `own`: each type has a level of its own. Which of them holds, no
/// meter tells, and the load moves mostly with the jobs: the answer is between the two, and so is its doubt.
Estimate estimate_of(const Capped& capped, const Fits& alike, const Fits& own, double level) {
  const auto between = [&](const auto& one, const auto& other) {
    return (capped.relief(one) + capped.relief(other)) / 2;
  };
  const double value = between(alike.all, own.all), apart = (capped.relief(own.all) - capped.relief(alike.all)) / 2;
  RunningStats parts;
  for (std::size_t i = 0; i < kParts; ++i) parts.add(between(alike.without[i], own.without[i]));
  const double n = kParts, days = parts.variance() * (n - 1) * (n - 1) / n;
  const double meters = kMeters * (1 + value);
  const double t = student_t(level, n - 1);
  const double half = t * std::sqrt(days + apart * apart + meters * meters);
  // Cooling takes no more for less heat: what the metered stage saves is the least, as far as its meters tell.
  const double least = capped.heat / capped.it - 1 - t * kMeters;
  return {value, std::max(value - half, std::min(least, value)), value + half, level};
}

/// Everything that one walk over the records gives.
struct Walk {
  std::vector<Block> blocks;
  std::array<Capped, 4> capped;  ///< all; the coldest, middle and warmest third
};

/// Up to so many types of job, each with its place behind the terms.
std::map<std::string, std::size_t> jobs_of(std::span<const FacilityRecord> records) {
  std::map<std::string, std::size_t> made;
  for (const FacilityRecord& record : records)
    if (made.size() < kMostJobs) made.emplace(record.key.job_type, made.size());
  return made;
}

Walk walk_of(const ResponseModel& response, std::span<const FacilityRecord> records, std::size_t terms) {
  std::vector<double> it, air;
  for (const FacilityRecord& record : records) {
    it.push_back(record.point.it.value());
    if (record.point.air) air.push_back(record.point.air->value());
  }
  const double least = quantile(it, kLeastIt), cold = quantile(air, 1 / 3.0), warm = quantile(air, 2 / 3.0);
  const auto jobs = jobs_of(records);
  const WallTime first = records.front().point.at;
  const Seconds length = records.back().point.at - first;
  ResponseModel was = response, less = response;
  Walk made;
  Block block;
  double count = 0;
  for (const FacilityRecord& record : records) {
    const FacilityPoint& point = record.point;
    FacilityPoint capped = point;
    capped.it = point.it - Watts(kCapped * std::max(point.it.value() - least, 0.0));
    const auto before = was.take(point), after = less.take(capped);
    made.capped[0].take(point, before, after);
    if (point.air)
      made.capped[point.air->value() < cold ? 1 : (point.air->value() < warm ? 2 : 3)].take(point, before, after);
    const double beside = point.facility / response.rating() - before.now.heat;
    if (point.exceptional || !std::isfinite(beside)) continue;
    if (count == 0) block = {std::vector<double>(terms + jobs.size()), 0, point.at, 0};
    for (std::size_t i = 0; i < terms; ++i) block.x[i] += before.x[i];
    if (const auto job = jobs.find(record.key.job_type); job != jobs.end()) block.x[terms + job->second] += 1;
    block.beside += beside;
    ++count;
    if (point.at - block.at < kBlock) continue;
    for (double& value : block.x) value /= count;
    block.beside /= count;
    block.part = std::min(static_cast<int>(kParts * ((block.at - first) / length)), kParts - 1);
    made.blocks.push_back(block);
    count = 0;
  }
  for (Capped& each : made.capped) each.x.resize(terms);
  return made;
}

}  // namespace

Result<std::vector<Relief>> relief_of(const Building& building, std::span<const FacilityRecord> records, double level) {
  std::vector<FacilityPoint> points;
  points.reserve(records.size());
  for (const FacilityRecord& record : records) {
    points.push_back(record.point);
    // Which chillers run is an answer to the load: given them, the load would seem to do less than it does.
    points.back().chillers_on.reset();
  }
  FLYBALL_ASSIGN(const ResponseModel response, ResponseModel::make(points, building.library.response()->options()));
  const std::vector<Term> alike = steady_terms(response);
  std::vector<Term> own = alike;
  own.resize(alike.size() + jobs_of(records).size(), Term{kPriorJob, Seconds(0)});
  const Walk walk = walk_of(response, records, alike.size());
  if (!(walk.capped[0].it > 0) || walk.blocks.size() < 2 * kParts)
    return fail(ErrorCode::input, "the IT's power never moves, or the recording is too short", "relief",
                "give days with loads that differ");
  const Fits alike_fits = fits_of(walk.blocks, alike), own_fits = fits_of(walk.blocks, own);
  std::vector<Relief> made;
  for (const Capped& capped : walk.capped) {
    if (!(capped.it > 0)) continue;
    const auto mean = [](double sum, std::size_t count) { return sum / static_cast<double>(count); };
    Relief one{Watts(mean(capped.sum_it_w, capped.count)), {}, estimate_of(capped, alike_fits, own_fits, level)};
    if (capped.with_air > 0) one.air = Celsius(mean(capped.sum_air_c, capped.with_air));
    made.push_back(one);
  }
  return made;
}

}  // namespace flyball::facility
