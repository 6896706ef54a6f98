#include "facility/lag.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "base/text.h"

namespace flyball::facility {
namespace {

constexpr std::size_t kMostSamples = 100'000;
constexpr std::size_t kFewestSamples = 50;

/// Logarithms of dead time and lags: they are positive and their scale is not known.
using Times = std::array<double, 3>;

struct Problem {
  std::span<const double> input, output;
  double step = 1;
  double longest = 3600;
  double whitening = 0;
  std::size_t lags = 1;  ///< 0, 1 or 2
  bool at_once = false;
};

double seconds_of(const Problem& problem, double log_time) {
  return std::exp(std::clamp(log_time, std::log(0.01 * problem.step), std::log(problem.longest)));
}

std::vector<double> shape(const Problem& problem, const Times& times) {
  return respond(problem.input, Seconds(problem.step), Seconds(seconds_of(problem, times[0])),
                 Seconds(problem.lags > 0 ? seconds_of(problem, times[1]) : 0),
                 Seconds(problem.lags > 1 ? seconds_of(problem, times[2]) : 0));
}

struct Line {
  double offset = 0, gain = 0;
  double at_once = 0;  ///< gain of the input itself
  double squares = std::numeric_limits<double>::infinity();
  double total = 0;  ///< of the output about its mean, and about what follows at once
  std::size_t count = 0;
};

/// The first samples answer an input that was not seen.
std::size_t warm_up(const Problem& problem, const Times& times) {
  double memory = seconds_of(problem, times[0]);
  for (std::size_t i = 1; i <= problem.lags; ++i) memory += 4 * seconds_of(problem, times[i]);
  return std::min(static_cast<std::size_t>(memory / problem.step) + 1, problem.input.size() / 4);
}

Line fit_line(const Problem& problem, const std::vector<double>& x, std::size_t from) {
  Line line;
  double sx = 0, sy = 0, sz = 0, sxx = 0, sxy = 0, syy = 0, szz = 0, sxz = 0, szy = 0;
  const double w = problem.whitening;
  for (std::size_t i = std::max<std::size_t>(from, 1); i < x.size(); ++i) {
    const double a = x[i] - w * x[i - 1], b = problem.output[i] - w * problem.output[i - 1];
    const double z = problem.at_once ? problem.input[i] - w * problem.input[i - 1] : 0;
    if (!std::isfinite(b)) continue;
    ++line.count;
    sx += a, sy += b, sxx += a * a, sxy += a * b, syy += b * b;
    sz += z, szz += z * z, sxz += a * z, szy += z * b;
  }
  const auto n = static_cast<double>(line.count);
  if (line.count < kFewestSamples / 2) return line;
  double vx = sxx - sx * sx / n, vxy = sxy - sx * sy / n, vy = syy - sy * sy / n;
  const double vz = szz - sz * sz / n, vxz = sxz - sx * sz / n, vzy = szy - sz * sy / n;
  const bool both = problem.at_once && vz > 1e-12 * szz;
  if (both) {  // what follows at once is taken out of both sides
    vx -= vxz * vxz / vz;
    vxy -= vxz * vzy / vz;
    vy -= vzy * vzy / vz;
  }
  line.total = vy;
  line.gain = vx > 1e-12 * sxx ? vxy / vx : 0;
  line.at_once = both ? (vzy - line.gain * vxz) / vz : 0;
  line.offset = (sy - line.gain * sx - line.at_once * sz) / n;
  line.squares = std::max(line.total - line.gain * vxy, 0.0);
  return line;
}

double cost(const Problem& problem, const Times& times) {
  // Times beyond what is looked for are pushed back, so that the search stays where it means something.
  double beyond = 0, all = 0;
  for (std::size_t i = 0; i <= problem.lags; ++i) {
    all += std::exp(times[i]);
    beyond += std::max(0.0, std::log(0.01 * problem.step) - times[i]);
  }
  beyond += std::max(0.0, std::log(all / problem.longest));
  const Line line = fit_line(problem, shape(problem, times), warm_up(problem, times));
  return line.count == 0 ? line.squares
                         : line.squares / static_cast<double>(line.count) * (1 + beyond + beyond * beyond);
}

/// Nelder and Mead (1965), in `size` dimensions.
Times minimise(const std::function<double(const Times&)>& f, const Times& start, std::size_t size) {
  struct Corner {
    Times at;
    double value;
  };
  std::vector<Corner> simplex = {{start, f(start)}};
  for (std::size_t i = 0; i < size; ++i) {
    Times at = start;
    at[i] += 0.7;
    simplex.push_back({at, f(at)});
  }
  const auto less = [](const Corner& a, const Corner& b) { return a.value < b.value; };
  constexpr int kMostSteps = 250;
  for (int step = 0; step < kMostSteps; ++step) {
    std::sort(simplex.begin(), simplex.end(), less);
    if (simplex.back().value - simplex.front().value <= 1e-10 * simplex.front().value) break;
    Times middle{};
    for (std::size_t c = 0; c < size; ++c)
      for (std::size_t i = 0; i < size; ++i) middle[i] += simplex[c].at[i] / static_cast<double>(size);
    const auto moved = [&](double by) {
      Corner corner{middle, 0};
      for (std::size_t i = 0; i < size; ++i) corner.at[i] += by * (middle[i] - simplex.back().at[i]);
      corner.value = f(corner.at);
      return corner;
    };
    Corner next = moved(1);
    if (next.value < simplex.front().value) {
      const Corner farther = moved(2);
      if (farther.value < next.value) next = farther;
    } else if (next.value >= simplex[size - 1].value) {
      next = moved(next.value < simplex.back().value ? 0.5 : -0.5);
      if (next.value >= simplex.back().value) {
        for (std::size_t c = 1; c < simplex.size(); ++c) {
          for (std::size_t i = 0; i < size; ++i) simplex[c].at[i] = (simplex[c].at[i] + simplex[0].at[i]) / 2;
          simplex[c].value = f(simplex[c].at);
        }
        continue;
      }
    }
    simplex.back() = next;
  }
  return std::min_element(simplex.begin(), simplex.end(), less)->at;
}

struct Found {
  Times times{};
  double value = std::numeric_limits<double>::infinity();
};

Found search(const Problem& problem, const Found* near) {
  Found best;
  const auto f = [&](const Times& times) { return cost(problem, times); };
  const auto from = [&](const Times& start) {
    const Times times = minimise(f, start, problem.lags + 1);
    const double value = f(times);
    if (value < best.value) best = {times, value};
  };
  if (near != nullptr) {
    from(near->times);
    return best;
  }
  std::vector<std::pair<double, Times>> starts;
  constexpr double kStartsAt[] = {0.5, 3, 20, 100};
  for (const double dead : kStartsAt)
    for (const double lag : kStartsAt) {
      if (dead + lag > problem.longest / problem.step) continue;
      const Times start = {std::log(dead * problem.step), std::log(lag * problem.step),
                           std::log(0.4 * lag * problem.step)};
      starts.emplace_back(f(start), start);
    }
  std::sort(starts.begin(), starts.end());
  constexpr std::size_t kTried = 3;
  for (std::size_t i = 0; i < std::min(kTried, starts.size()); ++i) from(starts[i].second);
  return best;
}

double autocorrelation(const Problem& problem, const Times& times) {
  Problem plain = problem;
  plain.whitening = 0;
  const std::vector<double> x = shape(plain, times);
  const std::size_t from = warm_up(plain, times);
  const Line line = fit_line(plain, x, from);
  double products = 0, squares = 0;
  for (std::size_t i = from + 1; i < x.size(); ++i) {
    const auto left = [&](std::size_t k) {
      return problem.output[k] - line.offset - line.gain * x[k] - line.at_once * problem.input[k];
    };
    const double a = left(i), b = left(i - 1);
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    products += a * b;
    squares += b * b;
  }
  return squares > 0 ? std::clamp(products / squares, 0.0, 0.999) : 0;
}

/// Covariance of times [s] from the curvature: s² (JᵀJ)⁻¹ with offset and gains taken along. False where it is flat.
bool covariance(const Problem& problem, const Times& times, std::array<std::array<double, 3>, 3>& out) {
  const std::size_t n = problem.lags + 1;
  const std::size_t from = std::max<std::size_t>(warm_up(problem, times), 1);
  const std::vector<double> x = shape(problem, times);
  const Line line = fit_line(problem, x, from);
  std::vector<std::vector<double>> jacobian = {std::vector<double>(x.size(), 1.0), x};
  if (problem.at_once) jacobian.emplace_back(problem.input.begin(), problem.input.end());
  const std::size_t others = jacobian.size(), columns = n + others;
  for (std::size_t i = 0; i < n; ++i) {
    const double by = std::max(0.01 * seconds_of(problem, times[i]), 0.02 * problem.step);
    Times more = times, less = times;
    more[i] = std::log(seconds_of(problem, times[i]) + by);
    less[i] = std::log(std::max(seconds_of(problem, times[i]) - by, 0.01 * problem.step));
    const std::vector<double> a = shape(problem, more), b = shape(problem, less);
    const double width = seconds_of(problem, more[i]) - seconds_of(problem, less[i]);
    jacobian.emplace_back(x.size());
    for (std::size_t k = 0; k < x.size(); ++k) jacobian.back()[k] = line.gain * (a[k] - b[k]) / width;
  }
  std::vector<std::vector<double>> normal(columns, std::vector<double>(2 * columns, 0.0));
  for (std::size_t k = from; k < x.size(); ++k) {
    if (!std::isfinite(problem.output[k] - problem.whitening * problem.output[k - 1])) continue;
    for (std::size_t i = 0; i < columns; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        normal[i][j] += (jacobian[i][k] - problem.whitening * jacobian[i][k - 1]) *
                        (jacobian[j][k] - problem.whitening * jacobian[j][k - 1]);
  }
  std::vector<double> scale(columns);
  for (std::size_t i = 0; i < columns; ++i) {
    scale[i] = std::sqrt(normal[i][i]);
    if (!(scale[i] > 0)) return false;
  }
  for (std::size_t i = 0; i < columns; ++i) {
    for (std::size_t j = 0; j < columns; ++j) normal[i][j] /= scale[i] * scale[j];
    normal[i][columns + i] = 1;
  }
  for (std::size_t i = 0; i < columns; ++i) {  // Gauss and Jordan; correlations, so pivots are comparable
    if (normal[i][i] < 1e-9) return false;
    const double pivot = normal[i][i];
    for (double& v : normal[i]) v /= pivot;
    for (std::size_t r = 0; r < columns; ++r) {
      if (r == i) continue;
      const double factor = normal[r][i];
      for (std::size_t j = 0; j < 2 * columns; ++j) normal[r][j] -= factor * normal[i][j];
    }
  }
  const double variance = line.squares / static_cast<double>(line.count - columns);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      out[i][j] = variance * normal[i + others][columns + j + others] / (scale[i + others] * scale[j + others]);
  return true;
}

Lags not_identifiable(std::string note) {
  Lags made;
  made.note = std::move(note);
  return made;
}

double schwarz(const Problem& problem, double value) {
  const auto n = static_cast<double>(problem.input.size());
  return n * std::log(std::max(value, 1e-300)) + std::log(n) * static_cast<double>(problem.lags + 1);
}

/// One number of lags, as well as it can do.
struct Candidate {
  Problem problem;
  Found found;
  double criterion = 0;
};

/// For no lag, one and two; the best first.
std::vector<Candidate> candidates(const Problem& problem) {
  std::vector<Candidate> made;
  for (std::size_t count = 0; count <= 2; ++count) {
    Candidate tried{problem, {}, 0};
    tried.problem.lags = count;
    tried.found = search(tried.problem, nullptr);
    for (int pass = 0; pass < 2; ++pass) {
      tried.problem.whitening = autocorrelation(tried.problem, tried.found.times);
      const Found near = tried.found;
      tried.found = search(tried.problem, &near);
    }
    tried.criterion = schwarz(tried.problem, tried.found.value);
    made.push_back(tried);
  }
  std::stable_sort(made.begin(), made.end(),
                   [](const Candidate& a, const Candidate& b) { return a.criterion < b.criterion; });
  return made;
}

Estimate interval(double value, double variance, double level) {
  const double half = normal_quantile((1 + level) / 2) * std::sqrt(std::max(variance, 0.0));
  return {value, std::max(value - half, 0.0), value + half, level};
}

/// The times of one candidate with their intervals; false where the data do not bend with them.
bool times_of(const Candidate& candidate, double level, Lags& made) {
  std::array<std::array<double, 3>, 3> doubt{};
  const Problem& problem = candidate.problem;
  if (!covariance(problem, candidate.found.times, doubt)) return false;
  Estimate* const slots[] = {&made.dead_time_s, &made.first_lag_s, &made.second_lag_s};
  double total = 0, variance = 0;
  for (std::size_t i = 0; i <= problem.lags; ++i) {
    const double value = seconds_of(problem, candidate.found.times[i]);
    *slots[i] = interval(value, doubt[i][i], level);
    total += value;
    for (std::size_t j = 0; j <= problem.lags; ++j) variance += doubt[i][j];
  }
  made.total_s = interval(total, variance, level);
  if (made.first_lag_s.value < made.second_lag_s.value) std::swap(made.first_lag_s, made.second_lag_s);
  return true;
}

void widen(Estimate& estimate, const Estimate& other) {
  estimate.low = std::min(estimate.low, other.low);
  estimate.high = std::max(estimate.high, other.high);
}

/// How much more parts of the data differ from the whole than the intervals of each of them allow: the median, since a
/// part whose load hardly moved may be sure of anything.
double disagreement(const Lags& whole, const std::vector<Lags>& parts, Estimate Lags::*which) {
  constexpr double kMedianOfNormal = 0.6745;
  std::vector<double> deviations;
  for (const Lags& part : parts) {
    const double sd = (part.*which).half_width() / normal_quantile((1 + (part.*which).level) / 2);
    deviations.push_back(std::abs((part.*which).value - (whole.*which).value) / std::max(sd, 1e-9));
  }
  return median(deviations) / kMedianOfNormal;
}

/// What else moves the output (weather, machines that are switched) is in no part alike. Where times that are found in
/// parts of the data differ more than chance explains, all intervals are as much wider.
void widen_by_parts(const Candidate& best, const LagOptions& options, Lags& made) {
  constexpr std::size_t kParts = 4;
  const std::size_t size = best.problem.input.size() / kParts;
  if (size < kFewestSamples) return;
  std::vector<Lags> parts;
  for (std::size_t part = 0; part < kParts; ++part) {
    Candidate one = best;
    one.problem.input = best.problem.input.subspan(part * size, size);
    one.problem.output = best.problem.output.subspan(part * size, size);
    one.found = search(one.problem, nullptr);
    Lags found;
    if (std::isfinite(one.found.value) && times_of(one, options.level, found)) parts.push_back(found);
  }
  if (parts.size() < 2) return;
  const Lags whole = made;
  std::vector<Estimate Lags::*> times = {&Lags::dead_time_s, &Lags::total_s};
  if (best.problem.lags > 0) times.push_back(&Lags::first_lag_s);
  if (best.problem.lags > 1) times.push_back(&Lags::second_lag_s);
  for (Estimate Lags::*const which : times) {
    Estimate& time = made.*which;
    const double ratio = std::max(1.0, disagreement(whole, parts, which));
    time.low = std::max(time.value - ratio * (time.value - time.low), 0.0);
    time.high = time.value + ratio * (time.high - time.value);
  }
  if (made.total_s.half_width() <= options.widest_apart_fraction * made.total_s.value) return;
  made.identifiable = false;
  made.note = fmt::format("parts of the data say other times: {} as a whole, {} to {} by part",
                          format(Seconds(whole.total_s.value)), format(Seconds(made.total_s.low)),
                          format(Seconds(made.total_s.high)));
}

}  // namespace

std::vector<double> respond(std::span<const double> input, Seconds step, Seconds dead_time, Seconds first_lag,
                            Seconds second_lag) {
  const double h = step.value();
  double t1 = std::max(first_lag.value(), 0.0), t2 = std::max(second_lag.value(), 0.0);
  if (t1 < t2) std::swap(t1, t2);
  if (std::abs(t1 - t2) < 1e-4 * t1) t2 = t1 * (1 - 1e-4);  // the formula below divides by the difference
  const double a1 = t1 > 0 ? std::exp(-h / t1) : 0, a2 = t2 > 0 ? std::exp(-h / t2) : 0;
  const double part = t1 > 0 ? t1 / (t1 - t2) : 0;
  std::vector<double> lagged(input.size());
  if (input.empty()) return lagged;
  double x1 = input[0], x2 = input[0];
  for (std::size_t i = 0; i < input.size(); ++i) {
    lagged[i] = x2;
    // The input holds from here to the next sample: the exact answer of both lags to a step.
    const double u = input[i], b = (x1 - u) * part;
    x2 = t1 > 0 ? u + (x2 - u - b) * a2 + b * a1 : u;
    x1 = u + (x1 - u) * a1;
  }
  const double shift = std::max(dead_time.value(), 0.0) / h;
  const auto whole = static_cast<std::size_t>(shift);
  const double rest = shift - static_cast<double>(whole);
  std::vector<double> made(input.size(), lagged[0]);
  for (std::size_t i = whole; i < input.size(); ++i) {
    const double later = lagged[i - whole];
    const double earlier = i > whole ? lagged[i - whole - 1] : lagged[0];
    made[i] = later + rest * (earlier - later);
  }
  return made;
}

namespace {

void judge(Lags& made, double longest, Seconds step, const LagOptions& options) {
  const auto within = [&](const Estimate& time, double fraction) {
    return time.half_width() <= std::max(fraction * time.value, step.value());
  };
  const auto sure = [&](const Estimate& time) { return within(time, options.widest_fraction); };
  const auto shown = [](const Estimate& time) {
    return fmt::format("{} ± {}", format(Seconds(time.value)), format(Seconds(time.half_width())));
  };
  if (!sure(made.total_s)) {
    made.note = fmt::format("the time to answer is {}: the load moves too little, or its answer drowns in noise",
                            shown(made.total_s));
    return;
  }
  if (made.total_s.value > 0.98 * longest) {
    made.note = fmt::format("no shorter than the {} that are looked at", format(Seconds(longest)));
    return;
  }
  made.identifiable = true;
  if (sure(made.dead_time_s) && sure(made.first_lag_s) && sure(made.second_lag_s)) return;
  made.note = fmt::format("only their sum is sure: dead time {}, lags {} and {}", shown(made.dead_time_s),
                          shown(made.first_lag_s), shown(made.second_lag_s));
}

}  // namespace

Lags find_lags(std::span<const double> input, std::span<const double> output, Seconds step, const LagOptions& options) {
  const std::size_t size = std::min({input.size(), output.size(), kMostSamples});
  if (size < kFewestSamples) return not_identifiable(fmt::format("{} samples; at least {}", size, kFewestSamples));
  Problem problem{input.first(size), output.first(size), step.value(), 0, 0, 1, options.at_once};
  problem.longest = std::min(options.longest.value(), step.value() * static_cast<double>(size) / 5);
  RunningStats moves;
  for (const double u : problem.input) {
    if (!std::isfinite(u)) return not_identifiable("the input has holes; give a stretch without");
    moves.add(u);
  }
  if (!(moves.sd() > 1e-9 * std::abs(moves.mean()))) return not_identifiable("the input does not move");
  const std::vector<Candidate> all = candidates(problem);
  const Candidate& best = all.front();
  if (!std::isfinite(best.found.value)) return not_identifiable("too few output samples");
  const Line line =
      fit_line(best.problem, shape(best.problem, best.found.times), warm_up(best.problem, best.found.times));
  Lags made;
  made.gain = line.gain;
  made.gain_at_once = line.at_once;
  made.explained_fraction = line.total > 0 ? 1 - line.squares / line.total : 0;
  constexpr double kLeastExplained = 0.03;
  if (made.explained_fraction < kLeastExplained)
    return not_identifiable(
        fmt::format("the input explains {} of the output", format_percent(made.explained_fraction, 1)));
  if (!times_of(best, options.level, made)) return not_identifiable("the answer does not depend on the times");
  // Where another number of lags does nearly as well, its times may be the true ones (Kass and Raftery, 1995).
  // One with a lag of next to nothing says the same as the one without.
  constexpr double kStrongEvidence = 10, kNothing = 0.05;
  for (std::size_t i = 1; i < all.size(); ++i) {
    Lags other;
    const Problem& p = all[i].problem;
    bool nothing = false;
    for (std::size_t lag = 1; lag <= p.lags; ++lag)
      nothing = nothing || seconds_of(p, all[i].found.times[lag]) < kNothing * p.step;
    if (nothing) continue;
    if (all[i].criterion - best.criterion > kStrongEvidence || !times_of(all[i], options.level, other)) continue;
    // One that is itself no more than a guess is no rival.
    if (other.total_s.half_width() > 0.5 * other.total_s.value) continue;
    widen(made.dead_time_s, other.dead_time_s);
    widen(made.first_lag_s, other.first_lag_s);
    widen(made.second_lag_s, other.second_lag_s);
    widen(made.total_s, other.total_s);
  }
  if (options.means)  // a mean stands half a step before its stamp, and its input holds from a whole step before
    for (Estimate* time : {&made.dead_time_s, &made.total_s})
      for (double* end : {&time->value, &time->low, &time->high}) *end += step.value() / 2;
  judge(made, problem.longest, step, options);
  if (made.identifiable) widen_by_parts(best, options, made);
  return made;
}

}  // namespace flyball::facility
