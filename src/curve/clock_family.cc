#include "curve/clock_family.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "base/stats.h"
#include "base/text.h"

namespace flyball::curve {
namespace {

constexpr double kGigahertz = 1e9;
constexpr std::size_t kFewest = 4;
/// Ceilings tried, of the highest clock measured: above the last the lock always holds.
constexpr double kLowestCeiling = 0.9, kHighestCeiling = 1.15, kCeilingStep = 0.0025;
/// Values tried when a family is learnt.
constexpr double kSharpness[] = {8, 12, 16, 20, 25, 30, 40, 60, 80};
constexpr double kMostBase = 0.8, kBaseStep = 0.05;
constexpr double kLowestFloor = 0.7, kHighestFloor = 0.85, kFloorStep = 0.005;  // of the highest clock
constexpr double kLowestSlope = 0.2, kHighestSlope = 2, kSlopeStep = 0.1;

double ghz(Hertz clock) { return clock.value() / kGigahertz; }

double smooth_minimum(double a, double b, double sharpness) {
  const double low = std::min(a, b), high = std::max(a, b);
  return low * std::pow(1 + std::pow(low / high, sharpness), -1 / sharpness);
}

double power_shape(double running_ghz, const ClockFamily& family) {
  const double voltage = std::max(1.0, 1 + family.voltage_slope * (running_ghz - ghz(family.voltage_floor)));
  return family.base + running_ghz * voltage * voltage;
}

struct TimeFit {
  double ceiling = 0, fixed = 0, by_clock = 0, error = 0;
};

/// Least squares of the relative error; the fixed part is not below 0.
TimeFit fit_time(std::span<const ClockSample> samples, double ceiling, double sharpness) {
  double xx = 0, xz = 0, zz = 0, x = 0, z = 0;  // of 1/t and 1/(g·t), against 1
  for (const ClockSample& s : samples) {
    const double u = 1 / s.time.value(), v = u / smooth_minimum(ghz(s.clock), ceiling, sharpness);
    xx += u * u, xz += u * v, zz += v * v, x += u, z += v;
  }
  const double determinant = xx * zz - xz * xz;
  TimeFit made{ceiling, determinant > 0 ? (x * zz - z * xz) / determinant : 0, 0, 0};
  made.fixed = std::max(0.0, made.fixed);
  made.by_clock = (z - made.fixed * xz) / zz;
  for (const ClockSample& s : samples) {
    const double time = made.fixed + made.by_clock / smooth_minimum(ghz(s.clock), ceiling, sharpness);
    made.error += (time / s.time.value() - 1) * (time / s.time.value() - 1);
  }
  return made;
}

TimeFit fit_time(std::span<const ClockSample> samples, double sharpness) {
  const double highest = ghz(samples.back().clock);
  TimeFit best;
  for (double share = kLowestCeiling; share <= kHighestCeiling + kCeilingStep / 2; share += kCeilingStep) {
    const TimeFit one = fit_time(samples, share * highest, sharpness);
    if (best.ceiling <= 0 || one.error < best.error) best = one;
  }
  return best;
}

/// Those from `cut` on, and those below it.
std::pair<std::span<const ClockSample>, std::span<const ClockSample>> split(std::span<const ClockSample> samples,
                                                                            Hertz cut) {
  const auto at = std::find_if(samples.begin(), samples.end(), [cut](const ClockSample& s) { return s.clock >= cut; });
  const auto below = static_cast<std::size_t>(std::distance(samples.begin(), at));
  return {samples.subspan(below), samples.first(below)};
}

}  // namespace

const ClockFamily& clock_family() {
  static const ClockFamily family{"A100-SXM, BLOOM", 40, 0.3, Hertz(1.1703e9), 1.5};
  return family;
}

Result<ClockFit> ClockFit::fit(std::span<const ClockSample> samples, const ClockFamily& family) {
  if (samples.size() < kFewest) return fail(ErrorCode::input, "fewer than four clocks are no curve by clock");
  ClockFit made;
  made.family_ = family;
  const TimeFit time = fit_time(samples, family.sharpness);
  made.ceiling_ghz_ = time.ceiling;
  made.fixed_ = time.fixed;
  made.by_clock_ = time.by_clock;
  made.fit_power(samples, family);
  return made;
}

void ClockFit::fit_power(std::span<const ClockSample> samples, const ClockFamily& family) {
  family_ = family;
  double logs = 0;
  for (const ClockSample& s : samples) {
    logs += std::log((s.energy / s.time).value() / power_shape(running_ghz(s.clock), family));
  }
  scale_ = std::exp(logs / static_cast<double>(samples.size()));
}

double ClockFit::running_ghz(Hertz clock) const { return smooth_minimum(ghz(clock), ceiling_ghz_, family_.sharpness); }

Seconds ClockFit::time(Hertz clock) const { return Seconds(fixed_ + by_clock_ / running_ghz(clock)); }

Watts ClockFit::power(Hertz clock) const { return Watts(scale_ * power_shape(running_ghz(clock), family_)); }

namespace {

struct Split {
  std::span<const ClockSample> train, test;
  ClockFit fit;
};

Result<std::vector<Split>> fit_all(std::span<const ClockCurve> curves, const ClockFamily& family, Hertz cut) {
  std::vector<Split> all;
  for (const ClockCurve& curve : curves) {
    const auto [train, test] = split(curve.samples, cut);
    if (train.size() < kFewest || test.empty()) continue;
    FLYBALL_ASSIGN(const ClockFit fit, ClockFit::fit(train, family));
    all.push_back({train, test, fit});
  }
  return all;
}

ClockHeldOut errors_of(const std::vector<Split>& all) {
  std::vector<double> time, energy;
  for (const Split& one : all) {
    for (const ClockSample& truth : one.test) {
      time.push_back(std::fabs(one.fit.time(truth.clock) / truth.time - 1));
      energy.push_back(std::fabs(one.fit.energy(truth.clock) / truth.energy - 1));
    }
  }
  if (time.empty()) return {};
  return {{time.size(), median(time), quantile(time, 0.95)},
          {energy.size(), median(energy), quantile(energy, 0.95)},
          all.size()};
}

}  // namespace

Result<ClockHeldOut> held_out_below(std::span<const ClockCurve> curves, const ClockFamily& family, Hertz cut) {
  FLYBALL_ASSIGN(const auto all, fit_all(curves, family, cut));
  return errors_of(all);
}

Result<ClockFamily> learn_clock_family(std::span<const ClockCurve> curves, Hertz cut, std::string name) {
  Hertz highest;
  for (const ClockCurve& curve : curves) {
    for (const ClockSample& sample : curve.samples) highest = std::max(highest, sample.clock);
  }
  ClockFamily family{std::move(name), 0, 0, highest, 0};
  std::vector<Split> best_times;
  double least = 0;
  for (const double sharpness : kSharpness) {
    family.sharpness = sharpness;
    FLYBALL_ASSIGN(auto all, fit_all(curves, family, cut));
    const double error = errors_of(all).time.median_fraction;
    if (all.empty()) return fail(ErrorCode::input, "no curve has clocks on both sides of " + format(cut));
    if (!best_times.empty() && error >= least) continue;
    least = error;
    best_times = std::move(all);
  }
  family.sharpness = best_times.front().fit.family().sharpness;
  ClockFamily best = family;
  least = 0;
  for (family.base = 0; family.base < kMostBase; family.base += kBaseStep) {
    for (double floor = kLowestFloor; floor < kHighestFloor; floor += kFloorStep) {
      family.voltage_floor = highest * floor;
      for (family.voltage_slope = kLowestSlope; family.voltage_slope < kHighestSlope;
           family.voltage_slope += kSlopeStep) {
        for (Split& one : best_times) one.fit.fit_power(one.train, family);
        const double error = errors_of(best_times).energy.median_fraction;
        if (least > 0 && error >= least) continue;
        least = error;
        best = family;
      }
    }
  }
  return best;
}

}  // namespace flyball::curve
