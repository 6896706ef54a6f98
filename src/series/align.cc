#include "series/align.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "series/fleet_sum.h"

namespace flyball::series {
namespace {

constexpr double kStandardErrors = 3;
constexpr double kIdentityStandardErrors = 5;  // of some 64 × 64 chance differences the greatest passes 4
constexpr double kAhead = 0.05;                // the height of a peak between two cells is not known better
constexpr std::size_t kMostCells = 1'000'000;

// Means on a grid, NaN where not measured.
using Cells = std::vector<double>;

double lag_one(const Cells& x) {
  std::vector<double> left, right;
  for (std::size_t i = 1; i < x.size(); ++i)
    if (std::isfinite(x[i - 1]) && std::isfinite(x[i])) left.push_back(x[i - 1]), right.push_back(x[i]);
  const double r = left.size() > 2 ? correlation(left, right) : 0;
  return std::isfinite(r) ? std::clamp(r, 0.0, 0.99) : 0;
}

struct Correlation {
  double r = 0;
  std::size_t pairs = 0;
};

// Of a[i] and b[i + lag].
Correlation correlate(const Cells& a, const Cells& b, std::ptrdiff_t lag, std::size_t from, std::size_t to) {
  double n = 0, sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
  for (std::size_t i = from; i < to; ++i) {
    const std::ptrdiff_t j = static_cast<std::ptrdiff_t>(i) + lag;
    if (j < 0 || j >= static_cast<std::ptrdiff_t>(b.size())) continue;
    const double x = a[i], y = b[static_cast<std::size_t>(j)];
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    n += 1, sa += x, sb += y, saa += x * x, sbb += y * y, sab += x * y;
  }
  if (n < 8) return {};
  const double va = saa - sa * sa / n, vb = sbb - sb * sb / n;
  return {va > 0 && vb > 0 ? (sab - sa * sb / n) / std::sqrt(va * vb) : 0, static_cast<std::size_t>(n)};
}

struct Peak {
  double lag = 0;  // in cells, refined
  std::ptrdiff_t whole = 0;
  double r = -1;
  double runner_up = -1;
  std::size_t pairs = 0;
  bool at_edge = false;
};

// Height of the parabola through three values, where the middle one is the highest.
double top(double l, double m, double h) {
  const double curvature = l - 2 * m + h;
  if (m < l || m < h || !(curvature < 0)) return m;
  return std::min(1.0, m - (h - l) * (h - l) / (8 * curvature));
}

Peak find_peak(const Cells& a, const Cells& b, std::ptrdiff_t center, std::ptrdiff_t reach, std::size_t from,
               std::size_t to) {
  std::vector<Correlation> all;
  const std::size_t least = std::max<std::size_t>(20, (to - from) / 4);
  for (std::ptrdiff_t lag = center - reach; lag <= center + reach; ++lag) {
    Correlation c = correlate(a, b, lag, from, to);
    if (c.pairs < least) c.r = -1;
    all.push_back(c);
  }
  Peak peak;
  std::size_t best = 0;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (all[k].r > all[best].r) best = k;
  peak.r = all[best].r;
  peak.pairs = all[best].pairs;
  peak.whole = center - reach + static_cast<std::ptrdiff_t>(best);
  peak.lag = static_cast<double>(peak.whole);
  peak.at_edge = best == 0 || best + 1 == all.size();
  if (peak.at_edge) return peak;
  const double l = all[best - 1].r, m = all[best].r, h = all[best + 1].r;
  if (l - 2 * m + h < 0) peak.lag += 0.5 * (l - h) / (l - 2 * m + h);
  // The peak's own slopes: down to where the correlation rises again.
  std::size_t left = best, right = best;
  while (left > 0 && all[left - 1].r < all[left].r) --left;
  while (right + 1 < all.size() && all[right + 1].r < all[right].r) ++right;
  for (std::size_t k = 1; k + 1 < all.size(); ++k)
    if (k < left || k > right) peak.runner_up = std::max(peak.runner_up, top(all[k - 1].r, all[k].r, all[k + 1].r));
  peak.r = top(l, m, h);
  return peak;
}

void scale_to_unit(Cells& x) {
  RunningStats stats;
  for (double v : x)
    if (std::isfinite(v)) stats.add(v);
  for (double& v : x) v = stats.sd() > 0 ? (v - stats.mean()) / stats.sd() : v - stats.mean();
}

// Offsets of pieces against their time, by least squares.
Estimate fit_drift(const Cells& a, const Cells& b, const Peak& peak, double step) {
  constexpr std::size_t kPieces = 8;
  constexpr std::ptrdiff_t kReach = 8;
  std::vector<double> t, y;
  const std::size_t piece = a.size() / kPieces;
  for (std::size_t k = 0; k < kPieces && piece >= 40; ++k) {
    const Peak p = find_peak(a, b, peak.whole, kReach, k * piece, (k + 1) * piece);
    if (p.at_edge || p.r < 0.5) continue;
    t.push_back((static_cast<double>(k) + 0.5) * static_cast<double>(piece) * step);
    y.push_back(p.lag * step);
  }
  if (t.size() < 4) return {0, -INFINITY, INFINITY, 0.95};
  const double n = static_cast<double>(t.size());
  double mt = 0, my = 0, tt = 0, ty = 0, residual = 0;
  for (std::size_t i = 0; i < t.size(); ++i) mt += t[i] / n, my += y[i] / n;
  for (std::size_t i = 0; i < t.size(); ++i) tt += (t[i] - mt) * (t[i] - mt), ty += (t[i] - mt) * (y[i] - my);
  const double slope = ty / tt;
  for (std::size_t i = 0; i < t.size(); ++i) residual += std::pow(y[i] - my - slope * (t[i] - mt), 2);
  const double error = std::sqrt(residual / (n - 2) / tt) * student_t(0.95, n - 2);
  return {slope, slope - error, slope + error, 0.95};
}

}  // namespace

Alignment align(const Samples& sa, const Samples& sb, const AlignOptions& options) {
  Alignment out;
  out.drift = {0, 0, 0, 0.95};
  if (sa.size() < 20 || sb.size() < 20) {
    out.note = "not identifiable: fewer than 20 good samples on one side";
    return out;
  }
  const Seconds step = options.step > Seconds(0) ? options.step : std::max(sa.period, sb.period);
  const WallTime start = std::min(sa.origin, sb.origin);
  const WallTime stop = std::max(sa.instant_of(sa.t_s.back()), sb.instant_of(sb.t_s.back()));
  const double cells = std::floor((stop - start) / step);
  const double reach = std::floor(options.max_offset / step);
  if (!(cells >= 20) || cells > static_cast<double>(kMostCells) || cells * reach > 2e9) {
    out.note = fmt::format("not identifiable: {:.0f} cells and {:.0f} offsets are too few or too many; choose the step",
                           cells, 2 * reach + 1);
    return out;
  }
  Cells a = cell_means(sa, start, step, static_cast<std::size_t>(cells), 0.5);
  Cells b = cell_means(sb, start, step, static_cast<std::size_t>(cells), 0.5);
  scale_to_unit(a);
  scale_to_unit(b);
  const Peak peak = find_peak(a, b, 0, static_cast<std::ptrdiff_t>(reach), 0, a.size());
  out.correlation = peak.r;
  out.runner_up = peak.runner_up;
  const double memory = lag_one(a) * lag_one(b);
  const double effective = std::max(4.0, static_cast<double>(peak.pairs) * (1 - memory) / (1 + memory));
  // Fisher's z has a standard error of 1/sqrt(n − 3), their difference sqrt(2) of it.
  const double error = std::sqrt(2 / std::max(1.0, effective - 3));
  const auto z = [](double r) { return std::atanh(std::clamp(r, -0.999999, 0.999999)); };
  const bool ahead =
      z(peak.r) - z(std::max(peak.runner_up, 0.0)) > kStandardErrors * error && peak.r - peak.runner_up > kAhead;
  out.identifiable = ahead && !peak.at_edge;
  if (peak.at_edge) out.note = "not identifiable: the best offset is at the edge of the search";
  if (!ahead)
    out.note = fmt::format(
        "not identifiable: correlation {:.2f} at the best offset, {:.2f} at another; a longer recording "
        "or one with other phases could tell",
        peak.r, peak.runner_up);
  // A peak cannot be placed better than noise moves the top of its parabola; a cell is the honest bound.
  const double half = step.value() * std::max(0.1, error);
  out.offset_s = {peak.lag * step.value(), peak.lag * step.value() - half, peak.lag * step.value() + half, 0.95};
  if (out.identifiable && options.drift) {
    out.drift = fit_drift(a, b, peak, step.value());
    if (!std::isfinite(out.drift.low)) out.note = "drift not identifiable: too short";
  }
  return out;
}

namespace {

// Takes out of each cell the mean over all series.
void remove_common(std::vector<Cells>& all) {
  for (Cells& x : all) scale_to_unit(x);
  for (std::size_t i = 0; !all.empty() && i < all[0].size(); ++i) {
    RunningStats stats;
    for (const Cells& x : all)
      if (std::isfinite(x[i])) stats.add(x[i]);
    for (Cells& x : all) x[i] -= stats.mean();
  }
}

}  // namespace

std::vector<Match> match_identities(std::span<const Samples> a, std::span<const Samples> b, Seconds step) {
  std::vector<Match> out(a.size());
  std::optional<Interval> shared;
  for (const auto& side : {a, b})
    for (const Samples& s : side) {
      if (s.size() < 2) continue;
      const Interval own{s.origin, s.instant_of(s.t_s.back())};
      if (!shared) shared = own;
      shared = Interval{std::max(shared->start, own.start), std::min(shared->stop, own.stop)};
      step = std::max(step, s.period);
    }
  if (!shared || !(step > Seconds(0)) || !(shared->start < shared->stop)) return out;
  const double cells = std::floor(shared->length() / step);
  if (cells < 20 || cells > static_cast<double>(kMostCells)) return out;
  std::vector<Cells> ca, cb;
  for (const Samples& s : a) ca.push_back(cell_means(s, shared->start, step, static_cast<std::size_t>(cells), 0.5));
  for (const Samples& s : b) cb.push_back(cell_means(s, shared->start, step, static_cast<std::size_t>(cells), 0.5));
  remove_common(ca);
  remove_common(cb);
  std::vector<std::vector<double>> r(a.size(), std::vector<double>(b.size(), 0));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size(); ++j) r[i][j] = correlate(ca[i], cb[j], 0, 0, ca[i].size()).r;
  const auto z = [](double x) { return std::atanh(std::clamp(x, -0.999999, 0.999999)); };
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::size_t j = static_cast<std::size_t>(std::max_element(r[i].begin(), r[i].end()) - r[i].begin());
    if (b.empty()) break;
    double second = 0;
    for (std::size_t k = 0; k < b.size(); ++k)
      if (k != j) second = std::max(second, r[i][k]);
    for (std::size_t k = 0; k < a.size(); ++k)
      if (k != i) second = std::max(second, r[k][j]);
    const double memory = lag_one(ca[i]) * lag_one(cb[j]);
    const double effective = std::max(4.0, cells * (1 - memory) / (1 + memory));
    out[i].correlation = r[i][j];
    out[i].margin = (z(r[i][j]) - z(second)) / std::sqrt(2 / (effective - 3));
    if (out[i].margin > kIdentityStandardErrors) out[i].b = j;
  }
  return out;
}

}  // namespace flyball::series
