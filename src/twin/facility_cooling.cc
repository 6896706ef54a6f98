#include "twin/facility_cooling.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace flyball::twin {

namespace {

constexpr double kKelvin = 273.15;
constexpr double kTowerExponent = 0.7;  // approach falls with air flow to this power; [ashrae] Merkel's number of units
constexpr double kTowerLeastSpeed = 0.15;  // [ashrae]
constexpr double kInletTime = 60;          // s, a rack's own air; chosen
constexpr double kLiquidApproach = 6;      // K, cold plates' water above the towers'; [tc99] W32
constexpr double kLeastLiquid = 22;        // °C, above any dew point in the room; [tc99]
constexpr double kDesignGpu = 900;         // W of a rack per GPU at full load; [gpt3]
constexpr double kNothing = 0.02;          // of a chiller's rating: less is left to the water's own heat
constexpr double kSettleSeconds = 8 * 3600.0;

double cube(double x) { return x * x * x; }
double lagged(double value, double target, double dt_s, Seconds time) {
  return value + (target - value) * (1 - std::exp(-dt_s / time.value()));
}

}  // namespace

/// Of one step.
struct Cooling::Flows {
  double coil_w = 0;      ///< air to water
  double arriving_w = 0;  ///< at the plant, through the pipes
  double liquid_w = 0;    ///< cold plates to towers
  double water_pumps_w = 0, condenser_pumps_w = 0, liquid_pumps_w = 0;
};

Cooling::Cooling(const FacilityParameters& parameters, Random random)
    : p_(parameters.cooling), dt_s_(parameters.period.value()) {
  const FacilityItParameters& it = parameters.it;
  const auto racks = parameters.racks();
  const auto first_liquid =
      static_cast<std::uint64_t>(std::llround(static_cast<double>(racks) * (1 - it.liquid_racks_fraction)));
  // Air goes where the design expects heat.
  double sum = 0;
  for (std::uint64_t r = 0; r < racks; ++r) {
    rack_share_.push_back(r < first_liquid ? 1 : 1 - it.liquid_capture_fraction);
    sum += rack_share_.back();
    rack_recirculation_.push_back(
        std::clamp(p_.recirculation_fraction + p_.recirculation_sd * random.normal(), 0.0, 0.9));
  }
  for (double& share : rack_share_) share = sum > 0 ? share / sum : 1 / static_cast<double>(racks);
  for (std::uint64_t i = 0; i < p_.chillers; ++i) chiller_spread_.push_back(1 + p_.chiller_spread_sd * random.normal());
  pipe_w_.assign(static_cast<std::size_t>(std::llround(p_.dead_time.value() / dt_s_)), 0);
  design_liquid_w_ = it.liquid_racks_fraction * it.liquid_capture_fraction * static_cast<double>(it.gpus) *
                     kDesignGpu;  // W a GPU with all around it
  now_.inlet_c.assign(racks, p_.set_point.value() + p_.coil_approach);
  water_back_c_ = p_.set_point.value() + p_.water_rise / 2;
  air_back_c_ = p_.set_point.value() + p_.coil_approach + p_.air_rise;
  tower_water_c_ = p_.tower_minimum_water.value();
  fan_ = p_.fan_minimum_fraction;
  flow_ = p_.pump_minimum_fraction;
  now_.water_supply_c = p_.set_point.value();
  now_.air_supply_c = now_.water_supply_c + p_.coil_approach;
}

double Cooling::stored_j() const {
  double pipes = 0;
  for (const double watts : pipe_w_) pipes += watts * dt_s_;
  return p_.air_capacity * air_back_c_ + p_.water_capacity * water_back_c_ + pipes + liquid_j_;
}

double Cooling::liquid_supply_c() const { return std::max(kLeastLiquid, tower_water_c_ + kLiquidApproach); }

void Cooling::settle(const CoolingLoad& load, const WeatherSample& air, const FacilityEffects& effects) {
  for (double t = 0; t < kSettleSeconds; t += dt_s_) step(load, air, effects);
}

const CoolingStep& Cooling::step(const CoolingLoad& load, const WeatherSample& air, const FacilityEffects& effects) {
  Flows flows;
  now_.set_point_c = p_.set_point.value() + effects.size(FaultForm::set_point_shift);
  air_side(load, effects, flows);
  inlets(load, effects);
  water_side(load, air, effects, flows);
  return now_;
}

void Cooling::air_side(const CoolingLoad& load, const FacilityEffects& effects, Flows& flows) {
  // Drives follow the rise of the air over the racks; a filter in the way is met with speed, and takes pressure.
  const double rise = air_back_c_ - now_.air_supply_c;
  const double wanted =
      p_.fan_minimum_fraction + (1 - p_.fan_minimum_fraction) * ((rise - p_.air_rise) / p_.fan_band + 0.5);
  fan_ = lagged(fan_, std::clamp(wanted, p_.fan_minimum_fraction, 1.0), dt_s_, p_.fan_time);
  const double filter = 1 + effects.size(FaultForm::fouled_filter);
  const double flow = std::max(fan_, effects.size(FaultForm::fixed_fan));
  now_.fan_speed = std::min(1.0, flow * std::sqrt(filter));
  now_.air_fans_w = p_.fan_power.value() * cube(flow) * filter * (1 + effects.size(FaultForm::worn_fan));

  const double per_kelvin = flow * p_.air_rating.value() / p_.air_rise;
  now_.air_supply_c = now_.water_supply_c + p_.coil_approach;
  flows.coil_w = per_kelvin * std::max(0.0, air_back_c_ - now_.air_supply_c);
  air_back_c_ += (load.air_w + now_.air_fans_w - flows.coil_w) * dt_s_ / p_.air_capacity;
  now_.air_back_c = air_back_c_;

  // Water follows the coils' heat, more of it where the coil is dirty.
  const double coil = 1 + effects.size(FaultForm::fouled_coil);
  const double water = std::clamp(coil * flows.coil_w / p_.air_rating.value(), p_.pump_minimum_fraction, 1.0);
  flow_ = lagged(flow_, water, dt_s_, p_.pump_time);
}

void Cooling::inlets(const CoolingLoad& load, const FacilityEffects& effects) {
  const double per_kelvin = std::max(fan_, effects.size(FaultForm::fixed_fan)) * p_.air_rating.value() / p_.air_rise;
  const double share = 1 - std::exp(-dt_s_ / kInletTime);
  for (std::size_t r = 0; r < now_.inlet_c.size(); ++r) {
    const double rise = load.rack_air_w[r] / (per_kelvin * rack_share_[r]);
    const double taken = rack_recirculation_[r] + effects.recirculation(static_cast<std::uint32_t>(r)) / p_.air_rise;
    now_.inlet_c[r] += share * (now_.air_supply_c + taken * rise - now_.inlet_c[r]);
  }
}

double Cooling::full_approach(const WeatherSample& air, const FacilityEffects& effects, double heat_w) const {
  const double colder = p_.tower_design_wet_bulb.value() - air.wet_bulb.value();
  return p_.tower_approach * heat_w / p_.tower_rating.value() * std::max(0.3, 1 + p_.tower_approach_slope * colder) *
         (1 + effects.size(FaultForm::fouled_tower));
}

void Cooling::economiser(const WeatherSample& air, const FacilityEffects& effects, double approach) {
  since_changeover_s_ += dt_s_;
  const bool allowed = p_.economiser && effects.size(FaultForm::economiser_closed) <= 0;
  const double gain = water_back_c_ - (air.wet_bulb.value() + approach + p_.economiser_approach);
  const bool wanted = allowed && gain > 1 + (open_ ? 0 : p_.economiser_hysteresis);
  if (wanted == open_ || (allowed && since_changeover_s_ < p_.economiser_time.value())) return;
  open_ = wanted;
  since_changeover_s_ = 0;
}

void Cooling::stage(double wanted_w, const FacilityEffects& effects) {
  const double one = p_.chiller_rating.value();
  const auto most = static_cast<std::uint32_t>(p_.chillers);
  since_change_s_ += dt_s_;
  const double up = running_ == 0 ? kNothing * one : p_.stage_up_fraction * one * running_;
  const double down = running_ <= 1 ? kNothing * one : p_.stage_down_fraction * one * (running_ - 1);
  beyond_s_ = wanted_w > up ? beyond_s_ + dt_s_ : 0;
  below_s_ = wanted_w < down ? below_s_ + dt_s_ : 0;
  if (running_ < most && beyond_s_ > p_.stage_time.value() && since_change_s_ >= p_.minimum_rest.value()) {
    ++running_;
    since_change_s_ = beyond_s_ = below_s_ = 0;
  } else if (running_ > 0 && below_s_ > p_.stage_time.value() && since_change_s_ >= p_.minimum_run.value()) {
    --running_;
    since_change_s_ = beyond_s_ = below_s_ = 0;
  }
  const auto extra = static_cast<std::uint32_t>(std::lround(effects.size(FaultForm::extra_chillers)));
  now_.chillers_on = std::min(most, running_ + extra);
  const HarmlessEvent* rotation = effects.event(HarmlessKind::chiller_rotation);
  lead_ = rotation == nullptr ? 0 : rotation->count % most;
}

/// Gordon and Ng, with the three coefficients stated at rating: water of 6.7 °C out and 29.4 °C in.
double Cooling::chiller_power_w(double heat_w, const FacilityEffects& effects) const {
  if (now_.chillers_on == 0) return 0;
  const double rating = p_.chiller_rating.value(), rated_cold = 6.7 + kKelvin;
  const double cold = now_.water_supply_c + kKelvin, warm = std::max(tower_water_c_ + kKelvin, cold + 2);
  const double each = std::max(heat_w / now_.chillers_on, 0.05 * rating);
  const double b1 = p_.chiller_entropy * rating / rated_cold, b2 = p_.chiller_leak * rating;
  const double b3 = p_.chiller_resistance * rated_cold / rating * (1 + effects.size(FaultForm::fouled_condenser));
  const double x = warm * (1 + b1 * cold / each + b2 * (warm - cold) / (warm * each)) / (cold - b3 * each);
  double watts = 0;
  for (std::uint32_t i = 0; i < now_.chillers_on; ++i)
    watts += each * (x - 1) * chiller_spread_[(lead_ + i) % chiller_spread_.size()];
  return watts;
}

void Cooling::towers(const WeatherSample& air, const FacilityEffects& effects, double heat_w) {
  const double full = std::max(0.05, full_approach(air, effects, heat_w));
  const double wet = air.wet_bulb.value();
  const double target = open_ ? std::min(p_.tower_minimum_water.value(), now_.set_point_c - p_.economiser_approach)
                              : p_.tower_minimum_water.value();
  double speed = 1;
  if (target > wet + full) speed = std::max(kTowerLeastSpeed, std::pow(full / (target - wet), 1 / kTowerExponent));
  const double reached = std::max(target, wet + full);
  tower_water_c_ = lagged(tower_water_c_, reached, dt_s_, p_.tower_time);
  now_.tower_fans_w = p_.tower_fan_power.value() * cube(speed);
  now_.tower_water_c = tower_water_c_;
}

void Cooling::water_side(const CoolingLoad& load, const WeatherSample& air, const FacilityEffects& effects,
                         Flows& flows) {
  const double worn = 1 + effects.size(FaultForm::worn_pump);
  now_.pump_speed = std::max(flow_, effects.size(FaultForm::fixed_pump));
  flows.arriving_w = flows.coil_w;
  if (!pipe_w_.empty()) {
    flows.arriving_w = std::exchange(pipe_w_[pipe_at_], flows.coil_w);
    pipe_at_ = (pipe_at_ + 1) % pipe_w_.size();
  }

  economiser(air, effects, full_approach(air, effects, tower_heat_w_));
  // The plant's own loop has one flow, whatever the coils take of it.
  const double per_kelvin = p_.air_rating.value() / p_.water_rise;
  const double wanted = per_kelvin * std::max(0.0, water_back_c_ - now_.set_point_c);
  const double free_w =
      open_ ? std::clamp(per_kelvin * (water_back_c_ - tower_water_c_ - p_.economiser_approach), 0.0, wanted) : 0;
  stage(wanted - free_w, effects);
  const double chilled_w = std::min(wanted - free_w, now_.chillers_on * p_.chiller_rating.value());
  now_.chillers_w = chiller_power_w(chilled_w, effects);
  now_.economiser_w = free_w;
  now_.water_heat_w = free_w + chilled_w;
  now_.economiser_open = open_;

  const double primaries = std::max<double>(now_.chillers_on, open_ ? 1 : 0);
  flows.water_pumps_w =
      (p_.secondary_pump_power.value() * cube(now_.pump_speed) + p_.primary_pump_power.value() * primaries) * worn;
  flows.condenser_pumps_w = p_.condenser_pump_power.value() * std::max<double>(now_.chillers_on, 2) * worn;
  const double leaving = liquid_j_ / p_.liquid_time.value();
  if (design_liquid_w_ > 0) {
    const double speed = std::clamp(leaving / design_liquid_w_, p_.liquid_pump_minimum_fraction, 1.0);
    flows.liquid_pumps_w = p_.liquid_pump_power.value() * cube(speed) * worn;
  }
  now_.pumps_w = flows.water_pumps_w + flows.condenser_pumps_w + flows.liquid_pumps_w;
  flows.liquid_w = leaving;

  water_back_c_ += (flows.arriving_w + flows.water_pumps_w - now_.water_heat_w) * dt_s_ / p_.water_capacity;
  now_.water_back_c = water_back_c_;
  now_.water_supply_c = water_back_c_ - now_.water_heat_w / per_kelvin;
  tower_heat_w_ = now_.water_heat_w + now_.chillers_w + flows.liquid_w + flows.condenser_pumps_w;
  now_.rejected_w = tower_heat_w_;
  towers(air, effects, tower_heat_w_);
  liquid_j_ += (load.liquid_w + flows.liquid_pumps_w - flows.liquid_w) * dt_s_;
}

}  // namespace flyball::twin
