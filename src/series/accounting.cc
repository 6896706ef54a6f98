#include "series/accounting.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace flyball::series {

Result<RateSeries> RateSeries::of(std::vector<Step> steps) {
  constexpr std::size_t kMostSteps = 1'000'000;  // a century of hours
  if (steps.size() < 2 || steps.size() > kMostSteps)
    return fail(ErrorCode::input, fmt::format("a rate series of {} steps; 2 to {} are taken", steps.size(), kMostSteps),
                {}, "give a constant rate as a number");
  for (std::size_t i = 1; i < steps.size(); ++i)
    if (steps[i].from <= steps[i - 1].from)
      return fail(ErrorCode::input,
                  fmt::format("rate step {} at {} does not come after {}", i + 1, format_rfc3339(steps[i].from),
                              format_rfc3339(steps[i - 1].from)),
                  {}, "sort the steps; on the day the clocks go back give each hour its own zone offset");
  RateSeries out;
  out.end_ = steps.back().from + (steps.back().from - steps[steps.size() - 2].from);
  out.steps_ = std::move(steps);
  return out;
}

Result<RateSeries> RateSeries::parse_csv(std::string_view text) {
  std::vector<Step> steps;
  std::size_t line = 0;
  for (std::string_view row : split(text, '\n')) {
    ++line;
    row = trim(row);
    if (row.empty() || line == 1) continue;
    const auto cells = split(row, ',');
    const std::string where = fmt::format("line {}", line);
    if (cells.size() != 2) return fail(ErrorCode::input, fmt::format("{} cells, 2 expected", cells.size()), where);
    auto at = parse_rfc3339(trim(cells[0]));
    if (!at) return fail(ErrorCode::input, at.error().what, where, "stamps need a zone: 2026-10-25T02:00:00+01:00");
    auto rate = parse_double(trim(cells[1]));
    if (!rate) return fail(ErrorCode::input, rate.error().what, where);
    steps.push_back({*at, *rate});
  }
  return of(std::move(steps));
}

std::optional<double> RateSeries::at(WallTime t) const {
  if (steps_.empty()) return constant_;
  if (t < steps_.front().from || t >= end_) return {};
  const auto next =
      std::upper_bound(steps_.begin(), steps_.end(), t, [](WallTime x, const Step& s) { return x < s.from; });
  return (next - 1)->per_kwh;
}

std::vector<WallTime> RateSeries::changes(Interval interval) const {
  std::vector<WallTime> out;
  for (const Step& s : steps_)
    if (s.from > interval.start && s.from < interval.stop) out.push_back(s.from);
  if (!steps_.empty() && end_ > interval.start && end_ < interval.stop) out.push_back(end_);
  return out;
}

namespace {

// Energy in each piece between changes of any rate, priced; the pieces' energy comes from `energy_in`.
template <class EnergyIn>
Result<> price(Account& account, Interval interval, const Tariff& tariff, EnergyIn energy_in) {
  std::vector<WallTime> cuts = tariff.price.changes(interval);
  for (WallTime t : tariff.carbon_g.changes(interval)) cuts.push_back(t);
  cuts.push_back(interval.start);
  cuts.push_back(interval.stop);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const auto money = tariff.price.at(cuts[i]), carbon = tariff.carbon_g.at(cuts[i]);
    if (!money || !carbon)
      return fail(ErrorCode::input,
                  fmt::format("no {} is given for {}", money ? "carbon intensity" : "price", format_rfc3339(cuts[i])),
                  {}, "extend the rate series over the whole run");
    const double kwh = energy_in(Interval{cuts[i], cuts[i + 1]}).value() / kJoulesPerKilowattHour;
    account.cost += kwh * *money;
    account.carbon_g += kwh * *carbon;
  }
  return {};
}

Result<> check(Interval interval) {
  if (interval.start < interval.stop) return {};
  return fail(ErrorCode::input, fmt::format("the interval from {} to {} is empty", format_rfc3339(interval.start),
                                            format_rfc3339(interval.stop)));
}

Account begin(Interval interval, const AccountOptions& options, std::string method) {
  Account a;
  a.duration = interval.length();
  a.scope = options.scope;
  a.tokens = options.tokens;
  a.method = std::move(method);
  return a;
}

}  // namespace

Result<Account> account_power(const Samples& power, Interval interval, const Tariff& tariff,
                              const AccountOptions& options) {
  FLYBALL_TRY(check(interval));
  Account a = begin(interval, options, "trapezoid of " + options.signal);
  const Integral whole = integrate_power(power, interval, options.gap);
  a.energy = whole.energy;
  a.coverage_fraction = whole.coverage_fraction();
  Joules inside;
  const Cumulative cumulative(power, options.gap);
  std::size_t hint = 0;
  FLYBALL_TRY(price(a, interval, tariff, [&](Interval piece) {
    const Joules e(cumulative.between(power.seconds_of(piece.start), power.seconds_of(piece.stop), hint).energy_j);
    inside += e;
    return e;
  }));
  // The ends that are held for less than a period are priced like the rest.
  if (inside > Joules(0)) {
    a.cost *= a.energy / inside;
    a.carbon_g *= a.energy / inside;
  }
  return a;
}

Result<Account> account_constant(Watts power, Interval interval, const Tariff& tariff, const AccountOptions& options) {
  FLYBALL_TRY(check(interval));
  Account a = begin(interval, options, "declared constant " + format(power));
  a.energy = power * interval.length();
  FLYBALL_TRY(price(a, interval, tariff, [&](Interval piece) { return power * piece.length(); }));
  return a;
}

Result<Account> account_counter(std::span<const Point> counter, Interval interval, const Tariff& tariff,
                                const CounterOptions& counter_options, const AccountOptions& options) {
  FLYBALL_TRY(check(interval));
  Account a = begin(interval, options, "counter");
  const CounterIntegral whole = integrate_counter(counter, counter_options, interval);
  a.energy = whole.energy;
  a.coverage_fraction = whole.coverage_fraction();
  FLYBALL_TRY(price(a, interval, tariff,
                    [&](Interval piece) { return integrate_counter(counter, counter_options, piece).energy; }));
  return a;
}

Result<Account> add_side_by_side(std::span<const Account> parts, double tokens) {
  Account sum;
  sum.tokens = tokens;
  if (parts.empty()) return sum;
  sum.scope = parts[0].scope;
  sum.method = parts[0].method;
  sum.coverage_fraction = 0;
  for (const Account& p : parts) {
    if (p.scope != sum.scope)
      return fail(ErrorCode::input, fmt::format("energies of scope {} and {} cannot be added: one contains the other",
                                                to_string(sum.scope), to_string(p.scope)));
    sum.energy += p.energy;
    sum.cost += p.cost;
    sum.carbon_g += p.carbon_g;
    sum.duration = std::max(sum.duration, p.duration);
    sum.coverage_fraction += p.coverage_fraction / static_cast<double>(parts.size());
    if (p.method != sum.method) sum.method = "mixed";
  }
  sum.coverage_fraction = std::min(1.0, sum.coverage_fraction);  // the rounding of the division
  return sum;
}

Worth worth(const Estimate& saved, const Estimate& loss, const Account& run, const Rates& rates, double gpus) {
  const bool of_nodes = run.scope == Scope::node_ac || run.scope == Scope::node_dc;
  const Watts other = of_nodes ? Watts(0) : rates.other_power_per_gpu * gpus;
  const Watts power = run.mean_power();
  const double kwh = run.energy.value() / kJoulesPerKilowattHour;
  const double gpu_hours = run.duration.value() / 3600 * gpus;
  // f(saved, lost) rises with the one and falls with the other.
  const auto ends = [&](const auto& f) {
    return Estimate{f(saved.value, loss.value), f(saved.low, loss.high), f(saved.high, loss.low),
                    std::min(saved.level, loss.level)};
  };
  const auto before = [&](double s, double l) { return power / ((1 - s) * (1 - l)); };
  const auto node = [&](double s, double l) { return 1 - (power + other) / (before(s, l) + other) / (1 - l); };
  const auto energy = [&](double s, double) { return kwh * s / (1 - s); };
  Worth made;
  // Power falls with what is lost as with what is saved.
  const auto reduction = [](double s, double l) { return 1 - (1 - s) * (1 - l); };
  made.power_reduction_fraction = {reduction(saved.value, loss.value), reduction(saved.low, loss.low),
                                   reduction(saved.high, loss.high), std::min(saved.level, loss.level)};
  made.energy_saved_kwh = ends(energy);
  if (power + other > Watts(0)) {
    made.node_saved_fraction = ends(node);
    made.fixed_feed_gain_fraction = ends([&](double s, double l) { return 1 / (1 - node(s, l)) - 1; });
  }
  if (rates.price_per_kwh > 0) {
    made.net_money = ends(
        [&](double s, double l) { return energy(s, l) * rates.price_per_kwh - l * gpu_hours * rates.gpu_hour_price; });
  }
  if (rates.carbon_g_per_kwh > 0)
    made.carbon_saved_g = ends([&](double s, double l) { return energy(s, l) * rates.carbon_g_per_kwh; });
  return made;
}

}  // namespace flyball::series
