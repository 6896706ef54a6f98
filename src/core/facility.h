#pragma once
// What a building's meters, its GPUs and its jobs say together at one time, and what may be the cause where they
// disagree with a baseline. Only what a real building can show is here: a simulation keeps its truth to itself.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "core/workload.h"

namespace flyball {

/// One kind of job on its part of the GPUs.
struct JobShare {
  std::string type;
  Phase phase = Phase::unknown;
  double gpus_fraction = 1;                    ///< of all GPUs of the facility
  std::optional<double> tokens_per_s;          ///< progress of the job
  std::optional<double> utilisation_fraction;  ///< mean over its GPUs
  std::optional<double> loss;                  ///< of the training, as the job says it
};

struct RackSample {
  std::optional<Watts> power;
  std::optional<Celsius> inlet;
};

/// Powers are means since the sample before. Nothing: not metered, or no reading now; it is never filled.
struct FacilitySample {
  WallTime at;

  std::optional<Watts> utility;                ///< what comes in from outside
  std::optional<Watts> generated, discharged;  ///< on site; from storage (negative: charging)
  std::optional<Watts> ups_in, ups_out;        ///< sums over all UPS
  std::optional<bool> on_battery;              ///< then `ups_in` does not feed `ups_out`
  std::optional<Volts> voltage;                ///< at the racks, line to line
  std::optional<Watts> it;                     ///< all racks, by the meter of the whole
  std::vector<RackSample> racks;               ///< always the same ones in the same order

  std::optional<Watts> chillers, pumps, fans;  ///< compressors; water and liquid loops; air handlers and towers
  std::optional<double> chillers_on;           ///< how many; a mean between two samples
  std::optional<double> fan_speed_fraction, pump_speed_fraction;
  std::optional<Celsius> supply, set_point, back;  ///< cold side, what it should be, warm side
  std::optional<Celsius> dry_bulb, wet_bulb;       ///< outdoors

  std::optional<Watts> gpu_power;  ///< mean of all GPUs, by their own sensors
  std::optional<Hertz> gpu_clock;
  std::optional<Celsius> gpu_temperature;
  std::optional<double> gpu_throttled_fraction;          ///< of GPUs, by heat or power brake
  std::optional<std::uint64_t> ecc_errors, link_errors;  ///< corrected, since the start
  std::string software;                                  ///< driver and firmware as one label; empty: not told

  std::vector<JobShare> jobs;  ///< those that run; empty: none does, or nobody tells
};

/// Stable names, as reports and documents print them.
enum class Cause : std::uint8_t {
  cooling_strategy,  ///< staging, economiser, hysteresis: the same heat is taken away in another way
  set_point,
  fouling,  ///< a heat exchanger, tower or filter takes more for the same heat
  fan_or_pump,
  ups_mode,   ///< conversion mode or redundancy: losses at the same load
  rack_heat,  ///< uneven: some racks take in warmer air
  voltage_sag,
  gpu_ageing,       ///< more watts or lower clocks at equal phase, with errors
  firmware,         ///< or driver: a step that begins with new software
  scheduling_mix,   ///< which jobs share the GPUs
  model_behaviour,  ///< the training's own: a plateau, other sequence lengths, restarts
  meter_fault,
  not_identifiable,
};
std::string_view to_string(Cause cause);
Result<Cause> parse_cause(std::string_view text);

enum class CauseLayer : std::uint8_t { task, scheduling, hardware, none };
std::string_view to_string(CauseLayer layer);
/// The model's behaviour is of the task, the mix of scheduling, what is not identifiable of none, the rest of hardware.
CauseLayer layer_of(Cause cause);

}  // namespace flyball
