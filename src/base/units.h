#pragma once
// Strong types for physical values. A number gets its unit where it enters the program and loses it where it leaves;
// in between `Watts * Seconds` is `Joules` and nothing else compiles.

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

namespace flyball {

/// A double with a unit. Value semantics, no implicit conversion from or to numbers.
template <class Unit>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}

  /// The number in the base unit that the type names.
  constexpr double value() const { return value_; }
  bool finite() const { return std::isfinite(value_); }

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator-() const { return Quantity(-value_); }
  constexpr Quantity& operator+=(Quantity o) { return value_ += o.value_, *this; }
  constexpr Quantity& operator-=(Quantity o) { return value_ -= o.value_, *this; }
  constexpr Quantity& operator*=(double f) { return value_ *= f, *this; }
  constexpr Quantity& operator/=(double f) { return value_ /= f, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(Quantity a, double f) { return Quantity(a.value_ * f); }
  friend constexpr Quantity operator*(double f, Quantity a) { return Quantity(a.value_ * f); }
  friend constexpr Quantity operator/(Quantity a, double f) { return Quantity(a.value_ / f); }
  /// The ratio of two like values is a plain number.
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value_ / b.value_; }

 private:
  double value_ = 0;
};

using Watts = Quantity<struct WattsUnit>;
using Joules = Quantity<struct JoulesUnit>;
using Seconds = Quantity<struct SecondsUnit>;
using Hertz = Quantity<struct HertzUnit>;
using Celsius = Quantity<struct CelsiusUnit>;
using Volts = Quantity<struct VoltsUnit>;
using Amperes = Quantity<struct AmperesUnit>;

constexpr Joules operator*(Watts p, Seconds t) { return Joules(p.value() * t.value()); }
constexpr Joules operator*(Seconds t, Watts p) { return p * t; }
constexpr Watts operator/(Joules e, Seconds t) { return Watts(e.value() / t.value()); }
constexpr Seconds operator/(Joules e, Watts p) { return Seconds(e.value() / p.value()); }

constexpr double kJoulesPerKilowattHour = 3.6e6;
constexpr double kJoulesPerWattHour = 3600.0;

/// A power limit as drivers take it: whole milliwatts. Limits are compared and clamped in this type, never in Watts.
class Milliwatts {
 public:
  constexpr Milliwatts() = default;
  constexpr explicit Milliwatts(std::int64_t value) : value_(value) {}
  /// Rounds to the nearest milliwatt; values that do not fit become the type's largest.
  static Milliwatts from(Watts p) {
    const double mw = p.value() * 1000.0;
    if (!(std::fabs(mw) < 9e18)) return Milliwatts(std::numeric_limits<std::int64_t>::max());
    return Milliwatts(std::llround(mw));
  }
  constexpr std::int64_t value() const { return value_; }
  constexpr Watts watts() const { return Watts(static_cast<double>(value_) / 1000.0); }
  constexpr auto operator<=>(const Milliwatts&) const = default;
  friend constexpr Milliwatts operator+(Milliwatts a, Milliwatts b) { return Milliwatts(a.value_ + b.value_); }
  friend constexpr Milliwatts operator-(Milliwatts a, Milliwatts b) { return Milliwatts(a.value_ - b.value_); }

 private:
  std::int64_t value_ = 0;
};

namespace literals {
constexpr Watts operator""_W(long double v) { return Watts(static_cast<double>(v)); }
constexpr Watts operator""_W(unsigned long long v) { return Watts(static_cast<double>(v)); }
constexpr Joules operator""_J(long double v) { return Joules(static_cast<double>(v)); }
constexpr Joules operator""_J(unsigned long long v) { return Joules(static_cast<double>(v)); }
constexpr Seconds operator""_s(long double v) { return Seconds(static_cast<double>(v)); }
constexpr Seconds operator""_s(unsigned long long v) { return Seconds(static_cast<double>(v)); }
constexpr Hertz operator""_MHz(unsigned long long v) { return Hertz(static_cast<double>(v) * 1e6); }
constexpr Milliwatts operator""_mW(unsigned long long v) { return Milliwatts(static_cast<std::int64_t>(v)); }
}  // namespace literals

}  // namespace flyball
