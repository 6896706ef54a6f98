#include "series/reader_cell.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "base/text.h"

namespace flyball::series {
namespace {

struct UnitScale {
  std::string_view unit;
  std::string_view base;
  Scale scale;
};

// "mW" is milliwatts and "MW" megawatts: case tells them apart, so headers in lower case cannot use either.
constexpr std::array kUnits = {
    UnitScale{"W", "W", {}},          UnitScale{"mW", "W", {1, 1e3}},    UnitScale{"kW", "W", {1e3, 1}},
    UnitScale{"MW", "W", {1e6, 1}},   UnitScale{"J", "J", {}},           UnitScale{"mJ", "J", {1, 1e3}},
    UnitScale{"uJ", "J", {1, 1e6}},   UnitScale{"kJ", "J", {1e3, 1}},    UnitScale{"MJ", "J", {1e6, 1}},
    UnitScale{"Wh", "J", {3600, 1}},  UnitScale{"kWh", "J", {3.6e6, 1}}, UnitScale{"MWh", "J", {3.6e9, 1}},
    UnitScale{"Hz", "Hz", {}},        UnitScale{"kHz", "Hz", {1e3, 1}},  UnitScale{"MHz", "Hz", {1e6, 1}},
    UnitScale{"GHz", "Hz", {1e9, 1}}, UnitScale{"C", "°C", {}},          UnitScale{"°C", "°C", {}},
    UnitScale{"%", "", {1, 100}},
};

/// Words that stand where a number should; compared without brackets and in lower case.
Status reason_of(std::string_view cell) {
  std::string word = to_lower(trim(cell));
  if (word.size() >= 2 && word.front() == '[' && word.back() == ']') word = word.substr(1, word.size() - 2);
  const auto holds = [&](std::string_view part) { return word.find(part) != std::string::npos; };
  if (word.empty() || word == "n/a" || word == "na" || word == "nan" || word == "-" || word == "--" || word == "null" ||
      word == "none") {
    return Status::missing;
  }
  if (holds("not supported")) return Status::not_supported;
  if (holds("permission")) return Status::no_permission;
  if (holds("is lost") || holds("requires reset") || holds("reset required")) return Status::lost;
  if (holds("unknown error") || word == "err!" || word == "error" || word == "err" || holds("not found")) {
    return Status::failed;
  }
  return Status::garbage;
}

bool read_hexadecimal(std::string_view cell, double& value) {
  if (cell.size() < 3 || cell.size() > 18 || cell[0] != '0' || (cell[1] | 0x20) != 'x') return false;
  std::uint64_t bits = 0;
  const auto [end, error] = std::from_chars(cell.data() + 2, cell.data() + cell.size(), bits, 16);
  value = static_cast<double>(bits);
  return error == std::errc() && end == cell.data() + cell.size();
}

/// Three digits behind the only comma could as well be thousands, but not behind a zero or four digits and more.
bool thousands_or_decimals(std::string_view cell) {
  const auto comma = cell.find(',');
  if (comma == std::string_view::npos || cell.size() - comma - 1 != 3) return false;
  std::string_view whole = cell.substr(0, comma);
  if (whole.starts_with('-')) whole.remove_prefix(1);
  return !whole.empty() && whole.size() <= 3 && whole[0] != '0';
}

/// A number with one decimal comma.
bool read_comma_number(std::string_view cell, double& value) {
  const auto comma = cell.find(',');
  if (comma == std::string_view::npos || cell.size() > 40 || thousands_or_decimals(cell)) return false;
  std::string text(cell);
  text[comma] = '.';
  return parse_decimal(text, value);
}

}  // namespace

std::string_view why_garbage(std::string_view cell) {
  cell = trim(cell);
  const auto last = cell.find_last_of("0123456789.");
  if (last == std::string_view::npos) return "it is no number, and no word that says why there is none";
  const std::string_view number = cell.substr(0, last + 1);
  if (thousands_or_decimals(number))
    return "the comma may stand before decimals or thousands; write a decimal point, and no mark for thousands";
  if (number.find(',') != std::string_view::npos) return "it has marks for thousands; write digits and a decimal point";
  double value = 0;
  if (parse_decimal(number, value)) return "its unit is unknown, or not one of what the column measures";
  if (number.find_first_not_of("0123456789.eE+-") == std::string_view::npos)
    return "it is beyond what a number can hold";
  return "it is no number";
}

std::optional<Scale> scale_of(std::string_view unit, Signal signal) {
  for (const auto& known : kUnits) {
    if (known.unit == unit && known.base == unit_of(signal)) return known.scale;
  }
  return std::nullopt;
}

Status read_odd_cell(std::string_view cell, const CellRule& rule, double& value) {
  cell = trim(cell);
  if (parse_decimal(cell, value)) {
    value = rule.scale(value);
    return Status::ok;
  }
  const auto last = cell.find_last_of("0123456789.");
  if (last == std::string_view::npos) return reason_of(cell);
  std::string_view number = cell.substr(0, last + 1);
  const std::string_view unit = trim(cell.substr(last + 1));
  Scale scale = rule.scale;
  if (rule.signal == Signal::throttle && read_hexadecimal(cell, value)) return Status::ok;
  if (!unit.empty()) {
    const auto named = scale_of(unit, rule.signal);
    if (!named) return reason_of(cell);
    scale = *named;
  }
  if (!parse_decimal(number, value) && !read_comma_number(number, value)) {
    return reason_of(cell);
  }
  value = scale(value);
  return Status::ok;
}

}  // namespace flyball::series
