#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/csv.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/app.h"
#include "curve/clock_family.h"
#include "curve/held_out.h"
#include "curve/preset.h"
#include "curve/table.h"
#include "report/json.h"
#include "report/table.h"

namespace flyball::cli {
namespace {

struct Options {
  std::string file;
  std::string board;
  std::string only;
  bool preset = false;
  std::string source, licence;
  std::string family_from;
};

/// The clocks that P4 of the bars splits at: those from here on are fitted, those below predicted.
constexpr Hertz kClockCut{1.125e9};

report::Json points_json(const std::vector<curve::Point>& points) {
  report::Json all = report::Json::array();
  for (const curve::Point& each : points) {
    report::Json point = report::Json::object();
    point["power_limit_w"] = report::number(each.limit.watts().value());
    point["time_s"] = report::number(each.time.value());
    point["power_w"] = report::number(each.power.value());
    all.push_back(std::move(point));
  }
  return all;
}

report::Json to_json(const curve::ErrorSummary& error) {
  report::Json made = report::Json::object();
  made["points"] = error.points;
  made["median_fraction"] = report::number(error.median_fraction);
  made["p95_fraction"] = report::number(error.p95_fraction);
  return made;
}

Result<report::Json> fit_json(const std::string& file, const curve::CurveTable& table, const curve::HeldOut& error) {
  report::Json made = report::document("fit");
  made["file"] = report::text(file);
  made["rows_skipped"] = table.skipped_count;
  report::Json curves = report::Json::array();
  for (const curve::MeasuredCurve& measured : table.curves) {
    FLYBALL_ASSIGN(const curve::Curve fitted, curve::Curve::monotone(measured.points));
    report::Json one = report::Json::object();
    one["gpu"] = report::text(measured.gpu);
    one["workload"] = report::text(measured.workload);
    one["network"] = report::text(measured.network);
    one["measured"] = points_json(measured.points);
    one["knots"] = points_json(fitted.knots());
    curves.push_back(std::move(one));
  }
  made["curves"] = std::move(curves);
  report::Json held_out = report::Json::object();
  held_out["curves"] = error.curves;
  held_out["curves_too_short"] = error.too_short;
  held_out["time"] = to_json(error.time);
  held_out["power"] = to_json(error.power);
  held_out["time_coverage_fraction"] = report::number(error.time_coverage_fraction);
  held_out["time_coverage_level"] = 0.9;
  held_out["boards"] = report::Json::array();
  for (const curve::BoardFit& board : error.boards) {
    report::Json one = report::Json::object();
    one["gpu"] = report::text(board.gpu);
    one["bump_fraction"] = report::number(board.bump_fraction);
    one["bump_length_log"] = report::number(board.bump_length);
    held_out["boards"].push_back(std::move(one));
  }
  held_out["time_ratio"] = report::estimate(error.time_ratio);
  held_out["reference_time"] = to_json(error.reference_time);
  held_out["reference_power"] = to_json(error.reference_power);
  made["held_out"] = std::move(held_out);
  return made;
}

report::Table error_table(const curve::HeldOut& error) {
  using report::Align;
  report::Table table{.caption = "Error at limits left out (train on the 1st, 3rd, 5th …; ask between them)",
                      .columns = {{"", Align::left},
                                  {"points", Align::right},
                                  {"median", Align::right},
                                  {"95th percentile", Align::right}},
                      .rows = {}};
  const auto add = [&](const char* name, const curve::ErrorSummary& e) {
    table.rows.push_back(
        {name, std::to_string(e.points), format_percent(e.median_fraction), format_percent(e.p95_fraction)});
  };
  add("time", error.time);
  add("time, plain interpolation", error.reference_time);
  add("power", error.power);
  add("power, plain interpolation", error.reference_power);
  return table;
}

Result<std::string> fit_text(const curve::CurveTable& table, const curve::HeldOut& error) {
  using report::Align;
  std::string text;
  for (const curve::MeasuredCurve& measured : table.curves) {
    FLYBALL_ASSIGN(const curve::Curve fitted, curve::Curve::monotone(measured.points));
    report::Table knots{.caption = measured.name() + "\nfitted: never slower, and never less power, with more limit",
                        .columns = {{"limit", Align::right},
                                    {"time measured", Align::right},
                                    {"fitted", Align::right},
                                    {"power measured", Align::right},
                                    {"fitted", Align::right},
                                    {"slower by", Align::right},
                                    {"energy saved", Align::right}},
                        .rows = {}};
    for (const curve::Point& knot : fitted.knots()) {
      const Watts limit = knot.limit.watts();
      const auto seen = std::find_if(measured.points.begin(), measured.points.end(),
                                     [&](const curve::Point& p) { return p.limit == knot.limit; });
      const bool known = seen != measured.points.end();
      knots.rows.push_back({format(limit), known ? format(seen->time) : "–", format(knot.time),
                            known ? format(seen->power) : "–", format(knot.power),
                            format_percent(1 - fitted.speed_fraction(limit)),
                            format_percent(1 - fitted.energy(limit) / fitted.energy(fitted.highest()))});
    }
    text += report::to_text(knots) + '\n';
  }
  text += report::to_text(error_table(error));
  if (error.time.points > 0) {
    text += fmt::format(
        "Of the times left out {} lie inside their 90 % interval. Median error of time against plain "
        "interpolation: {:.2f} ({:.2f} to {:.2f}, by network)\n",
        format_percent(error.time_coverage_fraction, 1), error.time_ratio.value, error.time_ratio.low,
        error.time_ratio.high);
  }
  for (const curve::BoardFit& board : error.boards) {
    text +=
        fmt::format("Common to the jobs of {}: bumps of {} over {:.2f} in ln(limit) beside the shape of all boards\n",
                    board.gpu, format_percent(board.bump_fraction), board.bump_length);
  }
  if (error.too_short > 0) text += fmt::format("{} curves have fewer than three limits\n", error.too_short);
  return text;
}

/// "summary_power_v100.csv" says no board: its name is the best that is known.
std::string board_of(const Options& options) {
  return options.board.empty() ? std::filesystem::path(options.file).stem().string() : options.board;
}

Result<bool> is_by_clock(const std::string& file) {
  FLYBALL_ASSIGN(const auto bytes, open_bytes(file));
  LineReader lines(*bytes);
  Line line;
  for (;;) {
    FLYBALL_ASSIGN(const bool more, lines.next(line));
    if (!more) return false;
    const auto text = trim(line.text);
    if (!text.empty() && text.front() != '#') return curve::names_clocks(text);
  }
}

Result<curve::ClockTable> load_clocks(const std::string& file) {
  FLYBALL_ASSIGN(const auto bytes, open_bytes(file));
  FLYBALL_ASSIGN(curve::ClockTable table, curve::read_clock_curves(*bytes, file));
  for (const curve::SkippedRow& row : table.skipped) {
    log::warning("fit", "{}:{}: skipped: {}", file, row.line, row.reason);
  }
  return table;
}

Result<> fit_clocks(const Options& options, Context& context) {
  FLYBALL_ASSIGN(const curve::ClockTable table, load_clocks(options.file));
  curve::ClockFamily family = curve::clock_family();
  if (!options.family_from.empty()) {
    FLYBALL_ASSIGN(const curve::ClockTable other, load_clocks(options.family_from));
    FLYBALL_ASSIGN(family, curve::learn_clock_family(other.curves, kClockCut, options.family_from));
  }
  FLYBALL_ASSIGN(const curve::ClockHeldOut error, curve::held_out_below(table.curves, family, kClockCut));
  if (error.curves == 0) {
    return fail(ErrorCode::input, "no curve has clocks on both sides of " + format(kClockCut), options.file);
  }
  if (context.options.json) {
    report::Json made = report::document("fit");
    made["file"] = report::text(options.file);
    made["rows_skipped"] = table.skipped_count;
    made["family_from"] = report::text(family.learnt_from);
    report::Json held_out = report::Json::object();
    held_out["curves"] = error.curves;
    held_out["below_hz"] = report::number(kClockCut.value());
    held_out["time"] = to_json(error.time);
    held_out["energy"] = to_json(error.energy);
    made["held_out"] = std::move(held_out);
    return context.out.write(report::dump(made));
  }
  using report::Align;
  report::Table errors{.caption = fmt::format("Error at clocks below {}, of {} curves fitted at those above; what is "
                                              "common to all work was learnt from {}",
                                              format(kClockCut), error.curves, family.learnt_from),
                       .columns = {{"", Align::left},
                                   {"points", Align::right},
                                   {"median", Align::right},
                                   {"95th percentile", Align::right}},
                       .rows = {}};
  for (const auto& [name, e] : {std::pair("time", error.time), std::pair("energy", error.energy)}) {
    errors.rows.push_back(
        {name, std::to_string(e.points), format_percent(e.median_fraction), format_percent(e.p95_fraction)});
  }
  return context.out.write(report::to_text(errors));
}

Result<> fit(const Options& options, Context& context) {
  FLYBALL_ASSIGN(const bool by_clock, is_by_clock(options.file));
  if (by_clock) return fit_clocks(options, context);
  FLYBALL_ASSIGN(const auto bytes, open_bytes(options.file));
  FLYBALL_ASSIGN(curve::CurveTable table, curve::read_curves(*bytes, options.file, board_of(options)));
  for (const curve::SkippedRow& row : table.skipped) {
    log::warning("fit", "{}:{}: skipped: {}", options.file, row.line, row.reason);
  }
  if (!options.only.empty()) {
    std::erase_if(table.curves, [&](const curve::MeasuredCurve& c) { return c.workload != options.only; });
    if (table.curves.empty()) {
      return fail(ErrorCode::input, "no curve has the workload '" + options.only + "'", options.file,
                  "`flyball fit` without --workload shows those that are there");
    }
  }
  if (options.preset) {
    if (table.curves.size() != 1 || options.source.empty() || options.licence.empty()) {
      return fail(ErrorCode::input, "a preset is one curve with its source and licence", "--preset",
                  "add --workload, --source and --licence");
    }
    FLYBALL_ASSIGN(const std::string text, curve::make_preset(table.curves[0], options.source, options.licence));
    return context.out.write(text);
  }
  curve::CurveTable more;
  if (!options.family_from.empty()) {
    FLYBALL_ASSIGN(const auto other, open_bytes(options.family_from));
    FLYBALL_ASSIGN(more, curve::read_curves(*other, options.family_from, board_of(options)));
  }
  FLYBALL_ASSIGN(const curve::HeldOut error, curve::held_out_error(table.curves, more.curves));
  if (context.options.json) {
    FLYBALL_ASSIGN(const report::Json made, fit_json(options.file, table, error));
    return context.out.write(report::dump(made));
  }
  FLYBALL_ASSIGN(const std::string text, fit_text(table, error));
  return context.out.write(text);
}

}  // namespace

void add_fit(Registry& registry) {
  auto options = std::make_shared<Options>();
  CLI::App& command = registry.add(
      {.name = "fit",
       .summary = "Fit power-performance curves and say how well they tell what was not measured",
       .examples = "  flyball fit curves.csv\n"
                   "  flyball fit curves.csv --board V100 --workload 'squad bert, batch 32, adamw' \\\n"
                   "      --preset --source 'own measurement' --licence CC0 --output presets/curves/mine.csv\n"
                   "  flyball fit a100_sxm_clock_stages_gpt3-175b.csv --family-from a100_sxm_clock_stages_bloom.csv\n"
                   "Columns: gpu,workload,power_limit_w,time_s,power_w, or those of published sweeps; by locked clock\n"
                   "stage,instruction,frequency,time,energy (MHz, s, J)"},
      [options](Context& context) { return fit(*options, context); });
  command.add_option("FILE", options->file, "CSV file, also .gz or .zst")->required();
  command.add_option("--board", options->board, "Name of the GPU where the file has none")->type_name("NAME");
  command.add_option("--workload", options->only, "Only the curve of this workload")->type_name("NAME");
  command
      .add_option("--family-from", options->family_from,
                  "Curves of other work on the same board: learn from these what all work on it has in common")
      ->type_name("FILE");
  command.add_flag("--preset", options->preset, "Print the curve as a preset for presets/curves");
  command.add_option("--source", options->source, "Of the preset: who measured it")->type_name("TEXT");
  command.add_option("--licence", options->licence, "Of the preset: under which licence")->type_name("TEXT");
}

}  // namespace flyball::cli
