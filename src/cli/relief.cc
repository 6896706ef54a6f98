#include "cli/relief.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "ledger/ledger.h"

namespace flyball::cli {
namespace {

struct Row {
  double it = 0, air = 0;
  Estimate fraction;
};

std::vector<Row> rows_of(std::string_view content) {
  std::vector<Row> rows;
  while (!content.empty()) {
    const std::string_view line = content.substr(0, content.find('\n'));
    content.remove_prefix(std::min(line.size() + 1, content.size()));
    constexpr std::string_view kWord = "relief ";
    if (!line.starts_with(kWord)) continue;
    std::array<double, 6> values{};
    std::string_view rest = line.substr(kWord.size());
    bool good = true;
    for (double& value : values) {
      const std::string_view part = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
      const auto read = parse_double(part);
      good = good && read.has_value();
      value = read.value_or(0);
    }
    if (good) rows.push_back({values[0], values[1], {values[2], values[3], values[4], values[5]}});
  }
  return rows;
}

Result<Celsius> parse_air(std::string text) {
  if (text.ends_with('C')) text.pop_back();
  const auto value = parse_double(text);
  constexpr double kMost = 60;
  if (value && std::abs(*value) <= kMost) return Celsius(*value);
  return fail(ErrorCode::input, fmt::format("'{}' is no wet bulb", text), "--wet-bulb", "write 12C");
}

}  // namespace

Result<report::CoolingRelief> relief_of(std::string_view content, std::optional<Celsius> air) {
  std::vector<Row> rows = rows_of(content);
  if (rows.empty())
    return fail(ErrorCode::input, "this version says nothing of relief", "--facility",
                "keep one of a building (flyball calibrate fit --keep)");
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.air < b.air; });
  const double wanted = air ? air->value() : rows[rows.size() / 2].air;
  const auto nearest = std::min_element(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    return std::abs(a.air - wanted) < std::abs(b.air - wanted);
  });
  std::vector<Row> loads;
  for (const Row& row : rows)
    if (row.air == nearest->air) loads.push_back(row);
  std::sort(loads.begin(), loads.end(), [](const Row& a, const Row& b) { return a.it < b.it; });
  Estimate made = loads[loads.size() / 2].fraction;
  for (const Row& row : loads) {
    made.low = std::min(made.low, row.fraction.low);
    made.high = std::max(made.high, row.fraction.high);
  }
  return report::CoolingRelief{made, fmt::format("at {:.1f} °C wet bulb", loads.front().air)};
}

Result<std::optional<report::CoolingRelief>> read_relief(const ReliefOptions& options, const std::string& ledger_path) {
  if (options.relief.empty() && options.facility.empty()) return std::nullopt;
  if (!options.relief.empty() && !options.facility.empty())
    return fail(ErrorCode::input, "--relief and --facility are given", {}, "give one of the two");
  if (!options.relief.empty()) {
    auto stated = parse_fraction(options.relief);
    if (!stated || *stated < 0 || *stated > 2)
      return fail(ErrorCode::input, fmt::format("'{}' is no share between 0 and 2", options.relief), "--relief",
                  "write 12%");
    return report::CoolingRelief{{*stated, *stated, *stated, 1}, "as stated"};
  }
  std::optional<Celsius> air;
  if (!options.wet_bulb.empty()) {
    FLYBALL_ASSIGN(air, parse_air(options.wet_bulb));
  }
  FLYBALL_ASSIGN(auto ledger, ledger::Ledger::open_read_only(ledger_path));
  FLYBALL_ASSIGN(const ledger::BaselineRow kept, ledger.baseline(options.facility));
  FLYBALL_ASSIGN(report::CoolingRelief made, relief_of(kept.content, air));
  made.basis = fmt::format("{}, version {}, {}", kept.subject, kept.hash.substr(0, 12), made.basis);
  return made;
}

}  // namespace flyball::cli
