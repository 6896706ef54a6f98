#include "facility/phase_accuracy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/stats.h"

namespace flyball::facility {

void PhaseScores::take(const PhaseKey& key, const FacilityPoint& point, const Expectation& expected,
                       const Expectation* frozen) {
  if (!expected.learned || !(point.facility > Watts(0)) || !point.it.finite()) {
    ++left_out_;
    return;
  }
  const double measured = point.facility.value();
  const auto off = [&](double told) { return static_cast<float>(std::abs(told - measured) / measured); };
  for (Errors* errors : {&all_, &by_phase_[key]}) {
    errors->error.push_back(off(expected.expected.value()));
    if (frozen != nullptr) errors->frozen.push_back(off(frozen->expected.value()));
    errors->by_pue.push_back(off(pue_ * point.it.value()));
    errors->inside += point.facility >= expected.low && point.facility <= expected.high ? 1 : 0;
    errors->transients += expected.transient ? 1 : 0;
    errors->expected += expected.expected.value();
    errors->measured += measured;
    errors->width += (expected.high - expected.low).value() / 2;
  }
}

PhaseAccuracy PhaseScores::row(const Errors& errors) {
  PhaseAccuracy made;
  made.points = errors.error.size();
  made.transients = errors.transients;
  const auto of = [](const std::vector<float>& values, double probability) {
    return quantile(std::vector<double>(values.begin(), values.end()), probability);
  };
  constexpr double kHalf = 0.5, kTail = 0.95;
  made.p50_fraction = of(errors.error, kHalf);
  made.p95_fraction = of(errors.error, kTail);
  made.frozen_p95_fraction = of(errors.frozen, kTail);
  made.static_p50_fraction = of(errors.by_pue, kHalf);
  made.static_p95_fraction = of(errors.by_pue, kTail);
  const double n = errors.error.empty() ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(made.points);
  made.coverage_fraction = static_cast<double>(errors.inside) / n;
  made.nmbe_fraction = (errors.expected - errors.measured) / errors.measured;
  made.half_width_fraction = errors.width / errors.expected;
  return made;
}

std::vector<PhaseAccuracy> PhaseScores::rows() const {
  std::vector<PhaseAccuracy> made = {row(all_)};
  for (const auto& [key, errors] : by_phase_) {
    made.push_back(row(errors));
    made.back().key = key;
  }
  return made;
}

}  // namespace flyball::facility
