#include "curve/clock_table.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/csv.h"
#include "base/text.h"

namespace flyball::curve {
namespace {

constexpr std::uint64_t kMostRows = 1'000'000;
constexpr double kMegahertz = 1e6;

struct Columns {
  int clock = -1, time = -1, energy = -1;
  std::vector<std::string> names;
  bool whole() const { return clock >= 0 && time >= 0 && energy >= 0; }
};

template <class Cells>
Columns match(const Cells& header) {
  Columns columns;
  for (const auto& cell : header) {
    const std::string name = to_lower(trim(cell));
    const int at = static_cast<int>(columns.names.size());
    if (name == "frequency" || name == "clock_mhz") columns.clock = at;
    if (name == "time") columns.time = at;
    if (name == "energy") columns.energy = at;
    columns.names.push_back(name);
  }
  return columns;
}

struct Sum {
  Seconds time;
  Joules energy;
  double rows = 0;
};
using Sums = std::map<Hertz, Sum>;

/// Adds the row to the curve of its work; why it is skipped otherwise.
Result<> add_row(const CsvRow& row, const Columns& columns, std::vector<std::pair<std::string, Sums>>& curves) {
  if (!row.defect.empty()) return fail(ErrorCode::input, std::string(row.defect));
  if (row.cells.size() != columns.names.size()) return fail(ErrorCode::input, "it has another number of cells");
  std::string workload;
  double clock = 0, time = 0, energy = 0;
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    const int at = static_cast<int>(i);
    double* const number = at == columns.clock    ? &clock
                           : at == columns.time   ? &time
                           : at == columns.energy ? &energy
                                                  : nullptr;
    if (number == nullptr) {
      workload += (workload.empty() ? "" : ", ") + columns.names[i] + " " + std::string(trim(row.cells[i]));
      continue;
    }
    const auto value = parse_double(trim(row.cells[i]));
    if (!value || !(*value > 0)) return fail(ErrorCode::input, columns.names[i] + " is no number above 0");
    *number = *value;
  }
  auto curve = std::find_if(curves.begin(), curves.end(), [&](const auto& c) { return c.first == workload; });
  if (curve == curves.end()) curve = curves.insert(curves.end(), {workload, {}});
  Sum& sum = curve->second[Hertz(clock * kMegahertz)];
  sum.time += Seconds(time);
  sum.energy += Joules(energy);
  sum.rows += 1;
  return {};
}

}  // namespace

bool names_clocks(std::string_view header_line) { return match(split(header_line, ',')).whole(); }

Result<ClockTable> read_clock_curves(ByteSource& bytes, const std::string& where) {
  CsvReader reader(bytes);
  ClockTable table;
  Columns columns;
  std::vector<std::pair<std::string, Sums>> curves;
  CsvRow row;
  while (true) {
    auto more = reader.next(row);
    if (!more) {
      more.error().where = where;
      return fail(std::move(more.error()));
    }
    if (!*more) break;
    if (trim(row.text).substr(0, 1) == "#") continue;
    if (columns.names.empty()) {
      columns = match(row.cells);
      if (!columns.whole()) {
        return fail(ErrorCode::input, "these columns are no curves by clock", where,
                    "known are stage,instruction,frequency,time,energy");
      }
      continue;
    }
    if (row.line > kMostRows) return fail(ErrorCode::input, "there are more than 1,000,000 rows", where);
    if (const auto added = add_row(row, columns, curves); !added) {
      ++table.skipped_count;
      if (table.skipped.size() < CurveTable::kMostSkipped) table.skipped.push_back({row.line, added.error().what});
    }
  }
  for (const auto& [workload, sums] : curves) {
    ClockCurve curve{workload, {}};
    for (const auto& [clock, sum] : sums) curve.samples.push_back({clock, sum.time / sum.rows, sum.energy / sum.rows});
    table.curves.push_back(std::move(curve));
  }
  if (table.curves.empty()) return fail(ErrorCode::input, "there is no usable row", where);
  return table;
}

}  // namespace flyball::curve
