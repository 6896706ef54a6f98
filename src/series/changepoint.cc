#include "series/changepoint.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/stats.h"

namespace flyball::series {
namespace {

constexpr std::size_t kMostCells = 8'000;  // the search may be quadratic where nothing changes

struct Sums {
  std::vector<double> first, second;
  explicit Sums(const std::vector<double>& x) : first(x.size() + 1, 0), second(x.size() + 1, 0) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      first[i + 1] = first[i] + x[i];
      second[i + 1] = second[i] + x[i] * x[i];
    }
  }
  double squares(std::size_t a, std::size_t b) const {
    const double n = static_cast<double>(b - a), s = first[b] - first[a];
    return std::max(0.0, second[b] - second[a] - s * s / n);
  }
};

// −2 log-likelihood of one segment, without constants.
double cost(const Sums& sums, std::size_t a, std::size_t b, double variance, bool variance_too) {
  const double squares = sums.squares(a, b);
  if (!variance_too) return squares / variance;
  const double n = static_cast<double>(b - a);
  // A spread far below the noise of the whole is chance (or a frozen sensor), not evidence without end.
  return n * std::log(std::max(squares / n, variance * 1e-4));
}

// Ends of the segments, without the last.
std::vector<std::size_t> pelt(const Sums& sums, std::size_t n, double variance, double penalty,
                              const ChangePointOptions& o) {
  std::vector<double> best(n + 1, std::numeric_limits<double>::infinity());
  std::vector<std::size_t> previous(n + 1, 0), candidates{0};
  best[0] = -penalty;
  for (std::size_t end = o.min_samples; end <= n; ++end) {
    if (end >= 2 * o.min_samples) candidates.push_back(end - o.min_samples);
    for (std::size_t start : candidates) {
      const double total = best[start] + cost(sums, start, end, variance, o.variance_too) + penalty;
      if (total < best[end]) best[end] = total, previous[end] = start;
    }
    std::erase_if(candidates, [&](std::size_t start) {
      return best[start] + cost(sums, start, end, variance, o.variance_too) > best[end];
    });
  }
  std::vector<std::size_t> ends;
  for (std::size_t end = previous[n]; end > 0; end = previous[end]) ends.push_back(end);
  std::reverse(ends.begin(), ends.end());
  return ends;
}

struct Noise {
  double sd = 0;
  double neighbours = 0;  // correlation of neighbours
};

// From the median sizes of differences over one and two samples, which the few changes of level do not reach:
// D1 = 2 s² (1 − r) and D2 = 2 s² (1 − r²) for noise whose correlation falls off geometrically.
Noise noise_of(const std::vector<double>& x) {
  std::vector<double> one, two;
  for (std::size_t i = 1; i < x.size(); ++i) one.push_back(std::fabs(x[i] - x[i - 1]));
  for (std::size_t i = 2; i < x.size(); ++i) two.push_back(std::fabs(x[i] - x[i - 2]));
  const double d1 = 1.4826 * median(one), d2 = 1.4826 * median(two);
  if (!(d1 > 0)) return {1e-9 * (1 + std::fabs(x.back())), 0};
  const double r = std::clamp(d2 * d2 / (d1 * d1) - 1, 0.0, 0.95);
  return {d1 / std::sqrt(2 * (1 - r)), r};
}

}  // namespace

ChangePoints change_points(const Samples& s, const ChangePointOptions& options) {
  ChangePoints out;
  ChangePointOptions o = options;
  o.min_samples = std::max<std::size_t>(2, o.min_samples);
  if (s.size() < 2 * o.min_samples) return out;
  out.cell_samples = (s.size() + kMostCells - 1) / kMostCells;
  std::vector<double> x;
  // Differences from the first value: sums of squares of large values would lose the small changes.
  for (std::size_t i = 0; i < s.size(); i += out.cell_samples) {
    const std::size_t end = std::min(s.size(), i + out.cell_samples);
    double mean = 0;
    for (std::size_t k = i; k < end; ++k) mean += (s.value[k] - s.value[0]) / static_cast<double>(end - i);
    x.push_back(mean);
  }
  const Noise noise = noise_of(x);
  out.noise_sd = noise.sd;
  const Sums sums(x);
  const double log_n = std::log(static_cast<double>(x.size()));
  const double inflation = (1 + noise.neighbours) / (1 - noise.neighbours);
  out.penalty = (o.variance_too ? 4 : 3) * log_n * o.penalty_scale * inflation;
  auto ends = pelt(sums, x.size(), noise.sd * noise.sd, out.penalty, o);
  ends.push_back(x.size());
  std::size_t a = 0;
  for (std::size_t b : ends) {
    const std::size_t first = a * out.cell_samples, last = std::min(s.size(), b * out.cell_samples);
    RunningStats stats;
    for (std::size_t i = first; i < last; ++i) stats.add(s.value[i]);
    out.segments.push_back({s.instant_of(s.t_s[first]), s.instant_of(s.t_s[std::min(last, s.size() - 1)]), stats.mean(),
                            stats.sd(), last - first});
    a = b;
  }
  return out;
}

}  // namespace flyball::series
