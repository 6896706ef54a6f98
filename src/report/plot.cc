#include "report/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "base/stats.h"
#include "base/text.h"
#include "report/scale.h"
#include "report/utf8.h"

namespace flyball::report {
namespace {

constexpr double kWidth = 860;
constexpr double kHeight = 330;
constexpr double kLeft = 70;
constexpr double kRight = 16;
constexpr double kBottom = 46;
constexpr double kLegendLine = 20;
constexpr double kCharacterWidth = 7.2;  // of 12 px system fonts, upper side
constexpr int kColors = 8;
constexpr double kRuleGap = 6;
constexpr double kTextHeight = 14;

/// The range of what is drawn; widened where it has no width.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return !(low <= high); }
};

bool is_logarithmic(const Axis& axis) { return axis.kind == AxisKind::logarithmic; }

bool drawable(const Axis& axis, double value) {
  // Beyond 1e100 sums and products of the axis arithmetic leave the range of a double.
  return std::isfinite(value) && std::fabs(value) < 1e100 && (!is_logarithmic(axis) || value > 1e-100);
}

Range widened(Range range, const Axis& axis) {
  if (range.empty()) range = is_logarithmic(axis) ? Range{1, 10} : Range{0, 1};
  if (is_logarithmic(axis)) {
    if (range.high <= range.low * 1.01) range = {range.low / 2, range.high * 2};
    return range;
  }
  if (axis.from_zero) range.add(0);
  const double least = std::max(std::fabs(range.high), std::fabs(range.low)) * 1e-9;
  if (range.high - range.low <= least) {
    const double half = range.high == 0 ? 0.5 : std::fabs(range.high) * 0.05;
    range = {range.low - half, range.high + half};
  }
  return range;
}

/// Headroom for y, so that lines do not run along the frame; round ends.
Range padded(Range range, const Axis& axis) {
  range = widened(range, axis);
  if (is_logarithmic(axis)) return {range.low / 1.1, range.high * 1.1};
  const double room = (range.high - range.low) * 0.05;
  const bool keeps_zero = range.low >= 0 && (axis.from_zero || range.low == 0);
  return {keeps_zero ? range.low : range.low - room, range.high + room};
}

std::string number(double pixel) {
  std::string text = fmt::format("{:.1f}", pixel);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string place(double x, double y) { return number(x) + ' ' + number(y); }

/// Draws a line column by column, with at most four points in each.
class PathBuilder {
 public:
  PathBuilder(LineKind kind, const Scale& x, const Scale& y) : kind_(kind), x_(x), y_(y) {}

  void add(const PlotPoint& point) {
    if (!x_.places(point.x)) return;
    const double x = x_.pixel(point.x);
    if (!y_.places(point.y)) {
      if (!gap_) gap_at_ = x;
      gap_ = true;
      return;
    }
    const double y = y_.pixel(point.y);
    const auto column = std::floor(x);
    if (!in_column_ || column != column_) {
      flush();
      column_ = column;
      in_column_ = true;
      first_ = lowest_ = highest_ = last_ = {x, y};
      return;
    }
    gap_ = false;  // narrower than a pixel: not to be seen, and there may be one after each point
    last_ = {x, y};
    if (y < lowest_.y) lowest_ = last_;
    if (y > highest_.y) highest_ = last_;
  }

  std::string finish() {
    flush();
    return std::move(path_);
  }

 private:
  void flush() {
    if (in_column_) flush_column();
    in_column_ = false;
    if (!gap_) return;
    if (kind_ == LineKind::step && drawing_) path_ += 'H' + number(gap_at_);  // the value held until here
    drawing_ = gap_ = false;
  }

  void flush_column() {
    emit(first_);
    const PlotPoint& earlier = lowest_.x <= highest_.x ? lowest_ : highest_;
    const PlotPoint& later = lowest_.x <= highest_.x ? highest_ : lowest_;
    if (!same(earlier, first_)) emit(earlier);
    if (!same(later, earlier) && !same(later, first_)) emit(later);
    if (!same(last_, later) && !same(last_, first_)) emit(last_);
  }

  void emit(const PlotPoint& p) {
    if (!drawing_ || kind_ == LineKind::points) {
      path_ += 'M' + place(p.x, p.y) + "h0";  // with round caps a point alone is a dot
    } else if (kind_ == LineKind::step) {
      path_ += 'H' + number(p.x) + 'V' + number(p.y);
    } else {
      path_ += 'L' + place(p.x, p.y);
    }
    drawing_ = true;
  }

  static bool same(const PlotPoint& a, const PlotPoint& b) { return a.x == b.x && a.y == b.y; }

  LineKind kind_;
  const Scale& x_;
  const Scale& y_;
  std::string path_;
  bool drawing_ = false;
  bool in_column_ = false;
  bool gap_ = false;  ///< since the last point
  double gap_at_ = 0;
  double column_ = 0;
  PlotPoint first_, lowest_, highest_, last_;
};

/// What is really drawn of a plot, after its bounds.
struct Shown {
  std::vector<const PlotLine*> lines;
  std::vector<int> colors;
  std::vector<std::string> span_labels;  ///< in order of appearance
  std::vector<const PlotRule*> rules;
  std::vector<const PlotBand*> bands;
  std::string left_out;
  double right = kRight;  ///< margin
};

double text_width(const std::string& text) { return static_cast<double>(display_width(text)) * kCharacterWidth; }

std::string rule_label(const PlotRule& rule) {
  constexpr std::size_t kLongest = 24;
  std::string text = clean_utf8(rule.label);
  if (display_width(text) > kLongest) text = clean_utf8(text.substr(0, kLongest - 1)) + "…";
  return text;
}

Shown choose(const Plot& plot) {
  Shown shown;
  int next = 0;
  for (const PlotLine& line : plot.lines) {
    if (shown.lines.size() == kMostLines) break;
    shown.lines.push_back(&line);
    shown.colors.push_back((line.color >= 0 ? line.color : next) % kColors);
    next = shown.colors.back() + 1;
  }
  std::set<std::string> seen;
  for (const PlotSpan& span : plot.spans) {
    if (!seen.insert(span.label).second) continue;
    if (shown.span_labels.size() < kMostSpanLabels) shown.span_labels.push_back(span.label);
    if (seen.size() > 1000) break;
  }
  for (const PlotRule& rule : plot.rules) {
    if (shown.rules.size() < kMostRules && drawable(plot.y, rule.y)) shown.rules.push_back(&rule);
  }
  for (const PlotBand& band : plot.bands)
    if (shown.bands.size() < kMostBands) shown.bands.push_back(&band);
  for (const PlotRule* rule : shown.rules)
    shown.right = std::max(shown.right, text_width(rule_label(*rule)) + 2 * kRuleGap);
  if (plot.lines.size() > kMostLines) {
    shown.left_out = fmt::format("{} of {} lines are drawn. ", kMostLines, plot.lines.size());
  }
  if (seen.size() > kMostSpanLabels) {
    shown.left_out += fmt::format("Spans of {} kinds are drawn, of others not. ", kMostSpanLabels);
  }
  return shown;
}

/// One entry of the legend.
struct Key {
  std::string mark;  ///< SVG, drawn from (0, 0) to (18, 12)
  std::string text;
};

std::vector<Key> legend(const Shown& shown) {
  std::vector<Key> keys;
  for (const PlotBand* band : shown.bands) {
    if (!band->name.empty())
      keys.push_back(
          {fmt::format("<path class=\"l c{} band\" d=\"M9 0V12\" style=\"stroke-width:18\"/>", band->color % kColors),
           band->name});
  }
  for (std::size_t i = 0; i < shown.lines.size(); ++i) {
    const PlotLine& line = *shown.lines[i];
    if (line.name.empty()) continue;
    const char* shape = line.kind == LineKind::points ? "M9 6h0" : "M0 6h18";
    keys.push_back({fmt::format("<path class=\"l c{}{}{}\" d=\"{}\"/>", shown.colors[i], line.dashed ? " dash" : "",
                                line.kind == LineKind::points ? " dots" : "", shape),
                    line.name});
  }
  for (std::size_t i = 0; i < shown.span_labels.size(); ++i) {
    keys.push_back({fmt::format("<rect class=\"s s{}\" width=\"18\" height=\"12\"/>", i), shown.span_labels[i]});
  }
  return keys;
}

/// Places entries in rows; `height` becomes what they need.
std::string draw_legend(const std::vector<Key>& keys, double& height) {
  std::string svg;
  double x = kLeft;
  double y = 4;
  for (const Key& key : keys) {
    std::string text = clean_utf8(key.text);
    if (display_width(text) > 60) text = clean_utf8(text.substr(0, 57)) + "…";
    const double width = 24 + static_cast<double>(display_width(text)) * kCharacterWidth + 14;
    if (x > kLeft && x + width > kWidth - kRight) {
      x = kLeft;
      y += kLegendLine;
    }
    svg += fmt::format("<g transform=\"translate({} {})\">{}<text x=\"24\" y=\"10\">{}</text></g>\n", number(x),
                       number(y), key.mark, escape_html(text));
    x += width;
  }
  height = keys.empty() ? 10 : y + kLegendLine + 4;
  return svg;
}

struct Frame {
  Scale x;
  Scale y;
  double top;
  double bottom;
  double right;  ///< its edge
};

std::string draw_axes(const Plot& plot, const Frame& f) {
  std::string svg = "<g class=\"grid\">\n";
  std::string labels;
  for (const Tick& tick : ticks(plot.y, f.y.low(), f.y.high(), 6)) {
    const std::string y = number(f.y.pixel(tick.value));
    svg += fmt::format("<path d=\"M{} {}H{}\"/>", number(kLeft), y, number(f.right));
    labels += fmt::format("<text class=\"e\" x=\"{}\" y=\"{}\" dy=\"4\">{}</text>\n", number(kLeft - 8), y,
                          escape_html(tick.label));
  }
  for (const Tick& tick : ticks(plot.x, f.x.low(), f.x.high(), 8)) {
    const double at = f.x.pixel(tick.value);
    const std::string x = number(at);
    svg += fmt::format("<path d=\"M{} {}V{}\"/>", x, number(f.bottom), number(f.bottom + 5));
    const bool cut = at + text_width(tick.label) / 2 > kWidth;  // the edge of the figure
    labels += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>\n", cut ? 'e' : 'm', cut ? number(kWidth) : x,
                          number(f.bottom + 19), escape_html(tick.label));
  }
  svg += "</g>\n" + labels;
  std::string x_label = plot.x.label;
  if (plot.x.kind == AxisKind::utc) {
    const std::string from = format_rfc3339(WallTime(std::llround(f.x.low()) * 1'000'000'000)).substr(0, 10);
    const std::string to = format_rfc3339(WallTime(std::llround(f.x.high()) * 1'000'000'000)).substr(0, 10);
    x_label = fmt::format("{} (UTC, {})", x_label, from == to ? from : from + " to " + to);
  }
  svg += fmt::format("<text class=\"m\" x=\"{}\" y=\"{}\">{}</text>\n", number((kLeft + f.right) / 2),
                     number(f.bottom + 38), escape_html(x_label));
  return svg + fmt::format("<text class=\"m\" transform=\"translate(13 {}) rotate(-90)\">{}</text>\n",
                           number((f.top + f.bottom) / 2), escape_html(plot.y.label));
}

/// The pixel columns that spans of each label touch, as bars: their number is bounded by the width of the figure.
std::string draw_spans(const Plot& plot, const Shown& shown, const Frame& f) {
  std::string svg;
  const auto columns = static_cast<std::size_t>(kWidth);
  for (std::size_t i = 0; i < shown.span_labels.size(); ++i) {
    std::vector<char> touched(columns + 1, 0);
    for (const PlotSpan& span : plot.spans) {
      if (span.label != shown.span_labels[i] || !(span.to >= span.from)) continue;
      if (!f.x.places(span.from) || !f.x.places(span.to) || span.to < f.x.low() || span.from > f.x.high()) continue;
      const double from = std::clamp(f.x.pixel(span.from), kLeft, f.right - 1);
      const double to = std::clamp(f.x.pixel(span.to), kLeft, f.right);
      const auto first = static_cast<std::size_t>(std::llround(from));
      const auto last = std::max(first + 1, static_cast<std::size_t>(std::llround(to)));
      std::fill(touched.begin() + static_cast<std::ptrdiff_t>(first),
                touched.begin() + static_cast<std::ptrdiff_t>(last), 1);
    }
    std::string path;
    for (std::size_t c = 0; c < columns; ++c) {
      if (touched[c] == 0) continue;
      std::size_t end = c;
      while (touched[end] != 0) ++end;
      path += fmt::format("M{} {}h{}V{}h-{}z", c, number(f.top), end - c, number(f.bottom), end - c);
      c = end;
    }
    if (!path.empty()) svg += fmt::format("<path class=\"s s{}\" d=\"{}\"/>\n", i, path);
  }
  return svg;
}

std::string draw_lines(const Shown& shown, const Frame& f) {
  std::string svg;
  for (const PlotBand* band : shown.bands) {
    std::string path;
    for (const PlotBand::Column& c : band->columns) {
      if (!f.x.places(c.x) || !f.y.places(c.low) || !f.y.places(c.high)) continue;
      path += 'M' + place(f.x.pixel(c.x), f.y.pixel(c.low)) + 'V' + number(f.y.pixel(c.high));
    }
    const double width = 1.05 * (f.right - kLeft) / static_cast<double>(std::max<std::size_t>(1, band->columns.size()));
    svg += fmt::format("<path class=\"l c{} band\" style=\"stroke-width:{:.2f}\" d=\"{}\"/>\n", band->color % kColors,
                       width, path);
  }
  for (std::size_t i = 0; i < shown.lines.size(); ++i) {
    const PlotLine& line = *shown.lines[i];
    PathBuilder path(line.kind, f.x, f.y);
    for (const PlotPoint& point : line.points) path.add(point);
    svg += fmt::format("<path class=\"l c{}{}{}\" d=\"{}\"/>\n", shown.colors[i], line.dashed ? " dash" : "",
                       line.kind == LineKind::points ? " dots" : "", path.finish());
  }
  return svg;
}

std::string draw_rules(const Shown& shown, const Frame& f) {
  std::string svg;
  std::vector<const PlotRule*> rules = shown.rules;
  std::sort(rules.begin(), rules.end(), [](const PlotRule* a, const PlotRule* b) { return a->y > b->y; });
  double free_from = f.top;  // labels of rules that are near each other stand below one another
  for (const PlotRule* rule : rules) {
    const double y = f.y.pixel(rule->y);
    const double text_y = std::max(y + 4, free_from);
    free_from = text_y + kTextHeight;
    svg += fmt::format("<path class=\"rule\" d=\"M{} {}H{}\"/><text class=\"rule-t\" x=\"{}\" y=\"{}\">{}</text>\n",
                       number(kLeft), number(y), number(f.right), number(f.right + kRuleGap), number(text_y),
                       escape_html(rule_label(*rule)));
  }
  return svg;
}

std::string describe(const Plot& plot, const Shown& shown) {
  std::string text = plot.description;
  if (!text.empty() && !text.ends_with(' ')) text += ' ';
  for (const PlotLine* line : shown.lines) {
    Range range;
    for (const PlotPoint& point : line->points) {
      if (drawable(plot.y, point.y)) range.add(point.y);
    }
    text += range.empty() ? fmt::format("{}: no values. ", line->name)
                          : fmt::format("{}: {:.4g} to {:.4g} {}. ", line->name, range.low, range.high, plot.y.unit);
  }
  for (const PlotBand* band : shown.bands) {
    Range range;
    for (const PlotBand::Column& c : band->columns) {
      if (drawable(plot.y, c.low)) range.add(c.low);
      if (drawable(plot.y, c.high)) range.add(c.high);
    }
    if (!range.empty())
      text += fmt::format("{}: {:.4g} to {:.4g} {}. ", band->name, range.low, range.high, plot.y.unit);
  }
  return text + shown.left_out;
}

}  // namespace

std::string to_svg(const Plot& plot, const std::string& id) {
  const Shown shown = choose(plot);
  Range x;
  Range y;
  for (const PlotLine* line : shown.lines) {
    for (const PlotPoint& point : line->points) {
      if (!drawable(plot.x, point.x)) continue;
      x.add(point.x);
      if (drawable(plot.y, point.y)) y.add(point.y);
    }
  }
  for (const PlotBand* band : shown.bands) {
    for (const PlotBand::Column& c : band->columns) {
      if (!drawable(plot.x, c.x) || !drawable(plot.y, c.low) || !drawable(plot.y, c.high)) continue;
      x.add(c.x);
      y.add(c.low);
      y.add(c.high);
    }
  }
  if (x.empty()) {
    for (const PlotSpan& span : plot.spans) {
      if (drawable(plot.x, span.from) && drawable(plot.x, span.to)) x.add(span.from), x.add(span.to);
    }
  }
  const bool empty = y.empty();
  for (const PlotRule* rule : shown.rules) y.add(rule->y);

  double legend_height = 0;
  const std::string keys = draw_legend(legend(shown), legend_height);
  const double height = kHeight + legend_height;
  x = widened(x, plot.x);
  y = padded(y, plot.y);
  const double bottom = height - kBottom;
  const double right = kWidth - shown.right;
  const Frame f{Scale(x.low, x.high, kLeft, right, is_logarithmic(plot.x)),
                Scale(y.low, y.high, bottom, legend_height, is_logarithmic(plot.y)), legend_height, bottom, right};

  const std::string safe_id = escape_html(id);
  std::string svg = fmt::format(
      "<svg class=\"plot\" role=\"img\" aria-labelledby=\"{0}-t {0}-d\" viewBox=\"0 0 {1} {2}\" "
      "xmlns=\"http://www.w3.org/2000/svg\">\n<title id=\"{0}-t\">{3}</title>\n<desc id=\"{0}-d\">{4}</desc>\n",
      safe_id, number(kWidth), number(height), escape_html(plot.title), escape_html(describe(plot, shown)));
  svg += keys + draw_spans(plot, shown, f) + draw_axes(plot, f) + draw_rules(shown, f) + draw_lines(shown, f);
  if (empty) {
    svg += fmt::format("<text class=\"m\" x=\"{}\" y=\"{}\">no values</text>\n", number((kLeft + kWidth) / 2),
                       number((legend_height + bottom) / 2));
  }
  if (!shown.left_out.empty()) {
    svg += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", number(kLeft), number(height - 4),
                       escape_html(shown.left_out));
  }
  return svg + "</svg>\n";
}

PlotLine line_of(const series::Series& series, std::string name, LineKind kind) {
  PlotLine line;
  line.name = std::move(name);
  line.kind = kind;
  std::vector<double> distances;
  for (std::size_t i = 1; i < series.points.size(); ++i) {
    distances.push_back((series.points[i].at - series.points[i - 1].at).value());
  }
  constexpr double kUsualDistances = 3.5;
  const double longest = distances.empty() ? 0 : median(distances) * kUsualDistances;
  double last_x = -std::numeric_limits<double>::infinity();
  for (const series::Point& point : series.points) {
    if (point.status == Status::unchanged) {
      if (std::isfinite(last_x)) last_x = point.at.seconds();  // the sensor answered: the line goes on
      continue;
    }
    const double x = point.at.seconds();
    if (std::isfinite(last_x) && x - last_x > longest && longest > 0) line.points.push_back({last_x, kGap});
    line.points.push_back({x, point.status == Status::ok ? point.value : kGap});
    last_x = x;
  }
  return line;
}

std::vector<PlotSpan> spans_of(const std::vector<PhaseSpan>& phases) {
  std::vector<PlotSpan> spans;
  for (const PhaseSpan& phase : phases) {
    std::string label(to_string(phase.label));
    if (phase.inferred) label += " (inferred)";
    spans.push_back({phase.start.seconds(), phase.stop.seconds(), std::move(label)});
  }
  return spans;
}

}  // namespace flyball::report
