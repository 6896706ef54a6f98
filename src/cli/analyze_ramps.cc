#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "cli/analyze.h"
#include "report/table.h"
#include "series/ramps.h"
#include "series/spectrum.h"

namespace flyball::cli {
namespace {

// Where power systems have their own modes and lamps flicker.
constexpr Hertz kBandFrom{0.1}, kBandTo{20};

report::Json ramp_json(const series::Ramp& r) {
  report::Json one = report::Json::object();
  one["span_s"] = report::number(r.span.value());
  one["resolved"] = r.resolved;
  const auto known = [&](double v) { return r.pairs > 0 ? report::number(v) : report::Json(nullptr); };
  one["max_up_w_per_s"] = known(r.max_up_w_per_s);
  one["max_down_w_per_s"] = known(r.max_down_w_per_s);
  one["p50_w_per_s"] = known(r.p50_w_per_s);
  one["p95_w_per_s"] = known(r.p95_w_per_s);
  one["p99_w_per_s"] = known(r.p99_w_per_s);
  one["up_at"] = report::time(r.up_at);
  one["down_at"] = report::time(r.down_at);
  return one;
}

report::Json spectrum_json(const series::Spectrum& s) {
  report::Json one = report::Json::object();
  one["nyquist_hz"] = report::number(s.nyquist.value());
  one["resolution_hz"] = report::number(s.resolution.value());
  one["segments"] = s.segments;
  one["band_from_hz"] = report::number(kBandFrom.value());
  one["band_to_hz"] = report::number(std::min(kBandTo, s.nyquist).value());
  one["band_rms_w"] = s.density.empty() || s.nyquist <= kBandFrom
                          ? report::Json(nullptr)
                          : report::number(std::sqrt(s.band_power(kBandFrom, kBandTo)));
  one["lines"] = report::Json::array();
  for (const series::Line& line : s.lines) {
    report::Json entry = report::Json::object();
    entry["frequency_hz"] = report::number(line.frequency.value());
    entry["amplitude_w"] = report::number(line.amplitude_w);
    entry["prominence"] = report::number(line.prominence);
    one["lines"].push_back(std::move(entry));
  }
  one["note"] = report::text(s.note);
  return one;
}

std::string rate(const series::Ramp& r, double w_per_s) { return r.pairs > 0 ? format(Watts(w_per_s)) + "/s" : "–"; }

report::Table ramp_table(const AnalyzedRun& run, const std::vector<series::Ramp>& ramps) {
  using report::Align;
  report::Table table{.caption = "Ramps of " + title_of(run),
                      .columns = {{"over", Align::right},
                                  {"steepest rise", Align::right},
                                  {"steepest fall", Align::right},
                                  {"median", Align::right},
                                  {"95 %", Align::right},
                                  {"99 %", Align::right}},
                      .rows = {}};
  for (const series::Ramp& r : ramps)
    table.rows.push_back({format(r.span) + (r.resolved ? "" : " *"), rate(r, r.max_up_w_per_s),
                          rate(r, r.max_down_w_per_s), rate(r, r.p50_w_per_s), rate(r, r.p95_w_per_s),
                          rate(r, r.p99_w_per_s)});
  return table;
}

report::Table line_table(const series::Spectrum& s) {
  using report::Align;
  report::Table table{.caption = "Lines of the spectrum",
                      .columns = {{"frequency", Align::right},
                                  {"period", Align::right},
                                  {"amplitude", Align::right},
                                  {"over its floor", Align::right}},
                      .rows = {}};
  for (const series::Line& line : s.lines)
    table.rows.push_back({format(line.frequency), format(Seconds(1 / line.frequency.value())),
                          format(Watts(line.amplitude_w)), fmt::format("{:.0f} times", line.prominence)});
  return table;
}

report::Plot spectrum_plot(const AnalyzedRun& run, const series::Spectrum& s) {
  report::Plot plot;
  plot.title = "Power spectral density of " + title_of(run);
  plot.description = s.note;
  plot.x = {.label = "frequency", .unit = "Hz", .kind = report::AxisKind::logarithmic};
  plot.y = {.label = "density", .unit = "W²/Hz", .kind = report::AxisKind::logarithmic};
  report::PlotLine line;
  line.name = "density";
  for (std::size_t k = 1; k < s.density.size(); ++k) line.points.push_back({s.frequency[k].value(), s.density[k]});
  plot.lines.push_back(std::move(line));
  return plot;
}

}  // namespace

Result<> analyze_ramps(const AnalyzeOptions& options, Context& context) {
  FLYBALL_ASSIGN(AnalyzeInput input, read_analyze_input(options, context.files));
  report::Json json = analyze_document("ramps", input);
  report::HtmlPage page("Ramps and spectrum", "flyball analyze ramps");
  std::string text;
  const auto spans = series::default_ramp_spans();
  json["runs"] = report::Json::array();
  for (const AnalyzedRun& run : input.runs) {
    series::SpectrumOptions how;
    how.gap = input.gap;
    series::SpectrumMeter spectrum_meter(how);
    std::optional<series::RampMeter> ramp_meter;
    FLYBALL_TRY(each_chapter(input, run, [&](const series::Series& chapter) {
      const auto points = run.bounded_by_events ? series::points_within(chapter.points, run.interval)
                                                : std::span<const series::Point>(chapter.points);
      const series::Samples samples = series::usable_samples(points);
      if (!ramp_meter && samples.size() > 1) ramp_meter.emplace(samples.period, spans, input.gap);
      if (ramp_meter) ramp_meter->add(samples);
      spectrum_meter.add(samples);
    }));
    const auto ramps = ramp_meter ? ramp_meter->result() : std::vector<series::Ramp>();
    const series::Spectrum spectrum = spectrum_meter.result();
    report::Json one = report::Json::object();
    one["run"] = run.name.empty() ? report::Json(nullptr) : report::text(run.name);
    one["meters"] = run.meters.size();
    one["ramps"] = report::Json::array();
    for (const series::Ramp& r : ramps) one["ramps"].push_back(ramp_json(r));
    one["spectrum"] = spectrum_json(spectrum);
    json["runs"].push_back(std::move(one));
    const report::Table table = ramp_table(run, ramps), lines = line_table(spectrum);
    text +=
        report::to_text(table) + "\n" + (spectrum.lines.empty() ? "" : report::to_text(lines)) + spectrum.note + "\n\n";
    page.section(title_of(run)).table(table).plot(spectrum_plot(run, spectrum)).table(lines).paragraph(spectrum.note);
  }
  return give_results(context, options, input, text, json, page);
}

}  // namespace flyball::cli
