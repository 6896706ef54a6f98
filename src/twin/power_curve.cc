#include "twin/power_curve.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "curve/monotone_cubic.h"

namespace flyball::twin {

namespace {

/// x at which rate_at(x, c) = rate.
double clock_of_rate(double rate, double compute_share) {
  const double slack = 1 / rate - (1 - compute_share);
  return slack > 0 ? std::clamp(compute_share / slack, 0.0, 1.0) : 1.0;
}

double formula(double x, const GpuParameters& p) {
  const double voltage = std::max(p.voltage_floor, 1 - p.voltage_slope * (1 - x));
  const double shape = p.clock_free_fraction + (1 - p.clock_free_fraction) * x * voltage * voltage;
  return p.idle_power.value() + (p.full_power - p.idle_power).value() * shape;
}

}  // namespace

PowerCurve PowerCurve::parametric(const GpuParameters& parameters) {
  PowerCurve curve;
  curve.lowest_clock_ = parameters.minimum_clock / parameters.maximum_clock;
  curve.rows_per_clock_ = kCells / (1 - curve.lowest_clock_);
  for (std::size_t i = 0; i <= kCells; ++i) {
    const double x = curve.lowest_clock_ + static_cast<double>(i) / curve.rows_per_clock_;
    curve.by_clock_[i] = {x, formula(x, parameters), x};
  }
  curve.invert();
  return curve;
}

PowerCurve PowerCurve::clocked(std::span<const ClockPoint> points, double compute_share,
                               const GpuParameters& parameters) {
  std::vector<double> clock, log_time, power;
  for (const ClockPoint& point : points) {
    clock.push_back(point.clock / parameters.maximum_clock);
    log_time.push_back(std::log(point.time));
    power.push_back(point.power.value());
  }
  // The knots are our own and in order, so these do not fail.
  const auto time_at = curve::MonotoneCubic::through(clock, log_time);
  const auto power_at = curve::MonotoneCubic::through(clock, power);
  PowerCurve curve;
  curve.lowest_clock_ = std::min(parameters.minimum_clock / parameters.maximum_clock, 0.99);
  curve.rows_per_clock_ = kCells / (1 - curve.lowest_clock_);
  const double idle = std::min(parameters.idle_power.value(), power.front());
  const double lowest_pace = clock_of_rate(1 / points.front().time, compute_share);
  for (std::size_t i = 0; i <= kCells; ++i) {
    const double x = curve.lowest_clock_ + static_cast<double>(i) / curve.rows_per_clock_;
    if (x >= clock.front()) {
      curve.by_clock_[i] = {x, (*power_at)(x), clock_of_rate(std::exp(-(*time_at)(x)), compute_share)};
    } else {
      const double part = (x - curve.lowest_clock_) / (clock.front() - curve.lowest_clock_);
      curve.by_clock_[i] = {x, idle + part * (power.front() - idle), lowest_pace * x / clock.front()};
    }
  }
  curve.invert();
  return curve;
}

void PowerCurve::invert() {
  lowest_ = by_clock_.front().power;
  unlimited_ = by_clock_.back().power;
  rows_per_watt_ = kCells / (unlimited_ - lowest_);
  for (std::size_t i = 0; i <= kCells; ++i) {
    const double power = lowest_ + static_cast<double>(i) / rows_per_watt_;
    const auto above = std::lower_bound(by_clock_.begin() + 1, by_clock_.end() - 1, power,
                                        [](const Row& row, double p) { return row.power < p; });
    const Row& low = *std::prev(above);
    const double gap = above->power - low.power;
    const double part = gap > 0 ? std::clamp((power - low.power) / gap, 0.0, 1.0) : 0.0;
    by_limit_[i] = {low.clock + part * (above->clock - low.clock), power, low.pace + part * (above->pace - low.pace)};
  }
}

PowerCurve PowerCurve::measured(const curve::Curve& measured, double compute_share, const GpuParameters& parameters) {
  PowerCurve curve;
  curve.lowest_ = measured.lowest().value();
  // A curve of one limit has no width; a hair of it keeps the table's arithmetic finite.
  const double width = std::max(measured.highest().value() - curve.lowest_, 1e-3);
  curve.rows_per_watt_ = kCells / width;
  // The last limit that still makes a difference.
  curve.unlimited_ = curve.lowest_;
  for (std::size_t i = 0; i <= kCells; ++i) {
    const Watts limit(curve.lowest_ + static_cast<double>(i) / curve.rows_per_watt_);
    const double speed = measured.speed_fraction(limit);
    const double clock = clock_of_rate(speed, compute_share);
    curve.by_limit_[i] = {clock, measured.power(limit).value(), clock};
    if (speed < 1 - 1e-6) curve.unlimited_ = limit.value();
  }
  curve.fill_by_clock(parameters);
  return curve;
}

// Between the measured clocks by interpolation. Below the slowest measured one nothing is known: the line to idle power
// at the lowest clock is an upper bound for a convex curve.
void PowerCurve::fill_by_clock(const GpuParameters& parameters) {
  lowest_clock_ = std::min(parameters.minimum_clock / parameters.maximum_clock, by_limit_.front().clock);
  const double width = std::max(1 - lowest_clock_, 1e-9);
  rows_per_clock_ = kCells / width;
  std::size_t row = 0;
  for (std::size_t i = 0; i <= kCells; ++i) {
    const double x = lowest_clock_ + static_cast<double>(i) / rows_per_clock_;
    while (row < kCells && by_limit_[row].clock < x) ++row;
    const Row above = by_limit_[row];
    const Row below = row == 0 ? Row{lowest_clock_, std::min(parameters.idle_power.value(), above.power), lowest_clock_}
                               : by_limit_[row - 1];
    const double gap = above.clock - below.clock;
    const double part = gap > 0 ? std::clamp((x - below.clock) / gap, 0.0, 1.0) : 1.0;
    by_clock_[i] = {x, below.power + part * (above.power - below.power), x};
  }
}

OperatingPoint PowerCurve::at_limit(Watts limit) const {
  const double position = std::clamp((limit.value() - lowest_) * rows_per_watt_, 0.0, static_cast<double>(kCells));
  OperatingPoint point = between(by_limit_, position);
  point.limited = limit.value() < unlimited_;
  return point;
}

OperatingPoint PowerCurve::at_clock(double clock_fraction) const {
  const double position =
      std::clamp((clock_fraction - lowest_clock_) * rows_per_clock_, 0.0, static_cast<double>(kCells));
  OperatingPoint point = between(by_clock_, position);
  point.clock_fraction = std::clamp(clock_fraction, lowest_clock_, 1.0);
  return point;
}

OperatingPoint PowerCurve::between(const Table& table, double position) {
  const auto row = std::min(static_cast<std::size_t>(position), kCells - 1);
  const double part = position - static_cast<double>(row);
  const Row& low = table[row];
  const Row& high = table[row + 1];
  return {low.clock + part * (high.clock - low.clock), Watts(low.power + part * (high.power - low.power)), false,
          low.pace + part * (high.pace - low.pace)};
}

}  // namespace flyball::twin
