#include "facility/avoided.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "facility/accuracy.h"

namespace flyball::facility {
namespace {

constexpr std::size_t kFewestDays = 30;
constexpr double kCoarseStep = 1, kBalanceStep = 0.25;  // K: the fine one is finer than the data can tell
constexpr double kColdestBalance = 2, kHottestBalance = 32;

// OpenEEmeter's and ASHRAE 14's limits for what may be claimed from daily data.
constexpr std::size_t kEnoughDays = 328;                            // 90 % of a year (CalTRACK 2.2)
constexpr double kMostCvrmse = 0.30;                                // ASHRAE 14, 5.3.2.1, hourly and daily data
constexpr double kMostNmbe = 0.005;                                 // a fitted baseline has none but rounding
constexpr double kUncertaintyLevel = 0.68, kMostUncertainty = 0.5;  // ASHRAE 14, 5.2.11: half of the saving at 68 %
constexpr double kAirBeyond = 2;                                    // K
constexpr double kMostBeyond = 0.02;                                // of the reporting hours

// What only a meter that is dead or stands still shows; one that is coarse repeats itself more often.
constexpr double kFewestEqual = 3;
constexpr double kUsual = 0.99, kTimesUsual = 3,
                 kMostEqual = 0.5;          // three times what 99 of 100 runs are, or half of a period
constexpr double kZeroWhereExpected = 0.5;  // of the mean day: a gas meter rests in summer

constexpr std::size_t kColumns = 5;
using Row = std::array<double, kColumns>;

double mean_below(const MeterDay& day, double balance) {
  double sum = 0;
  for (const Celsius air : day.air) sum += std::max(balance - air.value(), 0.0);
  return sum / static_cast<double>(day.air.size());
}
double mean_above(const MeterDay& day, double balance) {
  double sum = 0;
  for (const Celsius air : day.air) sum += std::max(air.value() - balance, 0.0);
  return sum / static_cast<double>(day.air.size());
}

/// A x = b for a symmetric positive definite A of n rows (Cholesky), in place; false where it is not.
template <std::size_t N>
bool solve(std::array<std::array<double, N>, N> a, std::array<double, N>& b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      if (i == j) {
        if (!(sum > 1e-12 * std::max(1e-300, std::abs(a[i][i])))) return false;
        a[i][i] = std::sqrt(sum);
      } else {
        a[i][j] = sum / a[j][j];
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return true;
}

struct Fit {
  std::array<double, 3> coefficient{};  ///< base, heating, cooling
  bool heats = false, cools = false;
  double squares = 0;
  double heating_balance = 0, cooling_balance = 0;
};

/// Least squares with the columns that are on; those whose slope comes out negative are switched off.
std::optional<Fit> fit_slopes(const std::vector<double>& below, const std::vector<double>& above,
                              const std::vector<double>& use) {
  Fit fit;
  for (const auto& [heats, cools] :
       {std::pair(true, true), std::pair(true, false), std::pair(false, true), std::pair(false, false)}) {
    std::array<std::array<double, 3>, 3> normal{};
    std::array<double, 3> right{};
    std::array<int, 3> column = {0, -1, -1};
    std::size_t n = 1;
    if (heats) column[1] = static_cast<int>(n++);
    if (cools) column[2] = static_cast<int>(n++);
    for (std::size_t d = 0; d < use.size(); ++d) {
      const double x[] = {1, below[d], above[d]};
      for (std::size_t i = 0; i < 3; ++i) {
        if (column[i] < 0) continue;
        right[static_cast<std::size_t>(column[i])] += x[i] * use[d];
        for (std::size_t j = 0; j < 3; ++j)
          if (column[j] >= 0)
            normal[static_cast<std::size_t>(column[i])][static_cast<std::size_t>(column[j])] += x[i] * x[j];
      }
    }
    if (!solve(normal, right, n)) continue;
    fit.coefficient = {right[0], heats ? right[static_cast<std::size_t>(column[1])] : 0,
                       cools ? right[static_cast<std::size_t>(column[2])] : 0};
    if (fit.coefficient[1] < 0 || fit.coefficient[2] < 0) continue;
    fit.heats = heats;
    fit.cools = cools;
    fit.squares = 0;
    for (std::size_t d = 0; d < use.size(); ++d) {
      const double error = use[d] - fit.coefficient[0] - fit.coefficient[1] * below[d] - fit.coefficient[2] * above[d];
      fit.squares += error * error;
    }
    return fit;
  }
  return std::nullopt;
}

/// Balance points by search, for the sum of squares has several minima: coarse over all, then fine around the best.
std::optional<Fit> best_fit(std::span<const MeterDay> days, const std::vector<double>& use) {
  std::optional<Fit> best;
  const auto look = [&](double heating_from, double cooling_from, double width, double step) {
    std::vector<std::vector<double>> below, above;
    const auto count = static_cast<std::size_t>(std::lround(width / step)) + 1;
    for (std::size_t i = 0; i < count; ++i) {
      below.emplace_back();
      above.emplace_back();
      for (const MeterDay& day : days) {
        below.back().push_back(mean_below(day, heating_from + static_cast<double>(i) * step));
        above.back().push_back(mean_above(day, cooling_from + static_cast<double>(i) * step));
      }
    }
    for (std::size_t h = 0; h < count; ++h)
      for (std::size_t c = 0; c < count; ++c) {
        const double heating = heating_from + static_cast<double>(h) * step;
        const double cooling = cooling_from + static_cast<double>(c) * step;
        if (cooling < heating) continue;
        auto fit = fit_slopes(below[h], above[c], use);
        if (!fit || (best && fit->squares >= best->squares)) continue;
        fit->heating_balance = heating;
        fit->cooling_balance = cooling;
        best = fit;
      }
  };
  look(kColdestBalance, kColdestBalance, kHottestBalance - kColdestBalance, kCoarseStep);
  if (best)
    look(best->heating_balance - kCoarseStep, best->cooling_balance - kCoarseStep, 2 * kCoarseStep, kBalanceStep);
  return best;
}

/// What the day's use changes by with each coefficient and balance point.
Row gradient(const Fit& fit, const MeterDay& day) {
  double colder = 0, warmer = 0;
  for (const Celsius air : day.air) {
    colder += air.value() < fit.heating_balance ? 1 : 0;
    warmer += air.value() > fit.cooling_balance ? 1 : 0;
  }
  const auto hours = static_cast<double>(day.air.size());
  return {1, fit.heats ? mean_below(day, fit.heating_balance) : 0, fit.cools ? mean_above(day, fit.cooling_balance) : 0,
          fit.heats ? fit.coefficient[1] * colder / hours : 0, fit.cools ? -fit.coefficient[2] * warmer / hours : 0};
}

/// Variance of the sum over `reporting` that comes from the coefficients' doubt, for errors of variance 1.
double doubt_of_sum(const Fit& fit, std::span<const MeterDay> baseline, std::span<const MeterDay> reporting) {
  std::array<Row, kColumns> normal{};
  Row sum{};
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < kColumns; ++i)
    if (i == 0 || (i % 2 == 1 ? fit.heats : fit.cools)) used.push_back(i);
  for (const MeterDay& day : baseline) {
    const Row row = gradient(fit, day);
    for (std::size_t i = 0; i < used.size(); ++i)
      for (std::size_t j = 0; j < used.size(); ++j) normal[i][j] += row[used[i]] * row[used[j]];
  }
  for (const MeterDay& day : reporting) {
    const Row row = gradient(fit, day);
    for (std::size_t i = 0; i < used.size(); ++i) sum[i] += row[used[i]];
  }
  Row solved = sum;
  if (!solve(normal, solved, used.size())) return 0;
  double variance = 0;
  for (std::size_t i = 0; i < used.size(); ++i) variance += sum[i] * solved[i];
  return variance;
}

void disqualify(AvoidedEnergy& made, std::span<const MeterDay> baseline, std::span<const MeterDay> reporting,
                double half_width_68) {
  const auto add = [&](const char* code, std::string what) { made.disqualified.push_back({code, std::move(what)}); };
  if (made.baseline_days < kEnoughDays)
    add("too_few_days",
        fmt::format("{} days of baseline; {} are needed to have seen a year", made.baseline_days, kEnoughDays));
  if (made.cvrmse_fraction > kMostCvrmse)
    add("poor_fit", fmt::format("CV(RMSE) {}; at most {}", format_percent(made.cvrmse_fraction, 1),
                                format_percent(kMostCvrmse, 0)));
  if (std::abs(made.nmbe_fraction) > kMostNmbe)
    add("biased", fmt::format("NMBE {}; at most {}", format_percent(made.nmbe_fraction), format_percent(kMostNmbe)));
  const auto gone = [](std::span<const MeterDay> days) {
    const Seconds whole = days.back().start - days.front().start + Seconds(86400);
    return 1 - static_cast<double>(days.size()) * 86400 / whole.value();
  };
  constexpr double kMostGone = 0.1;
  if (gone(baseline) > kMostGone || gone(reporting) > kMostGone)
    add("gaps", fmt::format("{} of the baseline and {} of the reporting days are missing; at most {}",
                            format_percent(gone(baseline), 0), format_percent(gone(reporting), 0),
                            format_percent(kMostGone, 0)));
  double coldest = 1e9, warmest = -1e9, beyond = 0, hours = 0;
  for (const MeterDay& day : baseline)
    for (const Celsius air : day.air) {
      coldest = std::min(coldest, air.value());
      warmest = std::max(warmest, air.value());
    }
  for (const MeterDay& day : reporting)
    for (const Celsius air : day.air) {
      ++hours;
      beyond += air.value() < coldest - kAirBeyond || air.value() > warmest + kAirBeyond ? 1 : 0;
    }
  if (beyond > kMostBeyond * hours)
    add("weather_not_covered", fmt::format("{} of the reporting hours were colder or warmer than any of the baseline",
                                           format_percent(beyond / hours, 1)));
  if (half_width_68 > kMostUncertainty * std::abs(made.saved_fraction.value))
    add("saving_too_small", fmt::format("the saving of {} is uncertain by {} at 68 %; at most half of it",
                                        format_percent(made.saved_fraction.value), format_percent(half_width_68)));
}

/// Runs of days of exactly one use; days of no use are not looked at.
struct Runs {
  std::vector<double> lengths;
  std::size_t longest = 0;
  Joules repeated;  ///< of the longest
};

Runs runs_of(std::span<const MeterDay> days) {
  Runs made;
  std::size_t run = 0;
  for (std::size_t i = 0; i < days.size(); ++i) {
    if (days[i].energy == Joules(0)) continue;
    run = run > 0 && i > 0 && days[i].energy == days[i - 1].energy ? run + 1 : 1;
    if (run == 1) made.lengths.push_back(0);
    made.lengths.back() += 1;
    if (run <= made.longest) continue;
    made.longest = run;
    made.repeated = days[i].energy;
  }
  return made;
}

/// Days that say nothing although the baseline expects much.
std::size_t dead_days(const DegreeModel& model, std::span<const MeterDay> days, Joules mean) {
  return static_cast<std::size_t>(std::count_if(days.begin(), days.end(), [&](const MeterDay& day) {
    return day.energy == Joules(0) && model.day(day) > mean * kZeroWhereExpected;
  }));
}

/// A dead meter looks like a saving of all, one that stands still like any.
void disqualify_meter(AvoidedEnergy& made, std::span<const MeterDay> baseline, std::span<const MeterDay> reporting,
                      Joules mean) {
  const std::size_t dead_before = dead_days(made.model, baseline, mean),
                    dead_after = dead_days(made.model, reporting, mean);
  if (dead_before + dead_after > 0)
    made.disqualified.push_back(
        {"meter_reads_zero",
         fmt::format("the meter reads 0 on {} days of the baseline and {} of the reporting days, where the baseline "
                     "expects use; find out whether it was dead, and take these days out",
                     dead_before, dead_after)});
  const Runs before = runs_of(baseline), after = runs_of(reporting);
  std::vector<double> lengths = before.lengths;
  lengths.insert(lengths.end(), after.lengths.begin(), after.lengths.end());
  const double usual = lengths.empty() ? 0 : quantile(lengths, kUsual);
  const auto stands_still = [&](const Runs& runs, std::size_t of) {
    const auto longest = static_cast<double>(runs.longest);
    return longest >= kFewestEqual &&
           (longest > kMostEqual * static_cast<double>(of) || longest >= kTimesUsual * usual);
  };
  const auto add = [&](const char* period, const Runs& runs) {
    made.disqualified.push_back(
        {"meter_stands_still",
         fmt::format("the meter repeats {} on {} days of the {} in a row; find out whether it stood still, and take "
                     "these days out",
                     format(runs.repeated), runs.longest, period)});
  };
  if (stands_still(before, baseline.size())) add("baseline", before);
  if (stands_still(after, reporting.size())) add("reporting time", after);
}

}  // namespace

Joules DegreeModel::day(const MeterDay& day) const {
  return base + heating * (heats ? mean_below(day, heating_balance.value()) : 0) +
         cooling * (cools ? mean_above(day, cooling_balance.value()) : 0);
}

Result<AvoidedEnergy> avoided_energy(std::span<const MeterDay> baseline, std::span<const MeterDay> reporting,
                                     const AvoidedOptions& options) {
  if (baseline.size() < kFewestDays || reporting.empty())
    return fail(ErrorCode::input,
                fmt::format("{} days of baseline and {} of reporting", baseline.size(), reporting.size()), {},
                fmt::format("at least {} and 1 are needed; a claim needs a year", kFewestDays));
  std::vector<double> use;
  RunningStats spread;
  for (const MeterDay& day : baseline) {
    use.push_back(day.energy.value());
    spread.add(use.back());
  }
  const auto fit = best_fit(baseline, use);
  if (!fit || !(spread.mean() > 0))
    return fail(ErrorCode::input, "no baseline can be fitted: the meter shows nothing, or the air never changes");
  AvoidedEnergy made;
  made.model = {Joules(fit->coefficient[0]),
                Joules(fit->coefficient[1]),
                Joules(fit->coefficient[2]),
                Celsius(fit->heating_balance),
                Celsius(fit->cooling_balance),
                fit->heats,
                fit->cools};
  made.baseline_days = baseline.size();
  made.reporting_days = reporting.size();
  std::vector<double> errors;
  double bias = 0;
  for (const MeterDay& day : baseline) errors.push_back((day.energy - made.model.day(day)).value());
  for (const double e : errors) bias += e;
  const double parameters = 1 + (fit->heats ? 2 : 0) + (fit->cools ? 2 : 0);
  const auto n = static_cast<double>(errors.size());
  const double variance = fit->squares / (n - parameters);
  made.cvrmse_fraction = std::sqrt(variance) / spread.mean();
  made.nmbe_fraction = -bias / (n * spread.mean());
  made.r_squared = spread.variance() > 0 ? 1 - fit->squares / (spread.variance() * (n - 1)) : 0;
  made.lag_one = lag_one_correlation(errors);
  made.effective_days = effective_count(n, made.lag_one);
  for (const MeterDay& day : reporting) {
    made.predicted += made.model.day(day);
    made.measured += day.energy;
  }
  if (!(made.predicted > Joules(0)))
    return fail(ErrorCode::failed, "the baseline predicts no use in the reporting time");
  // Both sums scatter more where errors come in runs: by n / n_effective.
  const double widened = variance * n / made.effective_days;
  const double sd =
      std::sqrt(widened * (doubt_of_sum(*fit, baseline, reporting) + static_cast<double>(reporting.size())));
  const double free = std::max(made.effective_days - parameters, 1.0);
  const double half = student_t(options.level, free) * sd;
  const double avoided = (made.predicted - made.measured).value();
  made.avoided_j = {avoided, avoided - half, avoided + half, options.level};
  const double whole = made.predicted.value();
  made.saved_fraction = {avoided / whole, (avoided - half) / whole, (avoided + half) / whole, options.level};
  disqualify(made, baseline, reporting, student_t(kUncertaintyLevel, free) * sd / whole);
  disqualify_meter(made, baseline, reporting, Joules(spread.mean()));
  return made;
}

}  // namespace flyball::facility
