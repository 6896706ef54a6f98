#include "twin/power_curve.h"

#include <algorithm>
#include <cmath>
#include <iterator>

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
    curve.power_by_clock_[i] = formula(x, parameters);
  }
  curve.lowest_ = curve.power_by_clock_.front();
  curve.unlimited_ = curve.power_by_clock_.back();
  curve.rows_per_watt_ = kCells / (curve.unlimited_ - curve.lowest_);
  for (std::size_t i = 0; i <= kCells; ++i) {
    const double power = curve.lowest_ + static_cast<double>(i) / curve.rows_per_watt_;
    // The formula rises with the clock, so the table by clock can be searched.
    const auto above = std::lower_bound(curve.power_by_clock_.begin() + 1, curve.power_by_clock_.end() - 1, power);
    const auto row = static_cast<double>(std::distance(curve.power_by_clock_.begin(), above)) - 1;
    const double low = *std::prev(above);
    const double part = std::clamp((power - low) / (*above - low), 0.0, 1.0);
    curve.by_limit_[i] = {curve.lowest_clock_ + (row + part) / curve.rows_per_clock_, power};
  }
  return curve;
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
    curve.by_limit_[i] = {clock_of_rate(speed, compute_share), measured.power(limit).value()};
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
    const Row below =
        row == 0 ? Row{lowest_clock_, std::min(parameters.idle_power.value(), above.power)} : by_limit_[row - 1];
    const double gap = above.clock - below.clock;
    const double part = gap > 0 ? std::clamp((x - below.clock) / gap, 0.0, 1.0) : 1.0;
    power_by_clock_[i] = below.power + part * (above.power - below.power);
  }
}

OperatingPoint PowerCurve::at_limit(Watts limit) const {
  const double position = std::clamp((limit.value() - lowest_) * rows_per_watt_, 0.0, static_cast<double>(kCells));
  const auto row = std::min(static_cast<std::size_t>(position), kCells - 1);
  const double part = position - static_cast<double>(row);
  const Row& low = by_limit_[row];
  const Row& high = by_limit_[row + 1];
  return {low.clock + part * (high.clock - low.clock), Watts(low.power + part * (high.power - low.power)),
          limit.value() < unlimited_};
}

OperatingPoint PowerCurve::at_clock(double clock_fraction) const {
  const double position =
      std::clamp((clock_fraction - lowest_clock_) * rows_per_clock_, 0.0, static_cast<double>(kCells));
  const auto row = std::min(static_cast<std::size_t>(position), kCells - 1);
  const double part = position - static_cast<double>(row);
  const double power = power_by_clock_[row] + part * (power_by_clock_[row + 1] - power_by_clock_[row]);
  return {std::clamp(clock_fraction, lowest_clock_, 1.0), Watts(power), false};
}

}  // namespace flyball::twin
