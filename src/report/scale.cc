#include "report/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"

namespace flyball::report {
namespace {

struct Prefix {
  double factor;
  std::string_view sign;
};

/// One prefix for the whole axis, so that its numbers compare at a glance. Only units of physics take prefixes.
Prefix prefix_for(const std::string& unit, double largest) {
  constexpr std::array prefixes = {Prefix{1, ""}, Prefix{1e3, "k"}, Prefix{1e6, "M"}, Prefix{1e9, "G"}};
  Prefix chosen = prefixes[0];
  if (unit != "W" && unit != "J" && unit != "Hz" && unit != "Wh") return chosen;
  for (const Prefix& prefix : prefixes) {
    if (largest >= prefix.factor * 2) chosen = prefix;  // "1500 W" rather than "1.5 kW"
  }
  return chosen;
}

std::string with_unit(std::string number, std::string_view prefix, const std::string& unit) {
  if (unit.empty()) return number;
  return fmt::format("{} {}{}", number, prefix, unit);
}

std::vector<Tick> linear_ticks(const Axis& axis, double low, double high, int most) {
  const double step = round_step((high - low) / most);
  const Prefix prefix = prefix_for(axis.unit, std::max(std::fabs(low), std::fabs(high)));
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step / prefix.factor) - 1e-9)), 0, 9);
  std::vector<Tick> made;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) {
    const double value = i == 0 ? 0 : i * step;  // no "-0"
    const bool plain = std::fabs(value / prefix.factor) < 1e6;
    made.push_back({value, with_unit(plain ? fmt::format("{:.{}f}", value / prefix.factor, decimals)
                                           : fmt::format("{:.3g}", value / prefix.factor),
                                     prefix.sign, axis.unit)});
    if (made.size() > 100) break;
  }
  return made;
}

std::vector<Tick> decade_ticks(const Axis& axis, double low, double high, int most) {
  const Prefix prefix = prefix_for(axis.unit, high);
  const double decades = std::log10(high / low);
  // Few decades leave room for 2 and 5 between them; very many need some left out.
  const bool with_between = decades * 3 <= most;
  const int stride = std::max(1, static_cast<int>(std::ceil(decades / most)));
  std::vector<Tick> made;
  for (int exponent = static_cast<int>(std::floor(std::log10(low))); made.size() < 100; exponent += stride) {
    const double decade = std::pow(10.0, exponent);
    if (decade > high * (1 + 1e-9)) break;
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double value = decade * digit;
      if ((digit > 1 && !with_between) || value < low * (1 - 1e-9) || value > high * (1 + 1e-9)) continue;
      made.push_back({value, with_unit(fmt::format("{:g}", value / prefix.factor), prefix.sign, axis.unit)});
    }
  }
  return made;
}

double clock_step(double least) {
  constexpr std::array steps = {1.0,   2.0,   5.0,    10.0,   15.0,   30.0,    60.0,    120.0,   300.0,
                                600.0, 900.0, 1800.0, 3600.0, 7200.0, 10800.0, 21600.0, 43200.0, 86400.0};
  for (const double step : steps) {
    if (step >= least) return step;
  }
  return 86400 * round_step(least / 86400);
}

std::vector<Tick> utc_ticks(double low, double high, int most) {
  const double span = high - low;
  const double step = span < most ? round_step(span / most) : clock_step(span / most);
  std::vector<Tick> made;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && made.size() < 100; ++i) {
    const double at = i * step;
    const std::string stamp = format_rfc3339(WallTime(std::llround(at * 1e3) * 1'000'000));
    const bool midnight = stamp.substr(11, 8) == "00:00:00";
    std::string label = stamp.substr(11, 5);
    if (step < 60) label = stamp.substr(11, 8);
    if (step < 1) label = stamp.substr(11, 12);
    if (midnight && step >= 60) label = stamp.substr(5, 5);  // the day that begins
    made.push_back({at, label});
  }
  return made;
}

std::vector<Tick> elapsed_ticks(double low, double high, int most) {
  const double span = high - low;
  if (span < most) return linear_ticks({.label = {}, .unit = "s"}, low, high, most);
  const double step = clock_step(span / most);
  const Prefix unit = step < 60 ? Prefix{1, "s"} : step < 3600 ? Prefix{60, "min"} : Prefix{3600, "h"};
  std::vector<Tick> made;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && made.size() < 100; ++i) {
    const double value = i == 0 ? 0 : i * step;
    made.push_back({value, fmt::format("{:g} {}", value / unit.factor, unit.sign)});
  }
  return made;
}

}  // namespace

Scale::Scale(double low, double high, double first_pixel, double last_pixel, bool logarithmic)
    : low_(low), high_(high), first_pixel_(first_pixel), last_pixel_(last_pixel), logarithmic_(logarithmic) {}

double Scale::pixel(double value) const {
  const double share = logarithmic_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
  // A value far outside must not become a number that a browser cannot draw.
  return first_pixel_ + std::clamp(share, -1.0, 2.0) * (last_pixel_ - first_pixel_);
}

bool Scale::places(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }

double round_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (digit * power >= least * (1 - 1e-9)) return digit * power;
  }
  return 10 * power;
}

std::vector<Tick> ticks(const Axis& axis, double low, double high, int most) {
  switch (axis.kind) {
    case AxisKind::linear:
      return linear_ticks(axis, low, high, most);
    case AxisKind::logarithmic:
      return decade_ticks(axis, low, high, most);
    case AxisKind::utc:
      return utc_ticks(low, high, most);
    case AxisKind::elapsed:
      return elapsed_ticks(low, high, most);
  }
  return {};
}

}  // namespace flyball::report
