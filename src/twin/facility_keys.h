#pragma once
// Keys, sources and ranges of the building's parameters, in the order in which they are listed. For
// facility_parameters.cc alone.

#include "twin/facility_parameters.h"

namespace flyball::twin {

template <class P, class Visit>
void visit_it(P& p, Visit visit) {
  visit("facility.it.gpus", p.gpus, "chosen", 8, 100000);
  visit("facility.it.gpus_per_rack", p.gpus_per_rack, "chosen", 8, 1024);
  visit("facility.it.idle_gpu_power", p.idle_gpu_power, "board", 0, 1000);
  visit("facility.it.other_power", p.other_power, "gpt3", 0, 5000);
  visit("facility.it.other_idle_fraction", p.other_idle_fraction, "chosen", 0, 1);
  visit("facility.it.gpu_power_scale", p.gpu_power_scale, "chosen", 0.2, 2);
  visit("facility.it.network_power", p.network_power, "chosen", 0, 1e+08);
  visit("facility.it.liquid_racks_fraction", p.liquid_racks_fraction, "chosen", 0, 1);
  visit("facility.it.liquid_capture_fraction", p.liquid_capture_fraction, "tc99", 0, 1);
  visit("facility.it.inlet_fan_gain", p.inlet_fan_gain, "tc99", 0, 0.2);
  visit("facility.it.inlet_fan_start", p.inlet_fan_start, "tc99", 0, 60);
  visit("facility.it.leakage_per_kelvin", p.leakage_per_kelvin, "chosen", 0, 10);
  visit("facility.it.gpu_thermal_resistance", p.gpu_thermal_resistance, "chosen", 0, 1);
  visit("facility.it.gpu_clock", p.gpu_clock, "chosen", 1e+08, 1e+10);
  visit("facility.it.step_noise_sd", p.step_noise_sd, "measures", 0, 0.1);
  visit("facility.it.drift_sd", p.drift_sd, "measures", 0, 0.1);
  visit("facility.it.drift_time", p.drift_time, "measures", 60, 1e+07);
  visit("facility.it.rack_spread_sd", p.rack_spread_sd, "mlperf", 0, 0.1);
  visit("facility.it.rack_noise_sd", p.rack_noise_sd, "gpt3", 0, 0.1);
  visit("facility.it.rack_noise_time", p.rack_noise_time, "gpt3", 1, 1e+06);
}

template <class P, class Visit>
void visit_delivery(P& p, Visit visit) {
  visit("facility.delivery.supply_idle_fraction", p.supply_idle_fraction, "titanium", 0, 0.2);
  visit("facility.delivery.supply_proportional_fraction", p.supply_proportional_fraction, "titanium", 0, 0.2);
  visit("facility.delivery.supply_square_fraction", p.supply_square_fraction, "titanium", 0, 0.2);
  visit("facility.delivery.supply_rating", p.supply_rating, "chosen", 100, 20000);
  visit("facility.delivery.pdu_rating", p.pdu_rating, "chosen", 1000, 1e+09);
  visit("facility.delivery.pdu_idle_fraction", p.pdu_idle_fraction, "ashrae", 0, 0.2);
  visit("facility.delivery.pdu_square_fraction", p.pdu_square_fraction, "chosen", 0, 0.2);
  visit("facility.delivery.ups_strings", p.ups_strings, "chosen", 1, 16);
  visit("facility.delivery.ups_rating", p.ups_rating, "chosen", 1000, 1e+09);
  visit("facility.delivery.ups_eco", p.ups_eco, "chosen", 0, 1);
  visit("facility.delivery.ups_idle_fraction", p.ups_idle_fraction, "ups", 0, 0.2);
  visit("facility.delivery.ups_proportional_fraction", p.ups_proportional_fraction, "ups", 0, 0.2);
  visit("facility.delivery.ups_square_fraction", p.ups_square_fraction, "ups", 0, 0.2);
  visit("facility.delivery.eco_idle_fraction", p.eco_idle_fraction, "ups", 0, 0.2);
  visit("facility.delivery.eco_proportional_fraction", p.eco_proportional_fraction, "ups", 0, 0.2);
  visit("facility.delivery.eco_square_fraction", p.eco_square_fraction, "ups", 0, 0.2);
  visit("facility.delivery.transformer_rating", p.transformer_rating, "chosen", 1000, 1e+09);
  visit("facility.delivery.transformer_idle_fraction", p.transformer_idle_fraction, "doe", 0, 0.2);
  visit("facility.delivery.transformer_square_fraction", p.transformer_square_fraction, "doe", 0, 0.2);
  visit("facility.delivery.other", p.other, "chosen", 0, 1e+07);
  visit("facility.delivery.voltage", p.voltage, "chosen", 100, 1000);
  visit("facility.delivery.battery_charge", p.battery_charge, "chosen", 0, 1e+07);
}

template <class P, class Visit>
void visit_cooling(P& p, Visit visit) {
  visit("facility.cooling.coil_approach", p.coil_approach, "ashrae", 0, 20);
  visit("facility.cooling.air_rise", p.air_rise, "tc99", 2, 40);
  visit("facility.cooling.fan_power", p.fan_power, "ashrae", 0, 1e+09);
  visit("facility.cooling.air_rating", p.air_rating, "chosen", 1000, 1e+09);
  visit("facility.cooling.fan_band", p.fan_band, "chosen", 1, 20);
  visit("facility.cooling.fan_minimum_fraction", p.fan_minimum_fraction, "ashrae", 0.05, 1);
  visit("facility.cooling.fan_time", p.fan_time, "chosen", 10, 86400);
  visit("facility.cooling.air_capacity", p.air_capacity, "chosen", 10000, 1e+12);
  visit("facility.cooling.recirculation_fraction", p.recirculation_fraction, "tc99", 0, 0.8);
  visit("facility.cooling.recirculation_sd", p.recirculation_sd, "chosen", 0, 0.3);
  visit("facility.cooling.set_point", p.set_point, "tc99", 4, 35);
  visit("facility.cooling.water_rise", p.water_rise, "ashrae", 2, 20);
  visit("facility.cooling.water_capacity", p.water_capacity, "chosen", 10000, 1e+12);
  visit("facility.cooling.dead_time", p.dead_time, "chosen", 0, 3600);
  visit("facility.cooling.secondary_pump_power", p.secondary_pump_power, "ashrae", 0, 1e+09);
  visit("facility.cooling.pump_minimum_fraction", p.pump_minimum_fraction, "chosen", 0.05, 1);
  visit("facility.cooling.pump_time", p.pump_time, "chosen", 10, 86400);
  visit("facility.cooling.primary_pump_power", p.primary_pump_power, "chosen", 0, 1e+09);
  visit("facility.cooling.condenser_pump_power", p.condenser_pump_power, "ashrae", 0, 1e+09);
  visit("facility.cooling.liquid_pump_power", p.liquid_pump_power, "chosen", 0, 1e+09);
  visit("facility.cooling.liquid_pump_minimum_fraction", p.liquid_pump_minimum_fraction, "chosen", 0.05, 1);
  visit("facility.cooling.liquid_time", p.liquid_time, "chosen", 10, 86400);
  visit("facility.cooling.chillers", p.chillers, "chosen", 1, 16);
  visit("facility.cooling.chiller_rating", p.chiller_rating, "chosen", 1000, 1e+09);
  visit("facility.cooling.chiller_entropy", p.chiller_entropy, "gordon", 0, 0.5);
  visit("facility.cooling.chiller_leak", p.chiller_leak, "gordon", 0, 1);
  visit("facility.cooling.chiller_resistance", p.chiller_resistance, "gordon", 0, 0.3);
  visit("facility.cooling.stage_up_fraction", p.stage_up_fraction, "chosen", 0.3, 1.2);
  visit("facility.cooling.stage_down_fraction", p.stage_down_fraction, "chosen", 0.1, 1.1);
  visit("facility.cooling.stage_time", p.stage_time, "chosen", 0, 86400);
  visit("facility.cooling.chiller_spread_sd", p.chiller_spread_sd, "chosen", 0, 0.1);
  visit("facility.cooling.minimum_run", p.minimum_run, "chosen", 0, 86400);
  visit("facility.cooling.minimum_rest", p.minimum_rest, "chosen", 0, 86400);
  visit("facility.cooling.economiser", p.economiser, "chosen", 0, 1);
  visit("facility.cooling.economiser_approach", p.economiser_approach, "ashrae", 0, 10);
  visit("facility.cooling.economiser_hysteresis", p.economiser_hysteresis, "chosen", 0, 10);
  visit("facility.cooling.economiser_time", p.economiser_time, "chosen", 0, 86400);
  visit("facility.cooling.tower_approach", p.tower_approach, "ashrae", 0.5, 20);
  visit("facility.cooling.tower_design_wet_bulb", p.tower_design_wet_bulb, "ashrae", 0, 40);
  visit("facility.cooling.tower_approach_slope", p.tower_approach_slope, "ashrae", 0, 0.2);
  visit("facility.cooling.tower_minimum_water", p.tower_minimum_water, "chosen", 2, 35);
  visit("facility.cooling.tower_rating", p.tower_rating, "chosen", 1000, 1e+09);
  visit("facility.cooling.tower_fan_power", p.tower_fan_power, "ashrae", 0, 1e+09);
  visit("facility.cooling.tower_time", p.tower_time, "chosen", 10, 86400);
}

template <class P, class Visit>
void visit_meters(P& p, Visit visit) {
  visit("facility.meters.class_sd", p.class_sd, "iec", 0, 0.05);
  visit("facility.meters.noise_sd", p.noise_sd, "chosen", 0, 0.1);
  visit("facility.meters.resolution", p.resolution, "chosen", 0, 100000);
  visit("facility.meters.missing_fraction", p.missing_fraction, "chosen", 0, 0.5);
  visit("facility.meters.temperature_bias_sd", p.temperature_bias_sd, "ashrae", 0, 5);
  visit("facility.meters.temperature_noise_sd", p.temperature_noise_sd, "chosen", 0, 5);
  visit("facility.meters.temperature_resolution", p.temperature_resolution, "chosen", 0, 2);
  visit("facility.meters.weather_bias_sd", p.weather_bias_sd, "chosen", 0, 5);
  visit("facility.meters.gpu_gain_sd", p.gpu_gain_sd, "yang24", 0, 0.1);
}

template <class P, class Visit>
void visit_facility(P& p, Visit visit) {
  visit_it(p.it, visit);
  visit_delivery(p.delivery, visit);
  visit_cooling(p.cooling, visit);
  visit_meters(p.meters, visit);
  visit("facility.period", p.period, "measures", 1, 10);
}

}  // namespace flyball::twin
