#include "curve/held_out.h"

#include <cmath>

#include "base/stats.h"

namespace flyball::curve {
namespace {

ErrorSummary summarize(const std::vector<double>& errors) {
  if (errors.empty()) return {};
  return {errors.size(), median(errors), quantile(errors, 0.95)};
}

struct Errors {
  std::vector<double> time, power;
  void add(const Curve& curve, const Point& truth) {
    const Watts limit = truth.limit.watts();
    time.push_back(std::fabs(curve.time(limit) / truth.time - 1));
    power.push_back(std::fabs(curve.power(limit) / truth.power - 1));
  }
};

}  // namespace

Result<HeldOut> held_out_error(std::span<const MeasuredCurve> curves) {
  HeldOut result;
  Errors fit, reference;
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
    FLYBALL_ASSIGN(const Curve monotone, Curve::monotone(train));
    FLYBALL_ASSIGN(const Curve through, Curve::through(train));
    for (const Point& truth : test) {
      fit.add(monotone, truth);
      reference.add(through, truth);
    }
  }
  result.time = summarize(fit.time);
  result.power = summarize(fit.power);
  result.reference_time = summarize(reference.time);
  result.reference_power = summarize(reference.power);
  return result;
}

}  // namespace flyball::curve
