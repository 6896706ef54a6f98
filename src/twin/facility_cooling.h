#pragma once
// How the heat of a building leaves it: air handlers and chilled water, cold plates, economiser, staged chillers,
// towers. Stores of heat in air, pipes and water make it answer late. Equations: doc/twin.md.

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "base/units.h"
#include "twin/facility_effects.h"
#include "twin/facility_parameters.h"
#include "twin/facility_weather.h"

namespace flyball::twin {

struct CoolingLoad {
  double air_w = 0;     ///< heat into the rooms' air but for the air handlers' own
  double liquid_w = 0;  ///< into the cold plates
  std::span<const double> rack_air_w;
};

/// Means over a step, temperatures at its end.
struct CoolingStep {
  double chillers_w = 0, pumps_w = 0, air_fans_w = 0, tower_fans_w = 0;
  double fan_speed = 0, pump_speed = 0;
  double economiser_w = 0;  ///< heat that needs no chiller
  double water_heat_w = 0;  ///< taken out of the chilled water
  double rejected_w = 0;
  std::uint32_t chillers_on = 0;
  bool economiser_open = false;
  double set_point_c = 0, water_supply_c = 0, water_back_c = 0, air_supply_c = 0, air_back_c = 0, tower_water_c = 0;
  std::vector<double> inlet_c;  ///< of each rack
};

class Cooling {
 public:
  Cooling(const FacilityParameters& parameters, Random random);

  /// Everything as it is after hours of this load and weather.
  void settle(const CoolingLoad& load, const WeatherSample& air, const FacilityEffects& effects);
  const CoolingStep& step(const CoolingLoad& load, const WeatherSample& air, const FacilityEffects& effects);
  const CoolingStep& now() const { return now_; }
  /// Heat in air, pipes, water and plates, against 0 °C.
  double stored_j() const;
  double liquid_supply_c() const;

 private:
  struct Flows;
  void air_side(const CoolingLoad& load, const FacilityEffects& effects, Flows& flows);
  void inlets(const CoolingLoad& load, const FacilityEffects& effects);
  void water_side(const CoolingLoad& load, const WeatherSample& air, const FacilityEffects& effects, Flows& flows);
  void economiser(const WeatherSample& air, const FacilityEffects& effects, double approach);
  void stage(double wanted_w, const FacilityEffects& effects);
  double chiller_power_w(double heat_w, const FacilityEffects& effects) const;
  void towers(const WeatherSample& air, const FacilityEffects& effects, double heat_w);
  double full_approach(const WeatherSample& air, const FacilityEffects& effects, double heat_w) const;

  const CoolingParameters& p_;
  double dt_s_;
  double design_liquid_w_;
  std::vector<double> rack_share_, rack_recirculation_, chiller_spread_;
  std::vector<double> pipe_w_;  ///< heat on its way from the coils to the plant, a ring
  std::size_t pipe_at_ = 0;
  double air_back_c_, water_back_c_, tower_water_c_;
  double fan_ = 0, flow_ = 0;  ///< fractions of design
  double liquid_j_ = 0;
  double beyond_s_ = 0, below_s_ = 0, since_change_s_ = 1e9, since_changeover_s_ = 1e9;
  double tower_heat_w_ = 0;
  std::uint32_t running_ = 0;
  std::uint32_t lead_ = 0;
  bool open_ = false;
  CoolingStep now_;
};

}  // namespace flyball::twin
