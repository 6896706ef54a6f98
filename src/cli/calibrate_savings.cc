#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "cli/calibrate.h"
#include "facility/avoided.h"
#include "report/table.h"

namespace flyball::cli {
namespace {

constexpr double kHour = 3600, kDay = 86400;

/// The days of the change, which count on neither side.
struct Change {
  WallTime from, to;
  std::string source;
};

Result<WallTime> parse_date(const std::string& text, const char* flag) {
  auto at = parse_rfc3339(text + "T00:00:00Z");
  if (!at) return fail(ErrorCode::input, fmt::format("'{}' is no date", text), flag, "write 2025-03-01");
  return *at;
}

/// Beside published meters lies what is known of them; of that only the dates are used.
Result<std::optional<Change>> change_beside(const std::string& meter) {
  const std::filesystem::path file(meter);
  const std::string path = (file.parent_path() / "metadata.json").string();
  const auto text = system_filesystem().read(path, 1 << 20);
  if (!text) return std::optional<Change>();
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object()) return std::optional<Change>();
  for (const auto& entry : json) {
    if (!entry.is_object() || entry.value("meter_data_filename", "") != file.filename().string()) continue;
    FLYBALL_ASSIGN(const WallTime from, parse_date(entry.value("blackout_start_date", ""), path.c_str()));
    FLYBALL_ASSIGN(const WallTime to, parse_date(entry.value("blackout_end_date", ""), path.c_str()));
    return std::optional(Change{from, to, path});
  }
  return std::optional<Change>();
}

Result<Change> find_change(const CalibrateOptions& options) {
  Change change{{}, {}, "--change-from, --change-to"};
  if (options.change_from.empty() && options.change_to.empty()) {
    FLYBALL_ASSIGN(const auto beside, change_beside(options.train));
    if (beside) return *beside;
    return fail(ErrorCode::input, "it is not said when the change was made", options.train,
                "--change-from DATE --change-to DATE: days before the first are the baseline, from the second on "
                "the result");
  }
  FLYBALL_ASSIGN(change.from,
                 parse_date(options.change_from.empty() ? options.change_to : options.change_from, "--change-from"));
  FLYBALL_ASSIGN(change.to,
                 parse_date(options.change_to.empty() ? options.change_from : options.change_to, "--change-to"));
  if (change.to < change.from) return fail(ErrorCode::input, "the change ends before it begins", "--change-to");
  return change;
}

struct Piece {
  WallTime start;
  Seconds length;
  Joules energy;
};

/// The energy of each row until the next, but never longer than intervals usually are: rows may be missing.
std::vector<Piece> pieces_of(const Table& table, Joules unit) {
  std::vector<double> lengths;
  for (std::size_t i = 1; i < table.rows.size(); ++i)
    lengths.push_back((table.rows[i].at - table.rows[i - 1].at).value());
  const double usual = lengths.empty() ? 0 : median(lengths);
  std::vector<Piece> made;
  constexpr double kSlack = 1.2;  // a day in autumn has 25 hours
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const double length = i < lengths.size() && lengths[i] <= kSlack * usual ? lengths[i] : usual;
    made.push_back({table.rows[i].at, Seconds(length), table.rows[i].values[0] * unit});
  }
  return made;
}

/// Days that cannot be used, and why.
struct LeftOut {
  std::size_t incomplete = 0;       ///< of the meter
  std::size_t without_weather = 0;  ///< whole, but the air of an hour or more is not known
};

/// Days as the meter has them, or put together of shorter pieces from the first one's time of day on; only whole ones
/// of which the air of each hour is known.
Result<std::vector<facility::MeterDay>> days_of(const std::vector<Piece>& pieces, const facility::Weather& weather,
                                                const std::string& path, LeftOut& left_out) {
  std::vector<facility::MeterDay> days;
  if (pieces.empty()) return days;
  const double usual = pieces.front().length.value();
  if (usual > 1.2 * kDay || !(usual > 0))
    return fail(ErrorCode::input, fmt::format("the meter's intervals are {} long", format(Seconds(usual))), path,
                "give daily or shorter intervals");
  const auto add = [&](WallTime start, double length, Joules energy) {
    facility::MeterDay day{start, energy, {}};
    for (double t = 0; t < length - 0.5 * kHour; t += kHour) {
      const auto air = weather.at(start + Seconds(t));
      if (!air) break;
      day.air.push_back(*air);
    }
    const bool whole = static_cast<double>(day.air.size()) * kHour > length - 0.75 * kHour;
    if (whole && !day.air.empty())
      days.push_back(std::move(day));
    else
      ++left_out.without_weather;
  };
  constexpr double kDaily = 0.8 * kDay;
  if (usual > kDaily) {
    for (const Piece& piece : pieces) add(piece.start, piece.length.value(), piece.energy);
    return days;
  }
  const WallTime first = pieces.front().start;
  for (std::size_t i = 0; i < pieces.size();) {
    const double number = std::floor((pieces[i].start - first).value() / kDay);
    const WallTime start = first + Seconds(number * kDay);
    double covered = 0;
    Joules energy;
    for (; i < pieces.size() && pieces[i].start < start + Seconds(kDay); ++i) {
      covered += pieces[i].length.value();
      energy += pieces[i].energy;
    }
    if (covered > kDay - 0.5 * usual)
      add(start, kDay, energy);
    else
      ++left_out.incomplete;
  }
  return days;
}

struct Savings {
  Change change;
  facility::AvoidedEnergy avoided;
  LeftOut left_out;
  std::size_t of_the_change = 0;
  std::size_t negative_before = 0, negative_after = 0;  ///< intervals, on either side of the change
  std::string weather_covers;
  std::vector<std::string> warnings;
};

/// A meter that runs backwards is exchanged, turned round or wrong: such rows are no use, and a reason not to claim.
void leave_out_negatives(const std::string& path, Table& table, Savings& made) {
  const TableRow* first = nullptr;
  for (const TableRow& row : table.rows) {
    if (row.values[0] >= 0) continue;
    if (first == nullptr) first = &row;
    ++(row.at < made.change.from ? made.negative_before : made.negative_after);
  }
  if (first == nullptr) return;
  made.warnings.push_back(fmt::format("{}: {} rows are below zero and left out, the first in line {}: {}", path,
                                      made.negative_before + made.negative_after, first->line, first->values[0]));
  std::erase_if(table.rows, [](const TableRow& row) { return row.values[0] < 0; });
}

/// Where too few days are left, what became of the others.
std::string causes_of(const Savings& made) {
  std::string text;
  const auto add = [&](std::size_t count, const char* what) {
    if (count > 0) text += fmt::format("; {} {}", count, what);
  };
  add(made.negative_before + made.negative_after, "intervals are below zero");
  add(made.left_out.incomplete, "days are incomplete");
  add(made.left_out.without_weather, "days have no weather");
  if (made.left_out.without_weather > 0) text += fmt::format(" ({})", made.weather_covers);
  add(made.of_the_change, "are days of the change");
  return text;
}

Result<Savings> savings(const CalibrateOptions& options, const MeterMap& map) {
  Savings made;
  FLYBALL_ASSIGN(made.change, find_change(options));
  if (options.weather.empty())
    return fail(ErrorCode::input, "there is no weather", "--weather", "name the file of the outdoor air");
  FLYBALL_ASSIGN(const facility::Weather air, read_weather(options.weather, {map.weather_time, map.zone, Fold::earlier},
                                                           {map.dry_bulb}, map.fahrenheit, made.warnings));
  constexpr double kMostJoules = 1e15;
  const double most = kMostJoules / map.energy_unit.value();
  FLYBALL_ASSIGN(Table table,
                 read_table(options.train, {map.start, map.zone, Fold::earlier}, {{map.energy, -most, most}}));
  tell(table, options.train, made.warnings);
  leave_out_negatives(options.train, table, made);
  FLYBALL_ASSIGN(const auto days, days_of(pieces_of(table, map.energy_unit), air, options.train, made.left_out));
  made.weather_covers = coverage_of(options.weather, air);
  if (const std::size_t bare = made.left_out.without_weather; bare > 0)
    made.warnings.push_back(fmt::format(
        "{} of {} days ({}) have no weather: {}; they are not counted, name their files with --weather", bare,
        bare + days.size(), format_percent(static_cast<double>(bare) / static_cast<double>(bare + days.size()), 0),
        made.weather_covers));
  std::vector<facility::MeterDay> baseline, reporting;
  for (const facility::MeterDay& day : days) {
    // Its middle tells the date, whatever the zone.
    const WallTime middle = day.start + Seconds(kDay / 2);
    if (middle < made.change.from)
      baseline.push_back(day);
    else if (middle >= made.change.to)
      reporting.push_back(day);
    else
      ++made.of_the_change;
  }
  auto avoided = facility::avoided_energy(baseline, reporting);
  if (!avoided) {
    avoided.error().where = options.train;
    avoided.error().what += causes_of(made);
    return fail(std::move(avoided.error()));
  }
  made.avoided = std::move(*avoided);
  if (made.negative_before + made.negative_after > 0)
    made.avoided.disqualified.push_back(
        {"negative_energy", fmt::format("{} intervals before the change and {} after it are below zero; find out why, "
                                        "and mend or take out these days",
                                        made.negative_before, made.negative_after)});
  return made;
}

report::Json document(const CalibrateOptions& options, const MeterMap& map, const Savings& made) {
  const facility::AvoidedEnergy& a = made.avoided;
  report::Json json = report::document("calibrate");
  json["kind"] = "savings";
  json["format"] = report::text(map.format);
  json["meter"] = report::text(options.train);
  json["change_from"] = report::time(made.change.from);
  json["change_to"] = report::time(made.change.to);
  json["baseline_days"] = a.baseline_days;
  json["reporting_days"] = a.reporting_days;
  json["incomplete_days"] = made.left_out.incomplete + made.left_out.without_weather;
  json["change_days"] = made.of_the_change;
  report::Json model = report::Json::object();
  model["base_j_per_day"] = report::number(a.model.base.value());
  model["heating_j_per_day_kelvin"] = report::number(a.model.heating.value());
  model["cooling_j_per_day_kelvin"] = report::number(a.model.cooling.value());
  model["heating_balance_celsius"] =
      a.model.heats ? report::number(a.model.heating_balance.value()) : report::Json(nullptr);
  model["cooling_balance_celsius"] =
      a.model.cools ? report::number(a.model.cooling_balance.value()) : report::Json(nullptr);
  json["model"] = std::move(model);
  json["cvrmse_fraction"] = report::number(a.cvrmse_fraction);
  json["nmbe_fraction"] = report::number(a.nmbe_fraction);
  json["r_squared"] = report::number(a.r_squared);
  json["lag_one_correlation"] = report::number(a.lag_one);
  json["effective_days"] = report::number(a.effective_days);
  json["predicted_j"] = report::number(a.predicted.value());
  json["measured_j"] = report::number(a.measured.value());
  json["avoided_j"] = report::estimate(a.avoided_j);
  json["saved_fraction"] = report::estimate(a.saved_fraction);
  json["may_be_claimed"] = a.disqualified.empty();
  json["disqualified"] = report::Json::array();
  for (const auto& why : a.disqualified)
    json["disqualified"].push_back({{"code", why.code}, {"what", report::text(why.what)}});
  json["warnings"] = report::Json::array();
  for (const std::string& warning : made.warnings) json["warnings"].push_back(report::text(warning));
  return json;
}

std::string text_of(const MeterMap& map, const Savings& made) {
  using report::Align;
  const facility::AvoidedEnergy& a = made.avoided;
  report::Table table{.caption = fmt::format("{}: avoided energy, baseline before {}, result from {}", map.format,
                                             format_rfc3339(made.change.from).substr(0, 10),
                                             format_rfc3339(made.change.to).substr(0, 10)),
                      .columns = {{"", Align::left}, {"", Align::right}},
                      .rows = {}};
  const auto row = [&](const char* name, std::string value) { table.rows.push_back({name, std::move(value)}); };
  row("Days: baseline, result", fmt::format("{}, {}", a.baseline_days, a.reporting_days));
  row("Would have been used", format(a.predicted));
  row("Was used", format(a.measured));
  row("Avoided",
      fmt::format("{} ({} to {} at {:.0f} %)", format(Joules(a.avoided_j.value)), format(Joules(a.avoided_j.low)),
                  format(Joules(a.avoided_j.high)), 100 * a.avoided_j.level));
  row("Saved", report::format_percent(a.saved_fraction));
  row("Base use a day", format(a.model.base));
  if (a.model.heats)
    row("Heating below",
        fmt::format("{:.1f} °C, {} a day and kelvin", a.model.heating_balance.value(), format(a.model.heating)));
  if (a.model.cools)
    row("Cooling above",
        fmt::format("{:.1f} °C, {} a day and kelvin", a.model.cooling_balance.value(), format(a.model.cooling)));
  row("CV(RMSE), NMBE, R²", fmt::format("{}, {}, {:.2f}", format_percent(a.cvrmse_fraction, 1),
                                        format_percent(a.nmbe_fraction), a.r_squared));
  row("Autocorrelation; days as independent ones", fmt::format("{:.2f}; {:.0f}", a.lag_one, a.effective_days));
  std::string text = report::to_text(table);
  for (const auto& why : a.disqualified) text += fmt::format("Not to be claimed ({}): {}\n", why.code, why.what);
  return text;
}

}  // namespace

Result<> calibrate_savings(const CalibrateOptions& options, const MeterMap& map, Context& context) {
  FLYBALL_ASSIGN(const Savings made, savings(options, map));
  for (const std::string& warning : made.warnings) log::warning("calibrate", "{}", warning);
  return context.out.write(context.options.json ? report::dump(document(options, map, made)) : text_of(map, made));
}

}  // namespace flyball::cli
