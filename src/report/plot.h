#pragma once
// A figure over one x axis, drawn as an inline SVG whose size is bounded whatever the number of points: each line is
// reduced to first, lowest, highest and last value per pixel column, which draws the same picture (M4; Jugel et al.,
// 2014). Colours come from the page (html.h).

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/workload.h"
#include "series/series.h"

namespace flyball::report {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

struct PlotPoint {
  double x = 0;
  double y = 0;  ///< kGap: nothing was measured from here to the next point
};

enum class LineKind {
  line,
  step,    ///< each value holds until the next point: limits
  points,  ///< unconnected
};

struct PlotLine {
  std::string name;
  LineKind kind = LineKind::line;
  std::vector<PlotPoint> points;  ///< x not decreasing; points that are not finite in x are left out
  int color = -1;                 ///< lines of one colour belong together; −1 = the next one
  bool dashed = false;
};

/// From lowest to highest at each x, behind the lines: where there is more than a screen can show, beside its mean.
struct PlotBand {
  struct Column {
    double x = 0, low = 0, high = 0;
  };
  std::string name;
  std::vector<Column> columns;
  int color = 0;
};

/// A shaded stretch of x. Spans of one label share a colour and one entry of the legend.
struct PlotSpan {
  double from = 0;
  double to = 0;
  std::string label;
};

/// A horizontal line: a budget, a threshold. Its label stands in the margin, where no line can run over it.
struct PlotRule {
  double y = 0;
  std::string label;
};

enum class AxisKind {
  linear,
  logarithmic,  ///< values that are not positive are left out
  utc,          ///< x is seconds since 1970-01-01T00:00:00Z
  elapsed,      ///< x is seconds since the start
};

struct Axis {
  std::string label;  ///< "power"
  std::string unit;   ///< a base unit such as "W": ticks get the fitting prefix; "%" and the like stay as they are
  AxisKind kind = AxisKind::linear;
  bool from_zero = false;
};

struct Plot {
  std::string title;
  std::string description;  ///< for those who do not see it; the range of each line is added
  Axis x;
  Axis y;
  std::vector<PlotLine> lines;
  std::vector<PlotBand> bands;
  std::vector<PlotSpan> spans;
  std::vector<PlotRule> rules;
};

/// What a figure holds at most; what is beyond is named in a note under it.
constexpr std::size_t kMostLines = 32;
constexpr std::size_t kMostSpanLabels = 8;
constexpr std::size_t kMostRules = 8;
constexpr std::size_t kMostBands = 4;

/// `id` must be unique on the page.
std::string to_svg(const Plot& plot, const std::string& id);

/// A series as a line over seconds since 1970. Points that are not `ok` are gaps, except `unchanged` ones, which say
/// nothing; so are holes of more than three and a half usual distances (one late or lost sample is none).
PlotLine line_of(const series::Series& series, std::string name, LineKind kind = LineKind::line);
std::vector<PlotSpan> spans_of(const std::vector<PhaseSpan>& phases);

}  // namespace flyball::report
