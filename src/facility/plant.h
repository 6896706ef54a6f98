#pragma once
// What a plant of equal units (chillers, say) draws for the load that it carries, the weather and the hour of the day;
// learned from hours that ended a stated time ago. Equations: doc/facility.md.

#include <array>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "facility/conformal.h"
#include "facility/recursive.h"

namespace flyball::facility {

/// Units whose state is known one by one; more are refused where they are read.
constexpr std::size_t kMostUnits = 16;

struct PlantSample {
  WallTime at;
  Watts load;                  ///< carried: heat, or IT power
  Watts power;                 ///< drawn
  std::uint32_t units_on = 0;  ///< bit i: unit i runs
  std::optional<Celsius> air;  ///< outdoor wet bulb, as the cooling feels it (`weather.h`)

  bool operator==(const PlantSample&) const = default;
};

/// One stretch of samples, all of them in one interval of the clock.
struct PlantInterval {
  WallTime start;
  std::vector<PlantSample> samples;
  std::optional<PlantSample> before;  ///< the sample just before, where there was one
  std::optional<Watts> load_before;   ///< mean load of the interval just before

  Watts mean_power() const;
  Watts mean_load() const;
};

/// Why an interval is not counted.
struct IntervalRule {
  Seconds length = Seconds(3600);
  std::size_t fewest_samples = 4;
  Watts least_load;  ///< below: apart, the plant only idles
};

struct Intervals {
  std::vector<PlantInterval> counted;
  std::vector<PlantInterval> idle;  ///< mean load below the least
  std::size_t too_few_samples = 0;
  std::size_t without_weather = 0;
};

/// Whole intervals since 1970; samples in order of time.
Intervals intervals_of(std::span<const PlantSample> samples, const IntervalRule& rule);

struct PlantOptions {
  /// An interval is foretold from what ended at least so long before its start.
  Seconds delay = Seconds(24 * 3600);
  Seconds length = Seconds(3600);
  double level = 0.9;  ///< of the intervals
};

struct PlantForecast {
  Watts power;
  Watts low, high;
  AdaptiveRegression::Mixed mixed;
};

class PlantBaseline {
 public:
  /// Learns scales, noise and coefficients. Refused, with the reason, where the intervals cannot tell: fewer than two
  /// days, or a load that does not vary.
  static Result<PlantBaseline> fit(std::span<const PlantInterval> train, const PlantOptions& options);

  /// Learns of what was observed all that ended `delay` before the interval's start, then foretells it. In order of
  /// time.
  PlantForecast foretell(const PlantInterval& interval);
  /// What it turned out to be; learned when its time comes.
  void observe(const PlantInterval& interval, const PlantForecast& foretold);
  /// Learns the rest of what was observed.
  void settle();
  /// For a stretch that begins before the end of what was learned, a month of the year before, say: learns all, and
  /// goes on at `start` as if the time between had passed the other way round.
  void begin_again(WallTime start);
  /// With what is learned now.
  PlantForecast forecast(const PlantInterval& interval) const;

  struct Coefficient {
    std::string_view term;
    Watts value, sd;
  };
  /// Of the steady part, about the middle of load and air.
  std::vector<Coefficient> coefficients() const;
  /// All that is known, as text: the same intervals in the same order make the same text, to the last bit.
  std::string text() const;
  Watts load_middle() const { return Watts(load_.middle); }  ///< of one unit
  Watts load_spread() const { return Watts(load_.spread); }
  Celsius air_middle() const { return Celsius(air_.middle); }
  Celsius air_spread() const { return Celsius(air_.spread); }
  /// Share of the three memories (`AdaptiveRegression`).
  std::array<double, AdaptiveRegression::kDriftFactors.size()> memory_weights() const { return model_.weights(); }

 private:
  static constexpr std::size_t kNoiseKnots = 4;
  struct Scale {
    double middle = 0, spread = 1;
    double low = 0, high = 0;  ///< the range seen, scaled
  };
  struct Pending {
    PlantInterval interval;
    PlantForecast foretold;
  };
  explicit PlantBaseline(const PlantOptions& options);
  Result<> find_scales(std::span<const PlantInterval> train);
  void find_noise(std::span<const PlantInterval> train);
  /// Foretells and observes all of `train` from nothing; |error| in sd of what came after the first week.
  std::vector<double> run_through(std::span<const PlantInterval> train);
  void learn(const Pending& pending);
  std::vector<double> features(const PlantInterval& interval) const;
  double noise(const PlantInterval& interval) const;

  PlantOptions options_;
  Scale load_, air_;                                               ///< of one unit's load [W], of the air [°C]
  Watts typical_;                                                  ///< mean power
  double rough_level_ = 0, rough_slope_ = 0;                       ///< power [W] by load [W], for the size of the noise
  std::array<double, kNoiseKnots> noise_at_{}, noise_fraction_{};  ///< by load [W]
  AdaptiveRegression model_;
  AdaptiveInterval interval_;
  std::deque<Pending> pending_;
  WallTime last_;  ///< start of the interval learned last
  bool balancing_ = false;
  double owed_days_ = 0;  ///< energy foretold too low so far, in days of typical power
  WallTime owed_at_;
};

/// SHA-256 of all that the intervals hold.
std::string hash_of(std::span<const PlantInterval> intervals);

/// Of each interval in turn, and each is observed then; `baseline` keeps what it learned.
std::vector<PlantForecast> foretell_all(PlantBaseline& baseline, std::span<const PlantInterval> intervals);

}  // namespace flyball::facility
