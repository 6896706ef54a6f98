#include "base/text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

namespace flyball {
namespace {

struct UnitName {
  std::string_view name;
  double factor;
};

constexpr std::array kPowerUnits = {UnitName{"mW", 1e-3}, UnitName{"W", 1}, UnitName{"kW", 1e3}, UnitName{"MW", 1e6}};
constexpr std::array kEnergyUnits = {UnitName{"J", 1},       UnitName{"kJ", 1e3},    UnitName{"MJ", 1e6},
                                     UnitName{"Wh", 3600.0}, UnitName{"kWh", 3.6e6}, UnitName{"MWh", 3.6e9}};
constexpr std::array kTimeUnits = {UnitName{"ms", 1e-3}, UnitName{"s", 1}, UnitName{"min", 60}, UnitName{"h", 3600},
                                   UnitName{"d", 86400}};
constexpr std::array kFrequencyUnits = {UnitName{"Hz", 1}, UnitName{"kHz", 1e3}, UnitName{"MHz", 1e6},
                                        UnitName{"GHz", 1e9}};

std::string_view shown(std::string_view text) { return text.substr(0, 80); }

template <std::size_t N>
Result<double> parse_with_unit(std::string_view text, const std::array<UnitName, N>& units, std::string_view what,
                               std::string_view example) {
  const std::string_view all = trim(text);
  double number = 0;
  const auto [end, ec] = std::from_chars(all.data(), all.data() + all.size(), number, std::chars_format::general);
  const std::string remedy = fmt::format("write {} such as {}", what, example);
  if (ec == std::errc::result_out_of_range)
    return fail(ErrorCode::input, fmt::format("'{}' is beyond what a number can hold", shown(text)), {}, remedy);
  if (ec != std::errc() || !std::isfinite(number)) {
    return fail(ErrorCode::input, fmt::format("'{}' is not {}", shown(text), what), {}, remedy);
  }
  const std::string_view unit = trim(all.substr(static_cast<std::size_t>(end - all.data())));
  for (const auto& known : units) {
    if (unit == known.name) return number * known.factor;
  }
  if (unit.empty()) return fail(ErrorCode::input, fmt::format("'{}' has no unit", shown(text)), {}, remedy);
  std::string names;
  for (const auto& known : units) names += (names.empty() ? "" : ", ") + std::string(known.name);
  return fail(ErrorCode::input, fmt::format("'{}' has the unknown unit '{}'", shown(text), shown(unit)), {},
              fmt::format("{}; the units are {}", remedy, names));
}

/// Picks the largest of `steps` not above the value and prints with about four significant digits.
template <std::size_t N>
std::string with_fitting_unit(double value, const std::array<UnitName, N>& steps) {
  UnitName unit = steps.front();
  for (const auto& step : steps) {
    if (std::fabs(value) >= step.factor) unit = step;
  }
  const double scaled = value / unit.factor;
  const double size = std::fabs(scaled);
  return fmt::format("{:.{}f} {}", scaled, size >= 1000 ? 0 : size >= 100 ? 1 : 2, unit.name);
}

}  // namespace

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool is_printable_ascii(std::string_view text) {
  for (const char c : text) {
    if (c < 0x20 || c > 0x7e) return false;
  }
  return true;
}

Result<double> parse_double(std::string_view text) {
  const std::string_view body = trim(text);
  double value = 0;
  const auto [end, ec] = std::from_chars(body.data(), body.data() + body.size(), value, std::chars_format::general);
  if (ec == std::errc::result_out_of_range && end == body.data() + body.size())
    return fail(ErrorCode::input, fmt::format("'{}' is beyond what a number can hold", shown(text)));
  if (ec != std::errc() || end != body.data() + body.size() || !std::isfinite(value)) {
    return fail(ErrorCode::input, fmt::format("'{}' is not a number", shown(text)));
  }
  return value;
}

Result<std::int64_t> parse_int(std::string_view text) {
  const std::string_view body = trim(text);
  std::int64_t value = 0;
  const auto [end, ec] = std::from_chars(body.data(), body.data() + body.size(), value);
  if (ec != std::errc() || end != body.data() + body.size()) {
    return fail(ErrorCode::input, fmt::format("'{}' is not a whole number", shown(text)));
  }
  return value;
}

Result<Watts> parse_watts(std::string_view text) {
  return parse_with_unit(text, kPowerUnits, "a power", "250W or 2.4kW").map([](double v) { return Watts(v); });
}
Result<Joules> parse_joules(std::string_view text) {
  return parse_with_unit(text, kEnergyUnits, "an energy", "36kJ or 1.5kWh").map([](double v) { return Joules(v); });
}
Result<Seconds> parse_seconds(std::string_view text) {
  return parse_with_unit(text, kTimeUnits, "a duration", "10s, 30min or 6h").map([](double v) { return Seconds(v); });
}
Result<Hertz> parse_hertz(std::string_view text) {
  return parse_with_unit(text, kFrequencyUnits, "a frequency", "1410MHz").map([](double v) { return Hertz(v); });
}

Result<double> parse_fraction(std::string_view text) {
  const std::string_view body = trim(text);
  const bool percent = body.ends_with('%');
  const auto value = parse_double(percent ? body.substr(0, body.size() - 1) : body);
  if (!value) {
    return fail(ErrorCode::input, fmt::format("'{}' is not a fraction", shown(text)), {}, "write 0.012 or 1.2%");
  }
  return percent ? *value / 100.0 : *value;
}

std::string format(Watts power) {
  constexpr std::array steps = {UnitName{"W", 1}, UnitName{"kW", 1e3}, UnitName{"MW", 1e6}};
  return with_fitting_unit(power.value(), steps);
}
std::string format(Joules energy) {
  constexpr std::array steps = {UnitName{"J", 1}, UnitName{"kJ", 1e3}, UnitName{"MJ", 1e6}, UnitName{"GJ", 1e9}};
  return with_fitting_unit(energy.value(), steps);
}
std::string format(Seconds time) {
  constexpr std::array steps = {UnitName{"ms", 1e-3}, UnitName{"s", 1}, UnitName{"min", 60}, UnitName{"h", 3600},
                                UnitName{"d", 86400}};
  return with_fitting_unit(time.value(), steps);
}
std::string format(Hertz frequency) {
  constexpr std::array steps = {UnitName{"Hz", 1}, UnitName{"kHz", 1e3}, UnitName{"MHz", 1e6}, UnitName{"GHz", 1e9}};
  return with_fitting_unit(frequency.value(), steps);
}
std::string format(Milliwatts limit) { return format(limit.watts()); }

std::string format_percent(double fraction, int decimals) { return fmt::format("{:.{}f} %", fraction * 100, decimals); }

std::string format_exact(double value) { return fmt::format("{}", value); }

}  // namespace flyball
