#include "series/spectrum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/stats.h"
#include "base/text.h"

namespace flyball::series {
namespace {

std::size_t floor_power_of_two(std::size_t n) {
  std::size_t p = 1;
  while (p * 2 <= n) p *= 2;
  return p;
}

// Adds the one-sided Hann periodogram of value[from, from + n) to density.
void add_periodogram(const std::vector<double>& value, std::size_t from, std::size_t n, double step,
                     std::vector<double>& density) {
  double mean = 0;
  for (std::size_t i = 0; i < n; ++i) mean += value[from + i];
  mean /= static_cast<double>(n);
  std::vector<std::complex<double>> x(n);
  double weight = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double w = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n));
    weight += w * w;
    x[i] = w * (value[from + i] - mean);
  }
  fft(x);
  for (std::size_t k = 0; k < density.size(); ++k) {
    const double sides = k == 0 || k == n / 2 ? 1 : 2;
    density[k] += sides * std::norm(x[k]) * step / weight;
  }
}

std::vector<double> local_floor(const std::vector<double>& density) {
  const std::size_t half = std::max<std::size_t>(8, density.size() / 32);
  std::vector<double> floor(density.size());
  for (std::size_t k = 0; k < density.size(); ++k) {
    const std::size_t from = std::max<std::size_t>(1, k > half ? k - half : 1);
    const std::size_t to = std::min(density.size(), k + half + 1);
    floor[k] = from < to ? median(std::span(density).subspan(from, to - from)) : 0;
  }
  return floor;
}

std::vector<Line> find_lines(const Spectrum& s, const SpectrumOptions& options) {
  std::vector<Line> lines;
  const auto floor = local_floor(s.density);
  for (std::size_t k = 2; k + 1 < s.density.size(); ++k) {
    const double here = s.density[k];
    if (here < s.density[k - 1] || here <= s.density[k + 1] || !(floor[k] > 0)) continue;
    if (here < options.line_prominence * floor[k]) continue;
    // Parabola through the logarithms of the three highest bins (Hann's main lobe is near to Gaussian).
    const double a = std::log(s.density[k - 1]), b = std::log(here), c = std::log(s.density[k + 1]);
    const double shift = a - 2 * b + c < 0 ? 0.5 * (a - c) / (a - 2 * b + c) : 0;
    const double power = (s.density[k - 1] + here + s.density[k + 1]) * s.resolution.value();
    lines.push_back(
        {Hertz((static_cast<double>(k) + shift) * s.resolution.value()), std::sqrt(2 * power), here / floor[k]});
  }
  std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.amplitude_w > b.amplitude_w; });
  if (lines.size() > options.max_lines) lines.resize(options.max_lines);
  return lines;
}

}  // namespace

void fft(std::vector<std::complex<double>>& v) {
  const std::size_t n = v.size();
  for (std::size_t i = 1, j = 0; i < n; ++i) {
    std::size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(v[i], v[j]);
  }
  for (std::size_t length = 2; length <= n; length *= 2) {
    std::vector<std::complex<double>> twiddle(length / 2);
    for (std::size_t k = 0; k < length / 2; ++k)
      twiddle[k] = std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length));
    for (std::size_t i = 0; i < n; i += length)
      for (std::size_t k = 0; k < length / 2; ++k) {
        const auto even = v[i + k];
        const auto odd = v[i + k + length / 2] * twiddle[k];
        v[i + k] = even + odd;
        v[i + k + length / 2] = even - odd;
      }
  }
}

double Spectrum::band_power(Hertz from, Hertz to) const {
  double sum = 0;
  for (std::size_t k = 0; k < density.size(); ++k)
    if (frequency[k] >= from && frequency[k] < to) sum += density[k] * resolution.value();
  return sum;
}

std::vector<UniformRun> uniform_runs(const Samples& s, Seconds step, const GapRule& gap) {
  std::vector<UniformRun> runs;
  if (s.size() < 2 || !(step > Seconds(0))) return runs;
  const double longest = gap.longest(s.period).value();
  const double h = step.value();
  for (std::size_t first = 0; first < s.size();) {
    std::size_t last = first;
    while (last + 1 < s.size() && s.t_s[last + 1] - s.t_s[last] <= longest) ++last;
    UniformRun run{s.t_s[first], {}};
    std::size_t i = first;
    const auto count = static_cast<std::size_t>((s.t_s[last] - s.t_s[first]) / h + 1e-9) + 1;
    for (std::size_t k = 0; k < count; ++k) {
      const double t = run.start_s + static_cast<double>(k) * h;
      while (i + 1 < last && s.t_s[i + 1] < t) ++i;
      if (i == last) {
        run.value.push_back(s.value[i]);
        continue;
      }
      const double f = std::clamp((t - s.t_s[i]) / (s.t_s[i + 1] - s.t_s[i]), 0.0, 1.0);
      run.value.push_back(s.value[i] + f * (s.value[i + 1] - s.value[i]));
    }
    runs.push_back(std::move(run));
    first = last + 1;
  }
  return runs;
}

void SpectrumMeter::add(const Samples& power) {
  if (power.size() < 16) {
    if (length_ == 0)
      sum_.note = fmt::format("{} good samples are too few for a spectrum; at least 16 are needed", power.size());
    return;
  }
  if (length_ == 0) period_ = power.period;
  const double step = period_.value();
  const auto runs = uniform_runs(power, period_, options_.gap);
  if (length_ == 0) {
    sum_.nyquist = Hertz(0.5 / step);
    const double wanted = options_.segment > Seconds(0) ? options_.segment.value() / step
                                                        : std::max(64.0, static_cast<double>(power.size()) / 8);
    std::size_t longest = 0;
    for (const auto& run : runs) longest = std::max(longest, run.value.size());
    const std::size_t n =
        floor_power_of_two(std::min(longest, std::max<std::size_t>(8, static_cast<std::size_t>(wanted))));
    if (n < 8) {
      sum_.note = "no stretch without a hole is long enough for a spectrum";
      return;
    }
    length_ = n;
    sum_.density.assign(n / 2 + 1, 0);
    sum_.resolution = Hertz(1 / (step * static_cast<double>(n)));
    for (std::size_t k = 0; k <= n / 2; ++k) sum_.frequency.push_back(sum_.resolution * static_cast<double>(k));
  }
  for (const auto& run : runs) {
    for (std::size_t from = 0; from + length_ <= run.value.size(); from += length_ / 2, ++sum_.segments)
      add_periodogram(run.value, from, length_, step, sum_.density);
    if (run.value.size() >= length_) sum_.used += Seconds(static_cast<double>(run.value.size()) * step);
  }
}

Spectrum SpectrumMeter::result() const {
  Spectrum out = sum_;
  if (length_ == 0) return out;
  for (double& d : out.density) d /= static_cast<double>(out.segments);
  out.lines = find_lines(out, options_);
  out.note = fmt::format(
      "sampled every {}: nothing above {} is seen, and what the load does faster than that appears "
      "folded below it",
      format(period_), format(out.nyquist));
  return out;
}

Spectrum power_spectrum(const Samples& power, const SpectrumOptions& options) {
  SpectrumMeter meter(options);
  meter.add(power);
  return meter.result();
}

}  // namespace flyball::series
