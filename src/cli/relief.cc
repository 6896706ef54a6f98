#include "cli/relief.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "cli/kept_version.h"
#include "ledger/ledger.h"

namespace flyball::cli {
namespace {

struct Row {
  std::optional<double> air_c;
  Estimate fraction;
};

/// IT, air ("-": not metered), then the estimate: of all days first, then by their air.
std::vector<Row> rows_of(std::string_view content) {
  std::vector<Row> rows;
  while (!content.empty()) {
    const std::string_view line = content.substr(0, content.find('\n'));
    content.remove_prefix(std::min(line.size() + 1, content.size()));
    constexpr std::string_view kWord = "relief ";
    if (!line.starts_with(kWord)) continue;
    std::array<std::optional<double>, 6> values;
    std::string_view rest = line.substr(kWord.size());
    for (auto& value : values) {
      const std::string_view part = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
      if (const auto read = parse_double(part)) value = *read;
    }
    if (values[2] && values[3] && values[4] && values[5])
      rows.push_back({values[1], {*values[2], *values[3], *values[4], *values[5]}});
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
  const std::vector<Row> rows = rows_of(content);
  if (rows.empty())
    return fail(ErrorCode::input, "this version says nothing of relief", "--facility",
                "keep one of a building (flyball calibrate fit --keep)");
  if (!air) return report::CoolingRelief{rows.front().fraction, "over its days as they were"};
  const Row* nearest = nullptr;
  const auto off = [&](const Row& row) { return std::abs(*row.air_c - air->value()); };
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i].air_c && (nearest == nullptr || off(rows[i]) < off(*nearest))) nearest = &rows[i];
  if (nearest == nullptr)
    return fail(ErrorCode::input, "this version knows nothing of the air", "--wet-bulb", "leave it away");
  return report::CoolingRelief{nearest->fraction,
                               fmt::format("on its days around {:.1f} °C wet bulb", *nearest->air_c)};
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
  FLYBALL_ASSIGN(const ledger::BaselineRow kept, kept_version(ledger, options.facility));
  FLYBALL_ASSIGN(report::CoolingRelief made, relief_of(kept.content, air));
  made.basis = fmt::format("{}, version {}, {}", kept.subject, kept.hash.substr(0, 12), made.basis);
  return made;
}

}  // namespace flyball::cli
