#include "series/step_period.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/stats.h"
#include "base/text.h"
#include "series/spectrum.h"

namespace flyball::series {
namespace {

// Steps lose their phase at every pause; farther teeth would measure the distance of the pauses, not of the steps.
constexpr std::size_t kMostTeeth = 4;
// Pauses that recur (evaluations) can correlate better than the steps between them; half steps correlate worse.
constexpr double kNearHighest = 0.4;

// Between grid lags by the parabola through the three nearest.
double at_lag(const std::vector<double>& acf, double lag) {
  const auto k = static_cast<std::size_t>(std::lround(lag));
  if (k == 0 || k + 1 >= acf.size()) return -1;
  const double x = lag - static_cast<double>(k);
  const double a = acf[k - 1], b = acf[k], c = acf[k + 1];
  return b + x * (c - a) / 2 + x * x * (a - 2 * b + c) / 2;
}

// Mean autocorrelation at the multiples of a lag.
double comb(const std::vector<double>& acf, double lag, std::size_t teeth) {
  double sum = 0;
  std::size_t n = 0;
  for (std::size_t m = 1; m <= teeth && static_cast<double>(m) * lag < static_cast<double>(acf.size()) - 1; ++m, ++n)
    sum += at_lag(acf, static_cast<double>(m) * lag);
  return n > 0 ? sum / static_cast<double>(n) : -1;
}

double refine(const std::vector<double>& acf, double lag) {
  // Each doubling of the comb narrows the search to what keeps the farthest tooth within a quarter of a sample.
  double reach = 0.5;
  for (std::size_t teeth = 1; teeth <= kMostTeeth; teeth *= 2) {
    double best = -1, place = lag;
    for (int i = -20; i <= 20; ++i) {
      const double candidate = lag + reach * i / 20;
      const double score = candidate > 1.5 ? comb(acf, candidate, teeth) : -1;
      if (score > best) best = score, place = candidate;
    }
    if (static_cast<double>(teeth) * place >= static_cast<double>(acf.size()) - 1) break;
    lag = place;
    reach = 0.5 / static_cast<double>(teeth);
  }
  return lag;
}

}  // namespace

std::vector<double> autocorrelation(const Samples& samples, Seconds step, std::size_t lags, const GapRule& gap) {
  const auto runs = uniform_runs(samples, step, gap);
  RunningStats all;
  for (const auto& run : runs)
    for (double v : run.value) all.add(v);
  std::vector<double> acf(lags + 1, 0);
  if (all.count() < 2 || !(all.variance() > 0)) return acf;
  // By the spectrum of each run (Wiener and Khinchin), padded so that its end does not meet its beginning.
  std::vector<double> sums(lags + 1, 0), pairs(lags + 1, 0);
  for (const auto& run : runs) {
    const std::size_t n = run.value.size(), reach = std::min(lags + 1, n);
    std::size_t size = 1;
    while (size < n + reach) size *= 2;
    std::vector<std::complex<double>> x(size);
    for (std::size_t i = 0; i < n; ++i) x[i] = run.value[i] - all.mean();
    fft(x);
    for (auto& value : x) value = std::norm(value);
    fft(x);
    for (std::size_t lag = 0; lag < reach; ++lag) {
      sums[lag] += x[lag].real() / static_cast<double>(size);
      pairs[lag] += static_cast<double>(n - lag);
    }
  }
  for (std::size_t lag = 0; lag <= lags; ++lag) acf[lag] = pairs[lag] > 0 ? sums[lag] / pairs[lag] / all.variance() : 0;
  return acf;
}

StepPeriod find_step_period(const Samples& power, Seconds longest, const GapRule& gap) {
  StepPeriod out;
  const double step = power.period.value();
  if (power.size() < 40 || !(step > 0)) {
    out.note = fmt::format("{} good samples are too few to look for a period", power.size());
    return out;
  }
  const double span = std::min(longest.value(), power.t_s.back() / 10);
  const auto most = static_cast<std::size_t>(span / step);
  if (most < 3) {
    out.note = "the recording is too short for its sampling to look for a period";
    return out;
  }
  const auto acf = autocorrelation(power, power.period, std::min(most * (kMostTeeth + 1), power.size() / 2), gap);
  // Four standard errors of an uncorrelated series; a searched maximum over `most` lags stays below it.
  const double noise = 4 / std::sqrt(static_cast<double>(power.size()));
  double highest = 0;
  std::vector<std::size_t> peaks;
  double lowest_before = 1;
  for (std::size_t k = 1; k <= most && k + 1 < acf.size(); ++k) {
    lowest_before = std::min(lowest_before, acf[k]);
    if (k < 2 || acf[k] < acf[k - 1] || acf[k] <= acf[k + 1]) continue;
    if (acf[k] < noise || acf[k] - lowest_before < noise) continue;
    peaks.push_back(k);
    highest = std::max(highest, acf[k]);
  }
  for (std::size_t k : peaks) {
    if (acf[k] < kNearHighest * highest) continue;
    const double lag = refine(acf, static_cast<double>(k));
    const double score = comb(acf, lag, kMostTeeth);
    if (score < noise) continue;
    out.found = true;
    out.period = Seconds(lag * step);
    out.confidence_fraction = std::clamp(score, 0.0, 1.0);
    const double f = 1 / out.period.value(), rate = 1 / step;
    out.note = fmt::format("sampled every {}, a load of period {} or {} would look the same", format(power.period),
                           format(Seconds(1 / (rate - f))), format(Seconds(1 / (rate + f))));
    return out;
  }
  out.note = fmt::format(
      "no period between {} and {} stands out of the noise; a step shorter than {} cannot be seen at "
      "this sampling",
      format(power.period * 2), format(Seconds(span)), format(power.period * 2));
  return out;
}

}  // namespace flyball::series
