#pragma once
// Policies side by side on measured curves: the same loop and guard as live, in virtual time, every policy on the same
// seeds, its counterfactual and what hindsight could have done beside it.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stats.h"
#include "core/control.h"
#include "core/result_types.h"
#include "curve/table.h"
#include "evaluate/curve_plant.h"
#include "evaluate/oracle.h"

namespace flyball::evaluate {

struct Options {
  /// As policy::make takes them; `static` alone is the best single limit in hindsight, `oracle` the best mix of two.
  std::vector<std::string> policies;
  Objective objective;
  int seeds = 5;
  std::uint64_t first_seed = 1;
  Noise noise;
  Seconds duration{6 * 3600.0};
  Seconds interval{10};
  Rates rates;           ///< for what a saving is worth
  unsigned threads = 0;  ///< 0 = one a core
  std::function<void(double fraction)> progress;
  std::function<bool()> stop;
};

/// One policy on one curve with one seed, against the same seed with the limit as found. All true, none as observed.
struct Score {
  std::size_t curve = 0;
  std::uint64_t seed = 0;
  double saved_fraction = 0;         ///< 1 − (E/tokens)/(E₀/tokens₀)
  double loss_fraction = 0;          ///< 1 − tokens/tokens₀
  double uncontrolled_fraction = 0;  ///< of the time, at the limit found and with no clock locked
  double looks_fraction = 0;         ///< of the decisions, at the limit found in order to measure
  double power_reduction_fraction = 0, node_saved_fraction = 0, fixed_feed_gain_fraction = 0;  ///< see core's Worth
  std::optional<double> net_money_per_gpu_year;  ///< empty = no price of energy is stated
  /// Decisions until the saving over 5 min, uncontrolled intervals apart, stays at 90 % of the best static limit's or
  /// above; empty = never.
  std::optional<double> decisions_to_target;
  bool target_watched = true;  ///< false: limits were lowered under a lock, of which no curve says anything
  std::uint64_t writes = 0;
};

struct PolicyScores {
  std::string policy;
  bool hindsight = false;     ///< knows what it could not know
  std::vector<Score> scores;  ///< curves × seeds, in this order
};

struct CurveInfo {
  std::string name, network;
  std::string hash;  ///< of a scenario; empty for a curve
  Ideal mix, fixed;  ///< best mix; best static limit on a grid of 25 W
};

struct Evaluation {
  std::vector<CurveInfo> curves;
  std::vector<PolicyScores> policies;
  Options options;
};

Result<Evaluation> evaluate(const std::vector<Subject>& subjects, const Options& options);
/// On the truth curves (Curve::monotone) of the measured ones.
Result<Evaluation> evaluate_curves(const std::vector<curve::MeasuredCurve>& curves, const Options& options);

/// What is said of a policy in one line.
struct Summary {
  std::string policy;
  bool hindsight = false;
  double saved_fraction = 0, loss_fraction = 0;  ///< means over runs
  Estimate pooled_ratio;  ///< Σ saved / Σ best mix's saved; interval by bootstrap over networks
  double worst_loss_fraction = 0;
  std::size_t binding_runs = 0;        ///< where the bound keeps even hindsight from saving more
  double binding_within_fraction = 0;  ///< of those, loss within the bound
  double uncontrolled_fraction = 0, looks_fraction = 0;
  /// To the target; infinite where more than that share never, empty where there is no run to say it of.
  std::optional<double> median_decisions, p90_decisions;
  double writes = 0;                                                                           ///< mean
  double power_reduction_fraction = 0, node_saved_fraction = 0, fixed_feed_gain_fraction = 0;  ///< means; see Worth
  std::optional<double> net_money_per_gpu_year;                                                ///< mean
};
std::vector<Summary> summarize(const Evaluation& evaluation);

/// `policy` against another one, run by run. A policy that lost more than the bound is scored as its mix with the
/// limits found that loses just the bound.
struct Comparison {
  std::string policy, other;
  bool other_hindsight = false;
  double ahead_fraction = 0;          ///< of runs, saved more
  double pooled_ratio = 0;            ///< Σ saved / Σ other's saved
  double clearly_worse_fraction = 0;  ///< of runs, by more than 0.2 point
};
std::vector<Comparison> compare(const Evaluation& evaluation, const std::string& policy);

}  // namespace flyball::evaluate
