#pragma once
// One cell of a telemetry table: a number, a number with its unit, or a word that says why there is none. Private to
// the readers.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/decimal.h"
#include "core/reading.h"

namespace flyball::series {

/// What a bare number is multiplied with and divided by to get to the base unit; both, so that 12345 mW is exactly
/// 12.345 W.
struct Scale {
  double times = 1;
  double over = 1;
  double operator()(double value) const { return over == 1 ? value * times : value * times / over; }
};

/// The scale of a unit of the same kind as `signal`'s; nothing for a unit of another kind or an unknown one.
std::optional<Scale> scale_of(std::string_view unit, Signal signal);

struct CellRule {
  Signal signal = Signal::power_average;
  Scale scale;                 ///< of a number without unit
  std::string_view unit = {};  ///< what cells name as their unit if they do, for speed; `scale` is its scale
};

/// `ok` and the value in the signal's base unit, or the reason. A comma inside a cell is a decimal one ("250,12");
/// "1,234" could be either and is garbage. 16 bytes behind the cell must be readable, as behind
/// every view that a LineReader or CsvReader gives.
Status read_odd_cell(std::string_view cell, const CellRule& rule, double& value);
/// Of a cell that was garbage: what is wrong with it and what would be right.
std::string_view why_garbage(std::string_view cell);
inline Status read_cell(std::string_view cell, const CellRule& rule, double& value) {
  while (!cell.empty() && cell.front() == ' ') cell.remove_prefix(1);
  const char* at = cell.data();
  const char* const end = at + cell.size();
  if (take_padded_decimal(at, end, value)) {
    const auto rest = static_cast<std::size_t>(end - at);
    if (rest == 0 || (rest == rule.unit.size() + 1 && *at == ' ' && std::equal(at + 1, end, rule.unit.begin()))) {
      value = rule.scale(value);
      return Status::ok;
    }
  }
  return read_odd_cell(cell, rule, value);
}

}  // namespace flyball::series
