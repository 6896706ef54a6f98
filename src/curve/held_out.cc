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

/// The points between those that are trained on.
Result<Errors> errors_of(std::span<const Point> train, std::span<const Point> test) {
  FLYBALL_ASSIGN(const TimePosterior posterior, TimePosterior::fit(train));
  FLYBALL_ASSIGN(const Curve through, Curve::through(train));
  std::vector<double> limits, log_power;
  for (const Point& point : train) {
    limits.push_back(point.limit.watts().value());
    log_power.push_back(std::log(point.power.value()));
  }
  FLYBALL_ASSIGN(const MonotoneCubic power, MonotoneCubic::through(limits, log_power));
  Errors errors;
  for (const Point& truth : test) {
    const Watts limit = truth.limit.watts();
    const Estimate time = posterior.at(limit);
    errors.time.push_back(std::fabs(time.value / truth.time.value() - 1));
    if (time.low <= truth.time.value() && truth.time.value() <= time.high) ++errors.covered;
    errors.power.push_back(std::fabs(std::exp(power(limit.value())) / truth.power.value() - 1));
    errors.reference_time.push_back(std::fabs(through.time(limit) / truth.time - 1));
    errors.reference_power.push_back(std::fabs(through.power(limit) / truth.power - 1));
  }
  return errors;
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

}  // namespace

Result<HeldOut> held_out_error(std::span<const MeasuredCurve> curves) {
  HeldOut result;
  Errors all;
  std::map<std::string, Errors> networks;
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
    ++result.curves;
    FLYBALL_ASSIGN(const Errors errors, errors_of(train, test));
    join(all, errors);
    join(networks[curve.network], errors);
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
