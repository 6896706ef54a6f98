#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "cli/calibrate_facility.h"
#include "report/html.h"
#include "report/json.h"
#include "report/plot.h"
#include "report/table.h"

namespace flyball::cli {
namespace {

using report::Align;

std::string kwh(Joules energy) { return fmt::format("{:.1f} kWh", energy.value() / kJoulesPerKilowattHour); }

std::string kwh(const Estimate& joules) {
  const double k = kJoulesPerKilowattHour;
  return fmt::format("{:.1f} kWh ({:.1f} to {:.1f} at {:.0f} %){}", joules.value / k, joules.low / k, joules.high / k,
                     100 * joules.level, joules.low < 0 && joules.high > 0 ? ", not told from nothing" : "");
}

std::string seconds(const Estimate& time) {
  return fmt::format("{} ({} to {} at {:.0f} %)", format(Seconds(time.value)), format(Seconds(time.low)),
                     format(Seconds(time.high)), 100 * time.level);
}

report::Table accuracy_table(const FacilityMap& map, const FacilityCalibration& made) {
  report::Table table{
      .caption = fmt::format("{}: learned from {} points, {} foretold{}, each by what was known {} before", map.format,
                             made.train_points, made.test_points, made.on_training ? " (the second half)" : "",
                             format(made.delay)),
      .columns = {{"phase", Align::left},
                  {"points", Align::right},
                  {"error, median", Align::right},
                  {"95th percentile", Align::right},
                  {"NMBE", Align::right},
                  {fmt::format("inside {:.0f} %", 100 * made.level), Align::right},
                  {"half-width", Align::right},
                  {"frozen, 95th", Align::right},
                  {"static PUE, 95th", Align::right}},
      .rows = {}};
  for (const facility::PhaseAccuracy& row : made.rows)
    table.rows.push_back({name_of(row.key), std::to_string(row.points), format_percent(row.p50_fraction),
                          format_percent(row.p95_fraction), format_percent(row.nmbe_fraction),
                          format_percent(row.coverage_fraction, 1), format_percent(row.half_width_fraction),
                          format_percent(row.frozen_p95_fraction), format_percent(row.static_p95_fraction)});
  return table;
}

report::Table physics_table(const FacilityCalibration& made) {
  report::Table table{
      .caption = "Delivery, cooling and use", .columns = {{"", Align::left}, {"", Align::left}}, .rows = {}};
  const auto row = [&](const char* name, std::string value) { table.rows.push_back({name, std::move(value)}); };
  if (made.ups) {
    const facility::StageLoss& l = made.ups->loss;
    row("UPS loss", fmt::format("{} + {} of the load + {} × load² / {}{}", format(l.idle),
                                format_percent(l.proportional_fraction), format_percent(l.square_fraction),
                                format(l.rating), made.ups->note.empty() ? "" : "; " + made.ups->note));
  } else {
    row("UPS loss", "not told apart: " + made.ups_note);
  }
  if (made.lags.identifiable) {
    row("Dead time", seconds(made.lags.dead_time_s));
    row("First lag", seconds(made.lags.first_lag_s));
    row("Second lag", made.lags.second_lag_s.value > 0 ? seconds(made.lags.second_lag_s) : "none");
    row("Until the answer, mean", seconds(made.lags.total_s));
    if (!made.lags.note.empty()) row("", made.lags.note);
  } else {
    row("Dead time and lags", "not identifiable: " + made.lags.note);
  }
  if (made.pue.overall)
    row("PUE", fmt::format("{:.3f} ({:.3f} to {:.3f} at {:.0f} %)", made.pue.overall->value, made.pue.overall->low,
                           made.pue.overall->high, 100 * made.pue.overall->level));
  if (!made.pue.code.empty())
    row(made.pue.overall ? "PUE of the other hours" : "PUE",
        "no number (" + made.pue.code + "): " + made.pue.diagnosis);
  for (const facility::Relief& relief : made.relief) {
    const bool all = &relief == &made.relief.front();
    row("Saved again of a watt of IT",
        report::format_percent(relief.fraction, 1) +
            (all ? ", over these days" : fmt::format(", of them around {:.1f} °C wet bulb", relief.air->value())));
  }
  if (made.head_room) {
    const facility::HeadRoom& room = *made.head_room;
    row("Carries", fmt::format("{} of IT ({} to {} at {:.0f} %) at {:.1f} °C, limited by the {}{}",
                               format(Watts(room.it_w.value)), format(Watts(room.it_w.low)),
                               format(Watts(room.it_w.high)), 100 * room.it_w.level, made.design_air.value(),
                               room.limited_by, room.beyond_seen ? "; more than was ever seen: an extrapolation" : ""));
  }
  if (made.account)
    row("Carbon of what was foretold",
        fmt::format("{:.1f} kg for {}", made.account->carbon_g / 1000, kwh(made.account->energy)));
  return table;
}

/// Otherwise nobody knows when the job idled or wrote.
bool phases_are_told(const FacilityCalibration& made) {
  return std::any_of(made.rows.begin(), made.rows.end(),
                     [](const facility::PhaseAccuracy& row) { return row.key && row.key->phase != Phase::unknown; });
}

report::Table energy_table(const FacilityCalibration& made) {
  const facility::NonCompute& a = made.apart;
  report::Table table{.caption = "Energy that computes nothing, or more than it would take",
                      .columns = {{"", Align::left}, {"", Align::left}},
                      .rows = {}};
  const auto row = [&](const char* name, std::string value) { table.rows.push_back({name, std::move(value)}); };
  row("Facility, all", fmt::format("{}, IT {}", kwh(a.facility), kwh(a.it)));
  if (phases_are_told(made)) {
    row("Idle", fmt::format("{}, IT {}", kwh(a.idle), kwh(a.idle_it)));
    row("Checkpoints", fmt::format("{}, IT {}", kwh(a.checkpoint), kwh(a.checkpoint_it)));
    row("Over-cooling in checkpoints", kwh(a.checkpoint_over_cooling_j));
  } else {
    row("Idle and checkpoints", "not known: no phase of the job is told");
  }
  row("Over-cooling after any fall of load", kwh(a.over_cooling_j));
  row("Ripple within ten minutes", kwh(a.ripple_j));
  row("Staging hysteresis", a.staging_hysteresis_j ? kwh(*a.staging_hysteresis_j) : "running chillers are not metered");
  return table;
}

report::Json phase_json(const facility::PhaseAccuracy& row) {
  report::Json one = report::Json::object();
  one["job_type"] = row.key ? report::text(row.key->job_type) : report::Json(nullptr);
  one["phase"] = row.key ? report::Json(std::string(to_string(row.key->phase))) : report::Json(nullptr);
  one["points"] = row.points;
  one["transient_points"] = row.transients;
  one["p50_fraction"] = report::number(row.p50_fraction);
  one["p95_fraction"] = report::number(row.p95_fraction);
  one["nmbe_fraction"] = report::number(row.nmbe_fraction);
  one["coverage_fraction"] = report::number(row.coverage_fraction);
  one["half_width_fraction"] = report::number(row.half_width_fraction);
  one["frozen_p95_fraction"] = report::number(row.frozen_p95_fraction);
  one["static_pue_p50_fraction"] = report::number(row.static_p50_fraction);
  one["static_pue_p95_fraction"] = report::number(row.static_p95_fraction);
  return one;
}

report::Json lags_json(const facility::Lags& lags) {
  report::Json one = report::Json::object();
  one["identifiable"] = lags.identifiable;
  one["dead_time_s"] = lags.identifiable ? report::estimate(lags.dead_time_s) : report::Json(nullptr);
  one["first_lag_s"] = lags.identifiable ? report::estimate(lags.first_lag_s) : report::Json(nullptr);
  one["second_lag_s"] = lags.identifiable ? report::estimate(lags.second_lag_s) : report::Json(nullptr);
  one["total_s"] = lags.identifiable ? report::estimate(lags.total_s) : report::Json(nullptr);
  one["gain"] = report::number(lags.gain);
  one["note"] = report::text(lags.note);
  return one;
}

report::Json apart_json(const facility::NonCompute& a, bool phases) {
  report::Json one = report::Json::object();
  const auto told = [&](report::Json value) { return phases ? std::move(value) : report::Json(nullptr); };
  one["facility_j"] = report::number(a.facility.value());
  one["it_j"] = report::number(a.it.value());
  one["idle_j"] = told(report::number(a.idle.value()));
  one["idle_it_j"] = told(report::number(a.idle_it.value()));
  one["checkpoint_j"] = told(report::number(a.checkpoint.value()));
  one["checkpoint_it_j"] = told(report::number(a.checkpoint_it.value()));
  one["checkpoint_over_cooling_j"] = told(report::estimate(a.checkpoint_over_cooling_j));
  one["over_cooling_j"] = report::estimate(a.over_cooling_j);
  one["ripple_j"] = report::estimate(a.ripple_j);
  one["staging_hysteresis_j"] = report::estimate(a.staging_hysteresis_j);
  return one;
}

report::Plot power_plot(const FacilityCalibration& made) {
  report::Plot plot;
  plot.title = "The last hours, point by point";
  plot.description = "Measured power of the facility within the interval that was foretold, and the IT's power";
  plot.x = {.label = "time", .unit = "", .kind = report::AxisKind::utc};
  plot.y = {.label = "power", .unit = "W", .kind = report::AxisKind::linear};
  report::PlotLine measured{"measured", report::LineKind::line, {}, 0},
      expected{"foretold", report::LineKind::line, {}, 1}, it{"IT", report::LineKind::line, {}, 2};
  report::PlotBand band{fmt::format("{:.0f} % interval", 100 * made.level), {}, 1};
  for (const auto& shown : made.shown) {
    const double x = shown.at.seconds();
    measured.points.push_back({x, shown.measured.value()});
    expected.points.push_back({x, shown.expected.value()});
    it.points.push_back({x, shown.it.value()});
    band.columns.push_back({x, shown.low.value(), shown.high.value()});
    const std::string label(to_string(shown.phase));
    if (!plot.spans.empty() && plot.spans.back().label == label) {
      plot.spans.back().to = x;
    } else {
      plot.spans.push_back({x, x, label});
    }
  }
  plot.lines = {std::move(measured), std::move(expected), std::move(it)};
  plot.bands.push_back(std::move(band));
  return plot;
}

report::Plot hours_plot(const FacilityCalibration& made) {
  report::Plot plot;
  plot.title = "Hourly means of what was foretold";
  plot.description = "Measured and foretold power of the facility by the hour";
  plot.x = {.label = "time", .unit = "", .kind = report::AxisKind::utc};
  plot.y = {.label = "power", .unit = "W", .kind = report::AxisKind::linear};
  report::PlotLine measured{"measured", report::LineKind::line, {}, 0},
      expected{"foretold", report::LineKind::line, {}, 1};
  for (const auto& hour : made.hours) {
    measured.points.push_back({hour.start.seconds(), hour.measured.value()});
    expected.points.push_back({hour.start.seconds(), hour.expected_w.value});
  }
  plot.lines = {std::move(measured), std::move(expected)};
  return plot;
}

report::Plot pue_plot(const FacilityCalibration& made) {
  report::Plot plot;
  plot.title = "PUE by the hour";
  plot.description = "Power usage effectiveness with the interval of class 1 meters";
  plot.x = {.label = "time", .unit = "", .kind = report::AxisKind::utc};
  plot.y = {.label = "PUE", .unit = "", .kind = report::AxisKind::linear};
  report::PlotLine line{"PUE", report::LineKind::line, {}, 0};
  report::PlotBand band{"95 % interval", {}, 0};
  for (const auto& interval : made.pue.intervals) {
    const double x = interval.start.seconds();
    line.points.push_back({x, interval.pue ? interval.pue->value : report::kGap});
    if (interval.pue) band.columns.push_back({x, interval.pue->low, interval.pue->high});
  }
  plot.lines.push_back(std::move(line));
  plot.bands.push_back(std::move(band));
  return plot;
}

report::Plot answer_plot(const FacilityCalibration& made) {
  report::Plot plot;
  plot.title = "Answer of the cooling to a step of load";
  plot.description = "Share of the answer over time, by the dead time and lags that were found";
  plot.x = {.label = "time", .unit = "", .kind = report::AxisKind::elapsed};
  plot.y = {.label = "answer", .unit = "%", .kind = report::AxisKind::linear};
  std::vector<double> load(400, 1.0);
  load[0] = 0;
  const Seconds step(std::max(made.lags.total_s.value / 60, 0.1));
  const auto answer = facility::respond(load, step, Seconds(made.lags.dead_time_s.value),
                                        Seconds(made.lags.first_lag_s.value), Seconds(made.lags.second_lag_s.value));
  report::PlotLine line{"answer", report::LineKind::line, {}, 0};
  for (std::size_t i = 1; i < answer.size(); ++i)
    line.points.push_back({step.value() * static_cast<double>(i - 1), 100 * answer[i]});
  plot.lines.push_back(std::move(line));
  return plot;
}

}  // namespace

std::string facility_text(const FacilityMap& map, const FacilityCalibration& made) {
  std::string text = report::to_text(accuracy_table(map, made));
  if (made.left_out > 0)
    text += fmt::format("Not counted: {} points of phases that were not learned yet\n", made.left_out);
  text += '\n' + report::to_text(physics_table(made)) + '\n' + report::to_text(energy_table(made));
  text += version_line(made.version);
  return text;
}

std::string facility_json(const CalibrateOptions& options, const FacilityMap& map, const FacilityCalibration& made) {
  report::Json json = fit_document("facility", map.format, options, made.on_training, made.delay);
  json["train_points"] = made.train_points;
  json["test_points"] = made.test_points;
  json["points_not_learned"] = made.left_out;
  json["coverage_level"] = made.level;
  json["static_pue"] = report::number(made.train_pue);
  json["all"] = phase_json(made.rows.front());
  json["phases"] = report::Json::array();
  for (std::size_t i = 1; i < made.rows.size(); ++i) json["phases"].push_back(phase_json(made.rows[i]));
  json["lags"] = lags_json(made.lags);
  json["ups"] = nullptr;
  if (made.ups)
    json["ups"] = {{"rating_w", report::number(made.ups->loss.rating.value())},
                   {"idle_w", report::number(made.ups->loss.idle.value())},
                   {"proportional_fraction", report::number(made.ups->loss.proportional_fraction)},
                   {"square_fraction", report::number(made.ups->loss.square_fraction)},
                   {"rms_error_w", report::number(made.ups->rms_error.value())}};
  json["ups_note"] = report::text(made.ups ? made.ups->note : made.ups_note);
  json["pue"] = report::Json::object();
  json["pue"]["overall"] = report::estimate(made.pue.overall);
  json["pue"]["code"] = made.pue.code;
  json["pue"]["diagnosis"] = report::text(made.pue.diagnosis);
  json["pue"]["coverage_fraction"] = report::number(made.pue.coverage_fraction);
  json["pue"]["hours"] = report::Json::array();
  for (const auto& hour : made.pue.intervals)
    json["pue"]["hours"].push_back(
        {{"time", report::time(hour.start)}, {"pue", report::estimate(hour.pue)}, {"code", hour.code}});
  json["non_compute"] = apart_json(made.apart, phases_are_told(made));
  json["relief"] = report::Json::array();
  for (const auto& relief : made.relief)
    json["relief"].push_back({{"it_w", report::number(relief.it.value())},
                              {"air_celsius", relief.air ? report::number(relief.air->value()) : report::Json(nullptr)},
                              {"saved_again_fraction", report::estimate(relief.fraction)}});
  json["head_room"] = nullptr;
  if (made.head_room)
    json["head_room"] = {{"it_w", report::estimate(made.head_room->it_w)},
                         {"limited_by", made.head_room->limited_by},
                         {"beyond_seen", made.head_room->beyond_seen},
                         {"wet_bulb_celsius", report::number(made.design_air.value())}};
  json["carbon_g"] = made.account ? report::number(made.account->carbon_g) : report::Json(nullptr);
  json["intervals"] = report::Json::array();
  for (const auto& hour : made.hours) {
    report::Json one = {{"time", report::time(hour.start)},
                        {"measured_w", report::number(hour.measured.value())},
                        {"predicted_w", report::estimate(hour.expected_w)}};
    if (made.account) one["carbon_g"] = report::number(hour.carbon_g);
    json["intervals"].push_back(std::move(one));
  }
  json["version"] = version_json(made.version);
  json["warnings"] = report::Json::array();
  for (const std::string& warning : made.warnings) json["warnings"].push_back(report::text(warning));
  return report::dump(json);
}

std::string facility_page(const CalibrateOptions& options, const FacilityMap& map, const FacilityCalibration& made) {
  std::string files = options.train;
  for (const std::string& file : options.evaluate) files += ", " + file;
  report::HtmlPage page("Facility baseline", fmt::format("{}: {}, {} to {}", map.format, files,
                                                         format_rfc3339(made.first), format_rfc3339(made.last)));
  const facility::PhaseAccuracy& all = made.rows.front();
  page.figures({{"Error, 95th percentile", format_percent(all.p95_fraction),
                 fmt::format("static PUE: {}", format_percent(all.static_p95_fraction))},
                {fmt::format("Inside {:.0f} % intervals", 100 * made.level), format_percent(all.coverage_fraction, 1),
                 fmt::format("half-width {}", format_percent(all.half_width_fraction))},
                {"PUE", made.pue.overall ? fmt::format("{:.3f}", made.pue.overall->value) : "–",
                 made.pue.overall ? fmt::format("{:.3f} to {:.3f}", made.pue.overall->low, made.pue.overall->high)
                                  : made.pue.code}});
  page.table(accuracy_table(map, made)).plot(power_plot(made)).plot(hours_plot(made));
  page.section("Use").table(physics_table(made)).plot(pue_plot(made));
  if (made.lags.identifiable) page.plot(answer_plot(made));
  page.section("Energy that is no computing").table(energy_table(made));
  if (!made.warnings.empty()) page.section("Left out");
  for (const std::string& warning : made.warnings) page.paragraph(warning);
  return page.page();
}

}  // namespace flyball::cli
