#include "facility/pue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

namespace flyball::facility {
namespace {

constexpr double kMostPue = 4;  // above, a scale is as likely as a facility

std::optional<double> ratio(const EnergyInterval& utility, const EnergyInterval& it) {
  if (!utility.utility || !it.it || !(*it.it > Joules(0))) return std::nullopt;
  const Joules none;
  return (*utility.utility + utility.generated.value_or(none) + utility.discharged.value_or(none) -
          utility.charged.value_or(none)) /
         *it.it;
}

double sum_in_quadrature(const PueOptions& options) {
  return std::hypot(options.utility_uncertainty_fraction, options.it_uncertainty_fraction);
}

bool below_one(double pue, const PueOptions& options) {
  return pue * (1 + normal_quantile((1 + options.level) / 2) * sum_in_quadrature(options)) < 1;
}

/// Share of the intervals below 1 if the utility's stamps were `shift` intervals later; 1 where too few are left.
double share_below(std::span<const EnergyInterval> intervals, std::ptrdiff_t shift, double factor,
                   const PueOptions& options) {
  std::size_t below = 0, all = 0;
  const auto size = static_cast<std::ptrdiff_t>(intervals.size());
  for (std::ptrdiff_t i = std::max<std::ptrdiff_t>(0, -shift); i < size && i + shift < size; ++i) {
    const auto pue = ratio(intervals[static_cast<std::size_t>(i + shift)], intervals[static_cast<std::size_t>(i)]);
    if (!pue) continue;
    ++all;
    if (below_one(*pue * factor, options) || *pue * factor > kMostPue) ++below;
  }
  return 2 * all < intervals.size() ? 1 : static_cast<double>(below) / static_cast<double>(all);
}

struct Diagnosis {
  std::string code, text;
};

std::optional<Diagnosis> by_clocks(std::span<const EnergyInterval> intervals, double now, const PueOptions& options) {
  // A day on either side: wrong zones and summer times.
  const double length = intervals.front().length.value();
  const auto most =
      static_cast<std::ptrdiff_t>(std::min(86400 / std::max(length, 1.0), static_cast<double>(intervals.size()) / 2));
  constexpr double kMended = 0.1;  // of what is wrong now
  for (std::ptrdiff_t by = 1; by <= most; ++by)
    for (const std::ptrdiff_t shift : {by, -by})
      if (share_below(intervals, shift, 1, options) < kMended * now)
        return Diagnosis{
            "clocks", fmt::format("the utility's and the IT meters' clocks differ by about {}: with the "
                                  "utility's readings moved {} nothing is below 1; correct the stamps",
                                  format(Seconds(length * static_cast<double>(by))), shift > 0 ? "earlier" : "later")};
  return std::nullopt;
}

std::optional<Diagnosis> by_scale(std::span<const EnergyInterval> intervals, const PueOptions& options) {
  static constexpr std::array<std::pair<double, const char*>, 8> kScales = {
      {{1.7320508, "√3, a line voltage taken for a phase voltage"},
       {2, "2, one of two feeds"},
       {3, "3, one of three phases"},
       {10, "10"},
       {100, "100"},
       {1000, "1,000, kW taken for W"},
       {3600, "3,600, Wh taken for J"},
       {1e6, "1,000,000"}}};
  // A usual PUE upside down.
  constexpr double kUsualPue = 2;
  const auto exchanged = [&](const EnergyInterval& interval) {
    const auto pue = ratio(interval, interval);
    return !pue || (*pue < 1 && *pue * kUsualPue > 1);
  };
  const char* const or_else = std::all_of(intervals.begin(), intervals.end(), exchanged)
                                  ? "; or the two are exchanged, and the IT is the utility"
                                  : "";
  for (const auto& [factor, what] : kScales)
    if (share_below(intervals, 0, factor, options) == 0)
      return Diagnosis{"scale",
                       fmt::format("with the utility's readings times {} all intervals are possible: check the "
                                   "scale of both meters, and that all feeds are counted{}",
                                   what, or_else)};
  return std::nullopt;
}

Diagnosis diagnose(std::span<const EnergyInterval> intervals, double share, const PueOptions& options) {
  const auto clocks = by_clocks(intervals, share, options);
  const bool storage =
      std::any_of(intervals.begin(), intervals.end(), [](const EnergyInterval& i) { return i.discharged.has_value(); });
  const bool generation =
      std::any_of(intervals.begin(), intervals.end(), [](const EnergyInterval& i) { return i.generated.has_value(); });
  // What comes and goes is fed by something; a clock explains it only if it explains all of it.
  constexpr double kComesAndGoes = 0.5;
  if ((!storage || !generation) && share < kComesAndGoes && !clocks)
    return {"storage_or_generation",
            fmt::format("{} of the intervals are below 1, and {} not metered: meter it, or give its readings; the "
                        "facility was fed by more than the utility",
                        format_percent(share, 0),
                        storage      ? "on-site generation is"
                        : generation ? "storage is"
                                     : "storage and on-site generation are")};
  if (clocks) return *clocks;
  if (auto scale = by_scale(intervals, options)) return *scale;
  return {"meters", fmt::format("{} of the intervals are below 1, and neither storage, clocks nor a scale explains it: "
                                "compare both meters with a third, and check which loads each of them sees",
                                format_percent(share, 0))};
}

}  // namespace

PueReport pue_over_time(std::span<const EnergyInterval> intervals, const PueOptions& options) {
  PueReport report;
  const double relative = sum_in_quadrature(options);
  const double z = normal_quantile((1 + options.level) / 2);
  std::size_t numbers = 0, below = 0, above = 0;
  for (const EnergyInterval& interval : intervals) {
    PueInterval made{interval.start, interval.length, std::nullopt, "no_reading"};
    if (const auto pue = ratio(interval, interval)) {
      ++numbers;
      made.code.clear();
      above += *pue > kMostPue ? 1 : 0;
      if (below_one(*pue, options)) {
        ++below;
        made.code = "below_one";
      } else {
        made.pue = Estimate{*pue, *pue * (1 - z * relative), *pue * (1 + z * relative), options.level};
      }
    }
    report.intervals.push_back(std::move(made));
  }
  const auto share = [&](std::size_t count) { return static_cast<double>(count) / static_cast<double>(numbers); };
  constexpr double kMostly = 0.5;  // a building that idles may well draw a few times its IT
  if (above > 0 && share(above) > kMostly) {
    report.code = "scale";
    report.diagnosis = fmt::format(
        "the facility draws more than {:g} times its IT in {} of the intervals: check the "
        "scale of both meters (kW taken for W?), and that all of the IT is counted",
        kMostPue, format_percent(share(above), 0));
    for (PueInterval& made : report.intervals)
      if (made.pue) made.code = report.code, made.pue.reset();
  } else if (below > 0) {
    const Diagnosis diagnosis = diagnose(intervals, share(below), options);
    report.code = diagnosis.code;
    report.diagnosis = diagnosis.text;
    // A wrong clock or scale spoils the intervals that look right as well.
    const bool all = report.code == "clocks" || report.code == "scale";
    for (PueInterval& made : report.intervals) {
      if (made.code == "below_one" || (all && made.pue)) {
        made.code = report.code;
        made.pue.reset();
      }
    }
  }
  Joules facility, it;
  Seconds time, seen;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    time += intervals[i].length;
    if (!report.intervals[i].pue) continue;
    seen += intervals[i].length;
    it += *intervals[i].it;
    facility += *intervals[i].it * report.intervals[i].pue->value;
  }
  report.coverage_fraction = time > Seconds(0) ? seen / time : 0;
  if (it > Joules(0) && report.code != "meters") {
    // Meters err alike all the time: the interval does not narrow with their number.
    const double pue = facility / it;
    report.overall = Estimate{pue, pue * (1 - z * relative), pue * (1 + z * relative), options.level};
  }
  return report;
}

}  // namespace flyball::facility
