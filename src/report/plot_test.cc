#include "report/plot.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/golden.h"
#include "base/random.h"
#include "base/text.h"
#include "report/html.h"
#include "report/scale.h"

namespace flyball::report {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// The path data of the lines of a figure, in order of drawing; the legend's are left out.
std::vector<std::string> line_paths(const std::string& svg) {
  std::vector<std::string> paths;
  for (const std::string_view line : split(svg, '\n')) {
    if (!line.starts_with("<path class=\"l ")) continue;
    const auto from = line.find(" d=\"") + 4;
    paths.emplace_back(line.substr(from, line.find('"', from) - from));
  }
  return paths;
}

/// The y of every place that a line is drawn to by M or L.
std::vector<double> heights(const std::string& path) {
  std::vector<double> all;
  for (std::size_t at = 0; (at = path.find_first_of("ML", at)) != std::string::npos; ++at) {
    const auto blank = path.find(' ', at);
    const auto end = path.find_first_of("MLh", blank);
    all.push_back(parse_double(path.substr(blank + 1, end - blank - 1)).value());
  }
  return all;
}

Plot plot_of(std::vector<PlotPoint> points, LineKind kind = LineKind::line) {
  Plot plot;
  plot.title = "t";
  plot.x = {.label = "time", .unit = "s", .kind = AxisKind::elapsed};
  plot.y = {.label = "power", .unit = "W"};
  PlotLine line;
  line.name = "a";
  line.kind = kind;
  line.points = std::move(points);
  plot.lines = {line};
  return plot;
}

std::vector<std::string> labels(const std::vector<Tick>& marks) {
  std::vector<std::string> all;
  for (const Tick& tick : marks) all.push_back(tick.label);
  return all;
}

using Labels = std::vector<std::string>;

TEST(Scale, StepsAreOneTwoFive) {
  EXPECT_DOUBLE_EQ(round_step(0.7), 1);
  EXPECT_DOUBLE_EQ(round_step(1.0), 1);
  EXPECT_DOUBLE_EQ(round_step(1.1), 2);
  EXPECT_DOUBLE_EQ(round_step(26), 50);
  EXPECT_DOUBLE_EQ(round_step(0.06), 0.1);
}

TEST(Scale, TicksCarryOneFittingPrefix) {
  const Axis power{.label = {}, .unit = "W"};
  EXPECT_EQ(labels(ticks(power, 0, 400, 4)), (Labels{"0 W", "100 W", "200 W", "300 W", "400 W"}));
  EXPECT_EQ(labels(ticks(power, 0, 450e3, 5)), (Labels{"0 kW", "100 kW", "200 kW", "300 kW", "400 kW"}));
  EXPECT_EQ(labels(ticks(power, -1, 1, 4)), (Labels{"-1.0 W", "-0.5 W", "0.0 W", "0.5 W", "1.0 W"}));
  const Axis share{.label = {}, .unit = "%"};
  EXPECT_EQ(labels(ticks(share, 0, 0.01, 2)), (Labels{"0.000 %", "0.005 %", "0.010 %"}));
}

TEST(Scale, LogarithmicTicksAreDecadesWithRoomFilled) {
  const Axis axis{.label = {}, .unit = "Hz", .kind = AxisKind::logarithmic};
  EXPECT_EQ(labels(ticks(axis, 0.1, 20, 8)),
            (Labels{"0.1 Hz", "0.2 Hz", "0.5 Hz", "1 Hz", "2 Hz", "5 Hz", "10 Hz", "20 Hz"}));
  EXPECT_LE(ticks(axis, 1e-30, 1e30, 8).size(), 9U);
}

TEST(Scale, ClockTicks) {
  const Axis utc{.label = {}, .unit = {}, .kind = AxisKind::utc};
  const double day = 1764547200;  // 2025-12-01T00:00:00Z
  EXPECT_EQ(labels(ticks(utc, day - 7200, day + 7200, 4)), (Labels{"22:00", "23:00", "12-01", "01:00", "02:00"}));
  EXPECT_EQ(labels(ticks(utc, day + 1, day + 31, 3)), (Labels{"00:00:10", "00:00:20", "00:00:30"}));
  const Axis elapsed{.label = {}, .unit = {}, .kind = AxisKind::elapsed};
  EXPECT_EQ(labels(ticks(elapsed, 0, 6 * 3600, 6)), (Labels{"0 h", "1 h", "2 h", "3 h", "4 h", "5 h", "6 h"}));
  EXPECT_EQ(labels(ticks(elapsed, 0, 120, 4)), (Labels{"0 s", "30 s", "60 s", "90 s", "120 s"}));
}

TEST(Scale, TicksAreBoundedAndInside) {
  EXPECT_TRUE(rc::check([](std::int32_t low, std::uint32_t width, std::uint8_t kind) {
    const Axis axis{.label = {}, .unit = "W", .kind = static_cast<AxisKind>(kind % 4)};
    const double from = axis.kind == AxisKind::logarithmic ? std::abs(static_cast<double>(low)) + 1 : low;
    const double to = from + width + 1;
    const auto marks = ticks(axis, from, to, 8);
    RC_ASSERT(marks.size() <= 24U);
    for (const Tick& tick : marks)
      RC_ASSERT(tick.value >= from - 1e-6 * (to - from) && tick.value <= to * (1 + 1e-6) + 1);
  }));
}

TEST(Plot, AGapIsAGap) {
  const auto paths = line_paths(to_svg(plot_of({{0, 100}, {10, 110}, {20, kGap}, {30, 120}, {40, 130}}), "p"));
  ASSERT_EQ(paths.size(), 1U);
  EXPECT_EQ(count(paths[0], "M"), 2U) << paths[0];
  EXPECT_EQ(count(paths[0], "L"), 2U) << paths[0];
}

TEST(Plot, APointBetweenGapsIsADot) {
  const auto paths = line_paths(to_svg(plot_of({{0, 1}, {10, kGap}, {20, 2}, {30, kGap}, {40, 3}}), "p"));
  EXPECT_EQ(count(paths.at(0), "h0"), 3U) << paths[0];
}

TEST(Plot, AStepHoldsItsValueUntilTheNextAndUntilAGap) {
  const auto paths = line_paths(to_svg(plot_of({{0, 100}, {50, 200}, {100, kGap}}, LineKind::step), "p"));
  EXPECT_EQ(count(paths.at(0), "V"), 1U) << paths[0];
  EXPECT_EQ(count(paths.at(0), "H"), 2U) << paths[0];
  EXPECT_EQ(count(paths.at(0), "L"), 0U) << "a limit never slopes";
}

TEST(Plot, ManyPointsMakeASmallFigureThatKeepsTheExtremes) {
  Random random(7);
  std::vector<PlotPoint> points;
  for (int i = 0; i < 100'000; ++i) points.push_back({i * 0.5, 300 + 20 * random.normal()});
  points[31'415].y = 900;  // one sample wide
  points[71'828].y = -300;
  const std::string svg = to_svg(plot_of(points), "p");
  EXPECT_LT(svg.size(), 60'000U);
  const std::vector<double> drawn = heights(line_paths(svg).at(0));
  const std::vector<double> reference = heights(line_paths(to_svg(plot_of({{0, 900}, {50'000, -300}}), "p")).at(0));
  ASSERT_EQ(reference.size(), 2U);
  EXPECT_NEAR(*std::min_element(drawn.begin(), drawn.end()), reference[0], 0.11);
  EXPECT_NEAR(*std::max_element(drawn.begin(), drawn.end()), reference[1], 0.11);
}

TEST(Plot, AlternatingGapsAreBoundedToo) {
  std::vector<PlotPoint> points;
  for (int i = 0; i < 200'000; ++i) points.push_back({static_cast<double>(i), i % 2 == 0 ? 100.0 : kGap});
  EXPECT_LT(to_svg(plot_of(points), "p").size(), 120'000U);
  EXPECT_LT(to_svg(plot_of(points, LineKind::step), "p").size(), 120'000U);
}

TEST(Plot, SpansLinesAndRulesAreBounded) {
  Plot plot = plot_of({{0, 1}, {1000, 2}});
  plot.lines.resize(100, plot.lines[0]);
  for (int i = 0; i < 200'000; ++i)
    plot.spans.push_back({i * 0.005, i * 0.005 + 0.002, "label " + std::to_string(i % 12)});
  plot.rules.resize(1000, {1.5, "b"});
  const std::string svg = to_svg(plot, "p");
  EXPECT_LT(svg.size(), 300'000U);
  EXPECT_EQ(line_paths(svg).size(), kMostLines);
  EXPECT_NE(svg.find("32 of 100 lines are drawn"), std::string::npos) << "what is left out is said";
  EXPECT_EQ(count(svg, "class=\"rule\""), kMostRules);
}

TEST(Plot, HostileValuesNeverReachTheFigure) {
  const double huge = std::numeric_limits<double>::max();
  const double infinity = std::numeric_limits<double>::infinity();
  for (const AxisKind kind : {AxisKind::linear, AxisKind::logarithmic}) {
    Plot plot = plot_of({{0, huge}, {infinity, 1}, {kGap, 2}, {1, -huge}, {2, 0}, {3, -infinity}, {4, 5}});
    plot.y.kind = kind;
    plot.rules = {{infinity, "x"}, {huge, "y"}};
    plot.spans = {{5, 1, "backwards"}, {kGap, 3, "nowhere"}, {-1e300, 1e300, "everywhere"}};
    const std::string svg = to_svg(plot, "p");
    EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
    EXPECT_EQ(svg.find("inf "), std::string::npos);
    EXPECT_EQ(svg.find("e+"), std::string::npos);
  }
}

TEST(Plot, EmptySaysSo) {
  const std::string svg = to_svg(plot_of({}), "p");
  EXPECT_NE(svg.find(">no values</text>"), std::string::npos);
  EXPECT_EQ(to_svg(plot_of({{1, kGap}}), "p").find("nan"), std::string::npos);
}

TEST(Plot, IsAccessibleAndEscaped) {
  Plot plot = plot_of({{0, 1}, {1, 2}});
  plot.title = "<b>&";
  plot.lines[0].name = "\"</svg><script>";
  const std::string svg = to_svg(plot, "p1");
  EXPECT_NE(svg.find("role=\"img\" aria-labelledby=\"p1-t p1-d\""), std::string::npos);
  EXPECT_NE(svg.find("<title id=\"p1-t\">&lt;b&gt;&amp;</title>"), std::string::npos);
  EXPECT_NE(svg.find("1 to 2 W"), std::string::npos) << "the range is in the description";
  EXPECT_EQ(svg.find("<script"), std::string::npos);
}

series::Series series_at(const std::vector<std::pair<double, Status>>& points) {
  series::Series s;
  for (const auto& [at, status] : points) s.points.push_back({WallTime(std::llround(at * 1e9)), 100, status});
  return s;
}

int gaps(const PlotLine& line) {
  int n = 0;
  for (const PlotPoint& point : line.points) n += std::isnan(point.y) ? 1 : 0;
  return n;
}

TEST(LineOf, BadSamplesAndHolesAreGaps) {
  const Status ok = Status::ok;
  EXPECT_EQ(gaps(line_of(series_at({{0, ok}, {1, ok}, {2, ok}}), "a")), 0);
  EXPECT_EQ(gaps(line_of(series_at({{0, ok}, {1, Status::failed}, {2, ok}}), "a")), 1);
  EXPECT_EQ(gaps(line_of(series_at({{0, ok}, {1, ok}, {2, ok}, {9, ok}, {10, ok}}), "a")), 1) << "hole";
  EXPECT_EQ(gaps(line_of(series_at({{0, ok}, {1, ok}, {2, ok}, {4, ok}, {5, ok}}), "a")), 0) << "one lost sample";
}

TEST(LineOf, UnchangedSaysNothingButIsNoGap) {
  const Status same = Status::unchanged;
  const PlotLine line = line_of(
      series_at({{0, Status::ok}, {1, same}, {2, same}, {3, same}, {4, same}, {5, same}, {6, Status::ok}}), "a");
  EXPECT_EQ(gaps(line), 0);
  EXPECT_EQ(line.points.size(), 2U);
}

TEST(HtmlPage, LoadsNothingAndHasItsLandmarks) {
  HtmlPage page("A <title>", "sub");
  page.section("One")
      .paragraph("text & more")
      .figures({{"saved", "3 %", "2 to 4"}})
      .plot(plot_of({{0, 1}}))
      .plot(plot_of({{0, 1}}));
  page.findings({});
  Finding warning;
  warning.severity = Severity::warning;
  warning.what = "w";
  Finding alarm;
  alarm.severity = Severity::alarm;
  alarm.what = "a <x>";
  page.findings({warning, alarm});
  const std::string html = page.page();
  EXPECT_EQ(count(html, "http"), count(html, "http-equiv") + count(html, "http://www.w3.org/2000/svg"));
  EXPECT_EQ(html.find("src="), std::string::npos);
  EXPECT_NE(html.find("<html lang=\"en\">"), std::string::npos);
  EXPECT_NE(html.find("<h1>A &lt;title&gt;</h1>"), std::string::npos);
  EXPECT_NE(html.find("plot1-t"), std::string::npos);
  EXPECT_NE(html.find("plot2-t"), std::string::npos);
  EXPECT_LT(html.find("<li class=\"alarm\">"), html.find("<li class=\"warning\">"));
  EXPECT_NE(html.find("<p>None.</p>"), std::string::npos);
}

TEST(Plot, Golden) {
  Plot plot = plot_of({{0, 300}, {60, 310}, {120, kGap}, {180, 250}, {240, 255}});
  plot.title = "Power";
  plot.lines.push_back({.name = "limit",
                        .kind = LineKind::step,
                        .points = {{0, 400}, {120, 300}, {240, 300}},
                        .color = 0,
                        .dashed = true});
  plot.spans = {{60, 90, "checkpoint"}, {200, 230, "evaluation"}};
  plot.rules = {{350, "budget 350 W"}};
  EXPECT_EQ(golden_difference("report/plot.svg", to_svg(plot, "p")), "");
}

// Where the text of an SVG stands: its x and anchor.
double text_x(const std::string& svg, const std::string& text) {
  const auto at = svg.rfind("<text", svg.find('>' + text + '<'));
  return std::strtod(svg.c_str() + svg.find("x=\"", at) + 3, nullptr);
}

TEST(Plot, LabelsOfRulesStandBesideTheCurveAndNotUponEachOther) {
  Plot plot;
  plot.lines = {{.name = "p", .points = {{0, 100}, {10, 200}}}};
  plot.rules = {{150, "budget 150 W"}, {151, "budget 151 W"}};
  const std::string svg = to_svg(plot, "p");
  const auto end = svg.find('H', svg.find("class=\"rule\""));
  const double edge = std::strtod(svg.c_str() + end + 1, nullptr);
  EXPECT_GT(text_x(svg, "budget 150 W"), edge);
  EXPECT_GT(text_x(svg, "budget 151 W"), edge);
  const auto y_of = [&](const std::string& text) {
    const auto at = svg.rfind("y=\"", svg.find('>' + text + '<'));
    return std::strtod(svg.c_str() + at + 3, nullptr);
  };
  EXPECT_GE(y_of("budget 150 W") - y_of("budget 151 W"), 12);
}

TEST(Plot, TheLastTickIsNotCutOff) {
  Plot plot;
  plot.x = {.label = "time", .unit = "", .kind = AxisKind::utc};
  plot.lines = {{.name = "p", .points = {{0, 100}, {3600, 200}}}};
  const std::string svg = to_svg(plot, "p");
  const auto at = svg.rfind("<text", svg.find(">01:00<"));
  EXPECT_EQ(svg.compare(at, 15, "<text class=\"e\""), 0) << svg.substr(at, 60);
}

TEST(Plot, ABandIsDrawnBehindItsMeanAndDescribed) {
  Plot plot;
  plot.y.unit = "W";
  plot.bands = {{.name = "range", .columns = {{0, 50, 150}, {1, 60, 900}}, .color = 2}};
  plot.lines = {{.name = "mean", .points = {{0, 100}, {1, 400}}, .color = 2}};
  const std::string svg = to_svg(plot, "p");
  EXPECT_NE(svg.find("range: 50 to 900 W"), std::string::npos);
  const auto band = svg.find("c2 band", svg.find("class=\"grid\""));
  EXPECT_LT(band, svg.find("class=\"l c2\"", band));
  EXPECT_EQ(to_svg(plot, "p").find("nan"), std::string::npos);
}

}  // namespace
}  // namespace flyball::report
