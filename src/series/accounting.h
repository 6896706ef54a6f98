#pragma once
// The one place where energy becomes money and carbon.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "core/reading.h"
#include "core/result_types.h"
#include "series/counter.h"
#include "series/integrate.h"

namespace flyball::series {

/// A rate per kWh that holds from each instant until the next. Instants are UTC: an hour of a local tariff is given by
/// its stamp with the zone's offset, so that the days of 23 and 25 hours need no rule here.
class RateSeries {
 public:
  struct Step {
    WallTime from;
    double per_kwh = 0;
  };
  RateSeries() = default;
  explicit RateSeries(double constant) : constant_(constant) {}
  /// Steps in order of time; refused when two share an instant or one runs backwards, for then it is not known which
  /// hour of a changed clock is meant. The last one holds for as long as the one before it.
  static Result<RateSeries> of(std::vector<Step> steps);
  /// CSV of `time,per_kwh` with a header and RFC 3339 stamps; a stamp without zone is refused.
  static Result<RateSeries> parse_csv(std::string_view text);

  /// Empty where the series does not reach.
  std::optional<double> at(WallTime t) const;
  /// Instants inside (start, stop) at which the rate changes.
  std::vector<WallTime> changes(Interval interval) const;

 private:
  double constant_ = 0;
  std::vector<Step> steps_;
  WallTime end_;
};

struct Tariff {
  RateSeries price;     ///< money per kWh
  RateSeries carbon_g;  ///< gCO2e per kWh
};

struct AccountOptions {
  Scope scope = Scope::unknown;
  std::string signal = "power_average";  ///< for the name of the method
  double tokens = 0;
  GapRule gap;
};

/// Energy of one series with what it costs. Refused when the tariff does not cover the interval.
Result<Account> account_power(const Samples& power, Interval interval, const Tariff& tariff,
                              const AccountOptions& options = {});
/// A declared constant draw over an interval, such as switches nobody meters.
Result<Account> account_constant(Watts power, Interval interval, const Tariff& tariff,
                                 const AccountOptions& options = {});
Result<Account> account_counter(std::span<const Point> counter, Interval interval, const Tariff& tariff,
                                const CounterOptions& counter_options, const AccountOptions& options = {});

/// Accounts of parts that ran side by side over the same time (nodes of a job): energy, money and carbon add, tokens
/// are the job's own and are taken from `tokens`, coverage is the mean. Refused when scopes differ: a node's energy
/// already holds its boards'.
Result<Account> add_side_by_side(std::span<const Account> parts, double tokens = 0);

/// From the two fractions of a run against the same time at the limits found: `saved` = 1 − (E/tokens)/(E₀/tokens₀),
/// `loss` = 1 − tokens/tokens₀. Then the power found was P₀ = P / ((1 − saved)(1 − loss)); a node draws O beside its
/// boards whatever they do, so that of its energy per token 1 − (P + O)/(P₀ + O)/(1 − loss) is saved, and a feed that
/// is filled up with more such nodes makes 1/(1 − that) times the tokens. Money is the energy of the tokens made, less
/// the GPU-hours lost. An account of a node's meter already holds O.
Worth worth(const Estimate& saved, const Estimate& loss, const Account& run, const Rates& rates, double gpus);

}  // namespace flyball::series
