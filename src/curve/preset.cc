#include "curve/preset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/csv.h"
#include "base/names.h"
#include "base/text.h"

namespace flyball::curve {
namespace {

constexpr std::size_t kMostBytes = 1 << 16;
constexpr std::string_view kEnding = ".csv";
constexpr const char* kMethod =
    "time made non-increasing and power non-decreasing in the limit (pool adjacent violators); between the knots "
    "monotone cubic, time in logs";

Result<> check_name(const std::string& name) {
  const bool good = !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
  if (good && name.front() != '.') return {};
  return fail(ErrorCode::input, "'" + name.substr(0, 64) + "' is no name of a curve", {},
              "names hold small letters, digits, '-' and '.'");
}

}  // namespace

Result<std::vector<std::string>> preset_names(Filesystem& files, const std::string& folder) {
  return names_of_files(files, folder + "/curves", kEnding);
}

Result<Preset> load_preset(Filesystem& files, const std::string& folder, const std::string& name) {
  FLYBALL_TRY(check_name(name));
  const std::string path = folder + "/curves/" + name + std::string(kEnding);
  if (!files.exists(path)) {
    return fail(ErrorCode::input, "there is no curve '" + name + "'", {},
                names_in_words(name, preset_names(files, folder).value_or(std::vector<std::string>{})));
  }
  FLYBALL_ASSIGN(const std::string text, files.read(path, kMostBytes));
  const auto bytes = raw_bytes_in_memory(text);
  FLYBALL_ASSIGN(CurveTable table, read_curves(*bytes, path, ""));
  if (table.skipped_count > 0) {
    return fail(ErrorCode::input, table.skipped[0].reason, path + ":" + std::to_string(table.skipped[0].line));
  }
  if (table.curves.size() != 1) {
    return fail(ErrorCode::input, fmt::format("it holds {} curves instead of one", table.curves.size()), path);
  }
  for (const char* key : {"source", "licence", "method"}) {
    if (table.header[key].empty()) {
      return fail(ErrorCode::input, fmt::format("it does not say its {}", key), path,
                  fmt::format("add a line '# {}: …' before the columns", key));
    }
  }
  const MeasuredCurve& measured = table.curves.front();
  auto curve = Curve::monotone(measured.points);
  if (!curve) {
    curve.error().where = path;
    return fail(std::move(curve.error()));
  }
  return Preset{name,
                measured.gpu,
                measured.workload,
                table.header["source"],
                table.header["licence"],
                table.header["method"],
                table.header["held-out error"],
                *std::move(curve)};
}

Result<std::string> make_preset(const MeasuredCurve& measured, const std::string& source, const std::string& licence) {
  FLYBALL_ASSIGN(const Curve curve, Curve::monotone(measured.points));
  FLYBALL_ASSIGN(const HeldOut error, held_out_error(std::span(&measured, 1)));
  std::string text = "# A fitted power-performance curve.\n";
  text += "# source: " + source + "\n# licence: " + licence + "\n# method: " + kMethod + "\n";
  if (error.time.points > 0) {
    text += fmt::format("# held-out error: time {}, power {} (median over {} limits left out)\n",
                        format_percent(error.time.median_fraction), format_percent(error.power.median_fraction),
                        error.time.points);
  }
  text += "gpu,workload,power_limit_w,time_s,power_w\n";
  for (const Point& knot : curve.knots()) {
    text += fmt::format("{},{},{},{:.5g},{:.5g}\n", csv_cell(measured.gpu), csv_cell(measured.workload),
                        knot.limit.watts().value(), knot.time.value(), knot.power.value());
  }
  return text;
}

}  // namespace flyball::curve
