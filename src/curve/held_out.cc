#include "curve/held_out.h"

#include <cmath>
#include <map>

#include "base/random.h"
#include "curve/posterior.h"

namespace flyball::curve {
namespace {

constexpr int kResamples = 1000;

ErrorSummary summarize(const std::vector<double>& errors) {
  if (errors.empty()) return {};
  return {errors.size(), median(errors), quantile(errors, 0.95)};
}

struct Errors {
  std::vector<double> time, power, reference_time, reference_power;
  std::size_t covered = 0;
};

/// One curve with its limits divided.
struct Split {
  const MeasuredCurve* curve;
  std::vector<Point> train, test;
  TimePosterior posterior;
};

using LogEvidence = std::vector<double>;  ///< one for each of board_shapes()

void add(LogEvidence& to, const std::vector<double>& what, double sign = 1) {
  to.resize(board_shapes().size());
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += sign * what[i];
}

Result<Errors> errors_of(const Split& split) {
  FLYBALL_ASSIGN(const Curve through, Curve::through(split.train));
  std::vector<double> limits, log_power;
  for (const Point& point : split.train) {
    limits.push_back(point.limit.watts().value());
    log_power.push_back(std::log(point.power.value()));
  }
  FLYBALL_ASSIGN(const MonotoneCubic power, MonotoneCubic::through(limits, log_power));
  Errors errors;
  for (const Point& truth : split.test) {
    const Watts limit = truth.limit.watts();
    const Estimate time = split.posterior.at(limit);
    errors.time.push_back(std::fabs(time.value / truth.time.value() - 1));
    if (time.low <= truth.time.value() && truth.time.value() <= time.high) ++errors.covered;
    errors.power.push_back(std::fabs(std::exp(power(limit.value())) / truth.power.value() - 1));
    errors.reference_time.push_back(std::fabs(through.time(limit) / truth.time - 1));
    errors.reference_power.push_back(std::fabs(through.power(limit) / truth.power - 1));
  }
  return errors;
}

BoardFit board_fit(const std::string& gpu, const LogEvidence& evidence) {
  const auto shapes = board_shapes();
  const auto log_weight = [&](std::size_t i) { return evidence[i] + shapes[i].log_prior; };
  double best = -INFINITY, total = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) best = std::max(best, log_weight(i));
  BoardFit fit{gpu, 0, 0};
  const Family& family = time_families()[0];
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const double weight = std::exp(log_weight(i) - best);
    total += weight;
    fit.bump_fraction += weight * shapes[i].residual_sd * family.residual_sd;
    fit.bump_length += weight * shapes[i].residual_length * family.residual_length;
  }
  fit.bump_fraction /= total;
  fit.bump_length /= total;
  return fit;
}

void append(std::vector<double>& to, const std::vector<double>& from) { to.insert(to.end(), from.begin(), from.end()); }

void join(Errors& to, const Errors& from) {
  append(to.time, from.time);
  append(to.power, from.power);
  append(to.reference_time, from.reference_time);
  append(to.reference_power, from.reference_power);
  to.covered += from.covered;
}

Estimate ratio_of_medians(const Errors& all, const std::map<std::string, Errors>& networks) {
  std::vector<const Errors*> parts;
  parts.reserve(networks.size());
  for (const auto& [network, errors] : networks) parts.push_back(&errors);
  Random random(1);
  std::vector<double> ratios;
  for (int i = 0; i < kResamples; ++i) {
    Errors drawn;
    for (std::size_t j = 0; j < parts.size(); ++j) join(drawn, *parts[random.below(parts.size())]);
    const double reference = median(drawn.reference_time);
    if (reference > 0) ratios.push_back(median(drawn.time) / reference);
  }
  if (ratios.empty()) return {};
  return {median(all.time) / median(all.reference_time), quantile(ratios, 0.025), quantile(ratios, 0.975), 0.95};
}

/// Fits every curve that has limits to hold out, then tells each what the others of its board say.
Result<std::vector<Split>> split_all(std::span<const MeasuredCurve> curves, std::span<const MeasuredCurve> more,
                                     HeldOut& result) {
  LogEvidence elsewhere;
  for (const MeasuredCurve& curve : more) {
    FLYBALL_ASSIGN(const TimePosterior posterior, TimePosterior::fit(curve.points));
    add(elsewhere, posterior.log_evidence());
  }
  struct Board {
    LogEvidence evidence;
    std::size_t jobs;
  };
  std::vector<Split> splits;
  std::map<std::string, Board> boards;
  for (const MeasuredCurve& curve : curves) {
    std::vector<Point> train, test;
    for (std::size_t i = 0; i < curve.points.size(); ++i) {
      if (i % 2 == 0) train.push_back(curve.points[i]);
      if (i % 2 == 1 && i + 1 < curve.points.size()) test.push_back(curve.points[i]);
    }
    if (test.empty()) {
      ++result.too_short;
      continue;
    }
    FLYBALL_ASSIGN(TimePosterior posterior, TimePosterior::fit(train));
    Board& board = boards.try_emplace(curve.gpu, Board{elsewhere, more.size()}).first->second;
    add(board.evidence, posterior.log_evidence());
    ++board.jobs;
    splits.push_back({&curve, std::move(train), std::move(test), std::move(posterior)});
  }
  for (const auto& [gpu, board] : boards) {
    if (board.jobs > 1) result.boards.push_back(board_fit(gpu, board.evidence));
  }
  for (Split& split : splits) {
    const Board& board = boards[split.curve->gpu];
    if (board.jobs < 2) continue;
    LogEvidence others = board.evidence;
    add(others, split.posterior.log_evidence(), -1);
    split.posterior.learn_board(others);
  }
  return splits;
}

}  // namespace

Result<HeldOut> held_out_error(std::span<const MeasuredCurve> curves, std::span<const MeasuredCurve> more) {
  HeldOut result;
  FLYBALL_ASSIGN(const std::vector<Split> splits, split_all(curves, more, result));
  result.curves = splits.size();
  Errors all;
  std::map<std::string, Errors> networks;
  for (const Split& split : splits) {
    FLYBALL_ASSIGN(const Errors errors, errors_of(split));
    join(all, errors);
    join(networks[split.curve->network], errors);
  }
  result.time = summarize(all.time);
  result.power = summarize(all.power);
  result.reference_time = summarize(all.reference_time);
  result.reference_power = summarize(all.reference_power);
  if (all.time.empty()) return result;
  result.time_coverage_fraction = static_cast<double>(all.covered) / static_cast<double>(all.time.size());
  result.time_ratio = ratio_of_medians(all, networks);
  return result;
}

}  // namespace flyball::curve
