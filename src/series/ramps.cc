#include "series/ramps.h"

#include <algorithm>
#include <cmath>

#include "base/stats.h"

namespace flyball::series {

std::vector<Seconds> default_ramp_spans() { return {Seconds(1), Seconds(10), Seconds(60)}; }

namespace {

Ramp ramp_over(const Samples& s, Seconds span, const std::vector<std::size_t>& stretch_start) {
  Ramp ramp;
  ramp.span = span;
  ramp.resolved = span >= s.period * 0.999;
  std::vector<double> rates;
  std::size_t k = 0;
  double up = 0, down = 0;
  for (std::size_t i = 1; i < s.size(); ++i) {
    const double then = s.t_s[i] - span.value();
    if (then < s.t_s[stretch_start[i]]) continue;
    k = std::max(k, stretch_start[i]);
    while (k + 1 < i && s.t_s[k + 1] <= then) ++k;
    const double f = (then - s.t_s[k]) / (s.t_s[k + 1] - s.t_s[k]);
    const double before = s.value[k] + f * (s.value[k + 1] - s.value[k]);
    const double rate = (s.value[i] - before) / span.value();
    rates.push_back(std::fabs(rate));
    if (rate > up) up = rate, ramp.up_at = s.instant_of(s.t_s[i]);
    if (-rate > down) down = -rate, ramp.down_at = s.instant_of(s.t_s[i]);
  }
  ramp.pairs = rates.size();
  ramp.max_up_w_per_s = up;
  ramp.max_down_w_per_s = down;
  if (rates.empty()) return ramp;
  ramp.p50_w_per_s = quantile(rates, 0.5);
  ramp.p95_w_per_s = quantile(rates, 0.95);
  ramp.p99_w_per_s = quantile(rates, 0.99);
  return ramp;
}

}  // namespace

std::vector<Ramp> ramps(const Samples& s, std::span<const Seconds> spans, const GapRule& gap) {
  std::vector<std::size_t> stretch_start(s.size(), 0);  // first sample of the stretch without a hole that i is in
  const double longest = gap.longest(s.period).value();
  for (std::size_t i = 1; i < s.size(); ++i)
    stretch_start[i] = s.t_s[i] - s.t_s[i - 1] > longest ? i : stretch_start[i - 1];
  std::vector<Ramp> out;
  for (Seconds span : spans)
    if (span > Seconds(0)) out.push_back(ramp_over(s, span, stretch_start));
  return out;
}

}  // namespace flyball::series
