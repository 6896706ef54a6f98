#pragma once
// Everything that can be set about the building, with its source. Each field is a key for `--set`
// ("facility.cooling.set_point=16C").

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "twin/parameters.h"

namespace flyball::twin {

// Sources, beside those of parameters.h:
//   [gpt3]      the scenario gpt3-64nodes, fitted to MLPerf Training v4.0
//   [tc99]      ASHRAE TC 9.9, Thermal Guidelines for Data Processing Environments
//   [ashrae]    ASHRAE Handbook (Fundamentals; HVAC Systems and Equipment) and Standard 90.1
//   [titanium]  80 PLUS Titanium, 230 V internal redundant: efficiencies at 10, 20, 50, 100 % of load
//   [ups]       makers' published efficiency curves of 1 MW double-conversion UPS, and ENERGY STAR for UPS
//   [doe]       10 CFR 431.196: distribution transformers
//   [gordon]    Gordon and Ng, Cool Thermodynamics: three-parameter chiller model
//   [iec]       IEC 62053-21: class 1 meters
//   [chosen]    no source: a plausible value; vary it before trusting a result that depends on it

struct FacilityItParameters {
  std::uint64_t gpus = 1000;
  std::uint64_t gpus_per_rack = 32;       // [chosen] four nodes of eight
  Watts idle_gpu_power{70};               // [board] H100
  Watts other_power{187.5};               // of the node, per GPU; [gpt3] 1.5 kW of eight
  double other_idle_fraction = 0.7;       // of it while the GPU idles; [chosen]
  double gpu_power_scale = 1;             // busy power above idle, times; for counterfactuals
  Watts network_power{35e3};              // switches and storage, constant; [chosen] 4 % of the IT
  double liquid_racks_fraction = 0.5;     // racks with cold plates, the last ones; [chosen]
  double liquid_capture_fraction = 0.75;  // of their heat that goes into the liquid; [tc99] 0.7 to 0.8
  double inlet_fan_gain = 0.02;           // of other power, per K of inlet above the start; [tc99]
  Celsius inlet_fan_start{25};            // [tc99] fans of servers speed up from here
  double leakage_per_kelvin = 0.15;       // W/K of a GPU; as gpu.leakage_per_kelvin
  double gpu_thermal_resistance = 0.05;   // K/W; as the preset h100-sxm5-80gb
  Hertz gpu_clock{1755e6};                // mean under load; [chosen]
  double step_noise_sd = 0.003;           // of a job's power per 10 s, white; [measures]
  double drift_sd = 0.005;                // slow (OU); [measures]
  Seconds drift_time{3600};               // [measures]
  double rack_spread_sd = 0.01;           // between racks under like load, constant; [mlperf] nodes 2 %, four a rack
  double rack_noise_sd = 0.006;           // of a rack's power (OU); [gpt3] wander of a node 90 W
  Seconds rack_noise_time{40};            // [gpt3]
};

/// Losses of a stage = idle·R + proportional·P + square·P²/R, with R its rating.
struct DeliveryParameters {
  double supply_idle_fraction = 0.004;  // of `supply_rating`; [titanium] [gpt3] AC / DC 1.018 at 6.8 kW a node
  double supply_proportional_fraction = 0.004;
  double supply_square_fraction = 0.018;
  Watts supply_rating{1750};  // of the node, per GPU in use: 14 kW a node of eight; [chosen]
  Watts pdu_rating{1.2e6};
  double pdu_idle_fraction = 0.001;    // [ashrae] panel and cables, no transformer
  double pdu_square_fraction = 0.018;  // at rating and nominal voltage; [chosen]
  std::uint64_t ups_strings = 2;       // [chosen] 2N
  Watts ups_rating{1.2e6};             // of one string
  bool ups_eco = false;                // runs on its bypass
  double ups_idle_fraction = 0.0105;   // double conversion; [ups] 94 to 95 % at 40 %, 96 % at full load
  double ups_proportional_fraction = 0.018;
  double ups_square_fraction = 0.013;
  double eco_idle_fraction = 0.003;  // bypass; [ups] 98.5 to 99 %
  double eco_proportional_fraction = 0.002;
  double eco_square_fraction = 0.004;
  Watts transformer_rating{2e6};
  double transformer_idle_fraction = 0.0012;  // [doe] 99.4 % at 35 % load
  double transformer_square_fraction = 0.008;
  Watts other{9e3};            // light, offices, controls; by day half as much again; [chosen]
  Volts voltage{415};          // line to line at the racks
  Watts battery_charge{40e3};  // after a test; [chosen]
};

struct CoolingParameters {
  // Air. The supply air is the water's set-point and the coils' approach.
  double coil_approach = 4;              // K; [ashrae]
  double air_rise = 11;                  // K over the racks at design flow; [tc99]
  Watts fan_power{36e3};                 // all air handlers at full flow; [ashrae] 90.1: about 0.7 W per L/s of air
  Watts air_rating{850e3};               // heat that full flow carries at that rise
  double fan_band = 6;                   // K of the rise over which drives go from least to full speed; [chosen]
  double fan_minimum_fraction = 0.4;     // of speed; [ashrae]
  Seconds fan_time{120};                 // first-order; [chosen] the drive's ramp
  double air_capacity = 14e6;            // J/K of air, racks and floor that take part; [chosen] about 5 min
  double recirculation_fraction = 0.06;  // of a rack's rise that its inlet takes back; [tc99] supply heat index
  double recirculation_sd = 0.02;        // between racks

  // Chilled water.
  Celsius set_point{17};               // of the water; [tc99] W17
  double water_rise = 6;               // K at design flow; [ashrae]
  double water_capacity = 60e6;        // J/K, about 14 m³ of pipes and buffer; [chosen] about 9 min
  Seconds dead_time{150};              // from coil to chiller and back through the pipes; [chosen]
  Watts secondary_pump_power{11e3};    // at full flow, cubic in it; [ashrae] 90.1: 22 W/gpm in all
  double pump_minimum_fraction = 0.3;  // of speed
  Seconds pump_time{60};
  Watts primary_pump_power{3.5e3};  // of one running chiller, constant speed
  Watts condenser_pump_power{5e3};  // of one running chiller; [ashrae] 90.1: 19 W/gpm
  Watts liquid_pump_power{12e3};    // of the cold plates' loops at full heat; [chosen]
  double liquid_pump_minimum_fraction = 0.5;
  Seconds liquid_time{90};  // first-order, heat of the cold plates to the towers

  // Chillers: 1/COP + 1 = Tc (1 + b1·Te/Q + b2·(Tc − Te)/(Tc·Q)) / (Te − b3·Q), per chiller at its rating
  std::uint64_t chillers = 4;
  Watts chiller_rating{300e3};
  double chiller_entropy = 0.030;     // b1·Te/Q at rating; [gordon] with [ashrae] 90.1: COP 6 at 6.7 / 29.4 °C
  double chiller_leak = 0.04;         // b2/Q at rating; [gordon]
  double chiller_resistance = 0.033;  // b3·Q/Te at rating; [gordon]
  double stage_up_fraction = 0.92;    // of the capacity that runs
  double stage_down_fraction = 0.72;  // of what would be left
  Seconds stage_time{300};            // so long beyond before one starts or stops; [chosen]
  double chiller_spread_sd = 0.01;    // between like chillers, of their power; [chosen]
  Seconds minimum_run{1200};          // [chosen] makers allow three to six starts an hour
  Seconds minimum_rest{900};

  // Economiser: water side, before the chillers, opens with the towers' water.
  bool economiser = true;
  double economiser_approach = 1.5;    // K of its heat exchanger; [ashrae]
  double economiser_hysteresis = 1.0;  // K
  Seconds economiser_time{1800};       // least between two change-overs; [chosen]

  // Towers.
  double tower_approach = 4;           // K at design heat, wet bulb and full fan; [ashrae] 3 to 6
  Celsius tower_design_wet_bulb{24};   // [ashrae] Chicago, 1 %
  double tower_approach_slope = 0.03;  // more per K of colder air; [ashrae] saturation curve
  Celsius tower_minimum_water{18};     // while chillers run
  Watts tower_rating{1.6e6};           // design heat
  Watts tower_fan_power{22e3};         // [ashrae] 90.1: 40.2 gpm/hp
  Seconds tower_time{180};             // basin
};

struct FacilityMeterParameters {
  double class_sd = 0.004;              // gain of a power meter, constant; [iec] class 1: all within 1 %
  double noise_sd = 0.001;              // of a reading of 10 s; [chosen]
  Watts resolution{100};                // [chosen]
  double missing_fraction = 0.0005;     // of readings, each meter by itself; [chosen]
  double temperature_bias_sd = 0.2;     // K; [ashrae] class A elements with wiring
  double temperature_noise_sd = 0.05;   // K
  double temperature_resolution = 0.1;  // K
  double weather_bias_sd = 0.3;         // K
  double gpu_gain_sd = 0.003;           // mean of all boards' sensors; [yang24]
};

struct FacilityParameters {
  FacilityItParameters it;
  DeliveryParameters delivery;
  CoolingParameters cooling;
  FacilityMeterParameters meters;
  Seconds period{10};

  std::uint64_t racks() const { return (it.gpus + it.gpus_per_rack - 1) / it.gpus_per_rack; }
};

std::vector<ParameterInfo> list_parameters(const FacilityParameters& parameters);
/// "facility.cooling.set_point", "16C"; with or without "facility.".
Result<> set_parameter(FacilityParameters& parameters, std::string_view key, std::string_view value);
/// Refuses what has no physics.
Result<> check(const FacilityParameters& parameters);

}  // namespace flyball::twin
