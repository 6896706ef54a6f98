#include "cli/cause_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "report/html.h"
#include "report/table.h"

namespace flyball::cli {
namespace {

using facility::Channel;
using facility::ChannelInfo;

std::string number_text(double value) { return fmt::format("{:.4g}", value); }

/// "+8.70 kW (8.52 to 8.88)", "-0.0230".
std::string size_text(const ChannelInfo& info, const Estimate& shift) {
  const auto shown = [&](double value) -> std::string {
    const char* sign = value < 0 ? "-" : "+";
    const double size = std::abs(value);
    if (info.unit == "W") return sign + format(Watts(size));
    if (info.unit == "Hz") return sign + format(Hertz(size));
    return sign + number_text(size) + (info.unit == "1" ? "" : " " + std::string(info.unit == "C" ? "K" : info.unit));
  };
  return fmt::format("{} ({} to {})", shown(shift.value), shown(shift.low), shown(shift.high));
}

std::string name_of(const facility::CauseFinding& finding) {
  return std::string(to_string(finding.cause)) + (finding.form.empty() ? "" : " (" + finding.form + ")");
}

std::string time_text(const facility::CauseFinding& finding) {
  return fmt::format("since {}{}", format_rfc3339(finding.since),
                     finding.until ? " until " + format_rfc3339(*finding.until) : "");
}

std::string finding_text(const facility::CauseFinding& finding) {
  std::string text = fmt::format("{}. {}, {} layer, {}, confidence {}\n", finding.number, name_of(finding),
                                 to_string(layer_of(finding.cause)), time_text(finding),
                                 format_percent(finding.confidence_fraction, 0));
  if (!finding.note.empty()) text += "   " + finding.note + '\n';
  for (const facility::CauseEvidence& evidence : finding.evidence) {
    const ChannelInfo& info = facility::info_of(evidence.channel);
    text += fmt::format("   {} {}: {} ({})\n", evidence.known_by ? "known by" : "with it ", info.name,
                        size_text(info, evidence.shift), info.about);
  }
  for (const auto& [cause, probability] : finding.alternatives)
    if (probability >= 0.01) text += fmt::format("   or {}: {}\n", to_string(cause), format_percent(probability, 0));
  return text;
}

std::string names_text(const std::vector<Channel>& channels) {
  std::string text;
  for (const Channel channel : channels)
    text += (text.empty() ? "" : ", ") + std::string(facility::info_of(channel).name);
  return text;
}

/// Prometheus names its units.
std::string metric_unit(std::string_view unit) {
  static const std::map<std::string_view, std::string> kUnits = {
      {"W", "watts"}, {"C", "celsius"}, {"Hz", "hertz"}, {"V", "volts"}, {"1", "ratio"}, {"1/s", "per_second"}};
  const auto found = kUnits.find(unit);
  return found == kUnits.end() ? "ratio" : found->second;
}

report::Plot plot_of(Channel channel, const facility::CauseWatch& watch) {
  const ChannelInfo& info = facility::info_of(channel);
  report::Plot plot;
  plot.title = std::string(info.name) + ": " + std::string(info.about);
  plot.description = "Measured and expected, and three standard deviations of a block around what is expected";
  plot.x = {"time", "", report::AxisKind::utc, false};
  plot.y = {std::string(info.name), info.unit == "1" ? "" : std::string(info.unit), report::AxisKind::linear, false};
  report::PlotLine measured{"measured", report::LineKind::line, {}, 0, false};
  report::PlotLine expected{"expected", report::LineKind::line, {}, 1, true};
  report::PlotBand band{"three sd", {}, 1};
  WallTime before;
  for (const auto& [at, look] : watch.history(channel)) {
    constexpr Seconds kHole(3600);
    if (!measured.points.empty() && at - before > kHole) {
      measured.points.push_back({before.seconds() + 1, report::kGap});
      expected.points.push_back({before.seconds() + 1, report::kGap});
    }
    before = at;
    measured.points.push_back({at.seconds(), look.measured});
    expected.points.push_back({at.seconds(), look.expected});
    band.columns.push_back({at.seconds(), look.expected - 3 * look.sd, look.expected + 3 * look.sd});
  }
  plot.lines = {std::move(measured), std::move(expected)};
  plot.bands = {std::move(band)};
  return plot;
}

/// What it means that there is no finding: only what was judged goes together as it did.
std::string nothing_found(const facility::CauseWatch& watch) {
  if (watch.learning()) return "Nothing is said yet: all of it is time to learn from";
  const std::size_t judged = facility::kChannels - watch.unmetered().size() - watch.unlearned().size();
  if (judged == 0) return "Nothing can be judged: no channel is both metered and learned";
  return fmt::format("Nothing is found: {} of {} channels could be judged, and go together as they did", judged,
                     facility::kChannels);
}

}  // namespace

std::string explain_text(const ExplainInput& input, const facility::CauseWatch& watch) {
  std::string text =
      fmt::format("{}: {} samples from {} to {}, learned from the first {}\n", input.source, input.samples,
                  format_rfc3339(input.first), format_rfc3339(input.last), format(input.reference));
  const auto findings = watch.findings();
  if (findings.empty()) text += nothing_found(watch) + '\n';
  for (const facility::CauseFinding& finding : findings) text += finding_text(finding);
  if (const std::string names = names_text(watch.unmetered()); !names.empty())
    text += "Not seen here, for want of meters: " + names + '\n';
  if (const std::string names = names_text(watch.unlearned()); !names.empty())
    text += "Metered, not judged, for the reference shows too little of it: " + names + '\n';
  return text;
}

report::Json finding_json(const facility::CauseFinding& finding) {
  report::Json made = report::Json::object();
  made["number"] = finding.number;
  made["cause"] = to_string(finding.cause);
  made["form"] = finding.form.empty() ? report::Json(nullptr) : report::text(finding.form);
  made["layer"] = to_string(layer_of(finding.cause));
  made["since"] = report::time(finding.since);
  made["until"] = finding.until ? report::time(*finding.until) : report::Json(nullptr);
  made["confidence_fraction"] = report::number(finding.confidence_fraction);
  made["note"] = finding.note.empty() ? report::Json(nullptr) : report::text(finding.note);
  made["evidence"] = report::Json::array();
  for (const facility::CauseEvidence& evidence : finding.evidence) {
    const ChannelInfo& info = facility::info_of(evidence.channel);
    made["evidence"].push_back({{"channel", info.name},
                                {"about", info.about},
                                {"unit", info.unit},
                                {"known_by", evidence.known_by},
                                {"shift", report::estimate(evidence.shift)}});
  }
  made["alternatives"] = report::Json::array();
  for (const auto& [cause, probability] : finding.alternatives)
    made["alternatives"].push_back({{"cause", to_string(cause)},
                                    {"layer", to_string(layer_of(cause))},
                                    {"confidence_fraction", report::number(probability)}});
  return made;
}

report::Json explain_json(const ExplainInput& input, const facility::CauseWatch& watch) {
  report::Json json = report::document("explain");
  json["source"] = report::text(input.source);
  json["from"] = report::time(input.first);
  json["to"] = report::time(input.last);
  json["samples"] = input.samples;
  json["blocks"] = input.blocks;
  json["reference_s"] = input.reference.value();
  json["learning"] = watch.learning();
  json["findings"] = report::Json::array();
  for (const facility::CauseFinding& finding : watch.findings()) json["findings"].push_back(finding_json(finding));
  const auto names = [](const std::vector<Channel>& channels) {
    report::Json made = report::Json::array();
    for (const Channel channel : channels) made.push_back(facility::info_of(channel).name);
    return made;
  };
  json["missing"] = names(watch.unmetered());
  json["not_learned"] = names(watch.unlearned());
  json["warnings"] = report::Json::array();
  for (const std::string& warning : input.warnings) json["warnings"].push_back(report::text(warning));
  return json;
}

std::string explain_html(const ExplainInput& input, const facility::CauseWatch& watch) {
  report::HtmlPage page("Causes", input.source);
  const auto findings = watch.findings();
  page.figures({{"Findings", std::to_string(findings.size()), "over the whole time"},
                {"Samples", report::format_count(static_cast<double>(input.samples)),
                 format_rfc3339(input.first) + " to " + format_rfc3339(input.last)},
                {"Learned from", format(input.reference), "the first of it"}});
  report::Table table;
  table.caption = "What no longer goes together as it did";
  table.columns = {{"#"}, {"Cause"}, {"Layer"}, {"Since"}, {"Until"}, {"Confidence", report::Align::right}};
  for (const facility::CauseFinding& f : findings)
    table.rows.push_back({std::to_string(f.number), name_of(f), std::string(to_string(layer_of(f.cause))),
                          format_rfc3339(f.since), f.until ? format_rfc3339(*f.until) : "lasts",
                          format_percent(f.confidence_fraction, 0)});
  if (findings.empty()) {
    page.paragraph(nothing_found(watch) + ".");
  } else {
    page.table(table);
  }
  if (!findings.empty())
    page.paragraph(
        "The bands in the plots are of single ten minutes. A shift that lasts is known far better than that: its "
        "interval "
        "stands in the table, and it may lie within the band all the time.");
  constexpr std::size_t kMostPlots = 3;
  for (const facility::CauseFinding& f : findings) {
    page.section(fmt::format("{}. {}", f.number, name_of(f)));
    if (!f.note.empty()) page.paragraph(f.note);
    report::Table evidence;
    evidence.columns = {{"Channel"}, {"What"}, {"Shift"}, {"Part"}};
    for (const facility::CauseEvidence& each : f.evidence) {
      const ChannelInfo& info = facility::info_of(each.channel);
      evidence.rows.push_back({std::string(info.name), std::string(info.about), size_text(info, each.shift),
                               each.known_by ? "known by it" : "moves with it"});
    }
    page.table(evidence);
    for (std::size_t i = 0; i < std::min(kMostPlots, f.evidence.size()); ++i) {
      report::Plot plot = plot_of(f.evidence[i].channel, watch);
      const double until = f.until ? f.until->seconds() : input.last.seconds();
      plot.spans.push_back({f.since.seconds(), until, std::string(to_string(f.cause))});
      page.plot(plot);
    }
  }
  const std::string unmetered = names_text(watch.unmetered()), unlearned = names_text(watch.unlearned());
  if (!unmetered.empty() || !unlearned.empty()) page.section("Not seen here");
  if (!unmetered.empty()) page.paragraph("For want of meters: " + unmetered);
  if (!unlearned.empty()) page.paragraph("Metered, but the reference shows too little of it: " + unlearned);
  if (!input.warnings.empty()) page.section("Left out");
  for (const std::string& warning : input.warnings) page.paragraph(warning);
  return page.page();
}

std::string event_line(const control::FacilityEvent& event) {
  report::Json made = report::document("finding");
  made["event"] = event.number;
  made["kind"] = to_string(event.kind);
  made["at"] = report::time(event.at);
  made["finding"] = finding_json(event.finding);
  return report::dump_line(made);
}

std::string event_text(const control::FacilityEvent& event) {
  return fmt::format("{} {}: {}", format_rfc3339(event.at), to_string(event.kind), finding_text(event.finding));
}

std::string cause_metrics(const control::FacilityWatch& watch) {
  const facility::CauseWatch& causes = watch.causes();
  std::map<std::string, std::string> families;
  const auto add = [&](const std::string& what, const ChannelInfo& info, double value) {
    const std::string name = fmt::format("flyball_facility_{}_{}", what, metric_unit(info.unit));
    families[name] += fmt::format("{}{{channel=\"{}\"}} {}\n", name, info.name, format_exact(value));
  };
  for (std::size_t i = 0; i < facility::kChannels; ++i) {
    const auto channel = static_cast<Channel>(i);
    const auto look = causes.look(channel);
    if (!look) continue;
    const ChannelInfo& info = facility::info_of(channel);
    add("measured", info, look->measured);
    add("expected", info, look->expected);
    add("expected_low", info, look->expected - 3 * look->sd);
    add("expected_high", info, look->expected + 3 * look->sd);
  }
  std::string text;
  for (const auto& [name, lines] : families) text += fmt::format("# TYPE {} gauge\n{}", name, lines);
  std::map<Cause, std::pair<int, int>> found;
  for (const facility::CauseFinding& finding : causes.findings()) {
    ++found[finding.cause].first;
    if (!finding.until) ++found[finding.cause].second;
  }
  std::string open, total;
  for (int i = 0; i <= static_cast<int>(Cause::not_identifiable); ++i) {
    const auto cause = static_cast<Cause>(i);
    const auto labels = fmt::format("{{cause=\"{}\",layer=\"{}\"}}", to_string(cause), to_string(layer_of(cause)));
    open += fmt::format("flyball_facility_findings{} {}\n", labels, found[cause].second);
    total += fmt::format("flyball_facility_findings_seen{} {}\n", labels, found[cause].first);
  }
  text += "# TYPE flyball_facility_findings gauge\n" + open + "# TYPE flyball_facility_findings_seen gauge\n" + total;
  text +=
      fmt::format("# TYPE flyball_facility_learning gauge\nflyball_facility_learning {}\n", causes.learning() ? 1 : 0);
  text +=
      fmt::format("# TYPE flyball_facility_blocks_total counter\nflyball_facility_blocks_total {}\n", watch.blocks());
  if (const auto last = watch.last_block())
    text += fmt::format(
        "# TYPE flyball_facility_last_block_timestamp_seconds gauge\nflyball_facility_last_block_timestamp_seconds "
        "{}\n",
        format_exact(last->seconds()));
  return text;
}

}  // namespace flyball::cli
