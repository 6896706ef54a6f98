#pragma once
// What a facility draws beside its IT: delivery losses at once, cooling late, by load, weather, set point and running
// chillers, whatever the phase of the job. Load → delivery → cooling; the equations are nobody's plant: steps, knots
// and lags are found in the data. Coefficients drift and are learned as points come. Equations: doc/facility.md.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/stats.h"
#include "base/units.h"
#include "facility/felt.h"
#include "facility/losses.h"
#include "facility/recursive.h"
#include "facility/switches.h"

namespace flyball::facility {

/// Powers are means since the point before, or values at the time; all of one kind.
struct FacilityPoint {
  WallTime at;
  Watts it;                    ///< of the job's share of the facility, or of all
  Watts facility;              ///< IT included: utility + generated + discharged
  std::optional<Celsius> air;  ///< as the cooling feels it (wet bulb); nothing: not known, the mean is taken
  std::optional<Celsius> dry_bulb = {}, set_point = {};
  std::optional<double> chillers_on = {};
  /// On battery, say: foretold, but nothing is learned of it and nothing deviates.
  bool exceptional = false;
};

struct ResponseOptions {
  Watts it_rating;  ///< 0: the greatest load of the training
  /// As a mean's stamp counts (`find_lags` without `means`), for that is how `take` counts.
  Seconds dead_time, first_lag = Seconds(300), second_lag;
  std::optional<StageLoss> stage;  ///< where its two sides are metered: known, and no more to be learned
  Seconds drift_memory = Seconds(3 * 86400.0);
};

/// What the facility is asked for when everything has answered.
struct Conditions {
  Watts it;
  Celsius air;
  std::optional<Celsius> dry_bulb = {}, set_point = {};  ///< nothing: as usual
  std::optional<double> chillers_on = {};                ///< nothing: as usual at that load
};

/// Not for threads.
class ResponseModel {
 public:
  static constexpr std::size_t kMostSwitches = 4;
  /// Finds scales and knots in `train`; learns nothing yet. Refused: fewer than a hundred points, or no load at all.
  static Result<ResponseModel> make(std::span<const FacilityPoint> train, const ResponseOptions& options);

  /// Loads and heats in ratings, the rest from the middle of the training.
  struct Now {
    double load = 0, heat = 0;                         ///< IT; and what it becomes in metered stages
    double fast = 0, felt = 0, slow = 0, slowest = 0;  ///< heat through the lags
    double air = 0, dryness = 0, set_point = 0, chillers = 0;
    double hour = 0, day_share = 1;          ///< 0: no hour of the day, but the mean of one
    std::array<double, kMostSwitches> on{};  ///< what the plant switches by itself
  };
  /// What one time has to do with the coefficients.
  struct Moment {
    WallTime at;
    Now now;
    std::vector<double> x;
  };
  /// What a load becomes in metered stages, both in ratings.
  double heat_of(double load) const { return heat(rating_ * load); }
  Moment moment_of(const Now& now, WallTime at) const { return {at, now, features(now)}; }
  /// Points come in order of time.
  Moment take(const FacilityPoint& point);
  Moment steady(const Conditions& conditions, WallTime at) const;
  /// As `moment` would be had the heat of now been there for long.
  Moment answered(const FacilityPoint& point) const;

  /// As many chillers as carried that heat at the least; as it is where they are not metered.
  Moment fewest_chillers(const Moment& moment) const;
  /// Goes back to before the first point; what is learned stays.
  void rewind();

  /// Facility less heat (`Now::heat`), in ratings.
  AdaptiveRegression::Mixed forecast(const Moment& moment, double noise) const;
  void learn(const Moment& moment, double beside, double noise, const AdaptiveRegression::Mixed* foretold);

  /// Power [W] of a moment; of the difference of two, or any weighted sum of moments (`x` and `heat` added up): linear
  /// in what is learned, so the interval is too.
  Estimate power_w(std::span<const double> x, double heat, WallTime at, double level) const;

  Watts rating() const { return rating_; }
  const ResponseOptions& options() const { return options_; }
  Watts most_it() const { return Watts(most_it_); }
  Celsius air_middle() const { return Celsius(air_.middle); }
  double felt_low() const { return felt_low_; }
  double felt_high() const { return felt_high_; }
  /// At a felt heat, as the training's staging had it; nothing: chillers are not metered.
  std::optional<double> usual_chillers(double felt) const;
  /// Of each coefficient what was known before anything was learned; those that drift come last.
  std::vector<Term> terms() const;
  std::string text() const;

 private:
  struct Scale {
    double middle = 0, spread = 1;
    std::vector<double> knots;  ///< scaled
  };
  explicit ResponseModel(const ResponseOptions& options);
  void find_scales(std::span<const FacilityPoint> train);
  void find_knots(std::span<const FacilityPoint> train);
  void find_switches(std::span<const FacilityPoint> train);
  /// What the switches do next, at a felt heat and air.
  void turn(Now& now);
  void find_staging(std::span<const std::pair<double, double>> felt_and_on);
  std::vector<double> features(const Now& now) const;
  Now outside(const FacilityPoint& point) const;
  double heat(Watts it) const;
  double between(const std::vector<double>& bins, double felt) const;

  ResponseOptions options_;
  Watts rating_;
  double most_it_ = 0;
  Scale felt_scale_, air_;
  double felt_low_ = 0, felt_high_ = 1;
  bool has_dry_ = false, has_set_point_ = false, has_chillers_ = false;
  double dryness_middle_ = 0, set_point_middle_ = 0, chillers_middle_ = 0;
  std::vector<double> staging_, fewest_;  ///< number of chillers, mean and least, by felt heat from low to high
  std::vector<Switch> switches_;
  std::array<bool, kMostSwitches> on_{};
  FeltLoad felt_;
  AdaptiveRegression model_;
};

}  // namespace flyball::facility
