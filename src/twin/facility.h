#pragma once
// The building around about a thousand GPUs: jobs heat racks, power is delivered to them through transformer, UPS, PDU
// and supplies, and the heat leaves through air and liquid, chillers, economiser and towers. It answers late, its
// meters err, and all of it depends on the seed alone. Equations and sources: doc/twin.md.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "core/facility.h"
#include "twin/facility_fault.h"
#include "twin/facility_parameters.h"
#include "twin/facility_schedule.h"
#include "twin/facility_weather.h"

namespace flyball::twin {

struct FacilitySetup {
  FacilityParameters parameters;
  std::vector<WeatherSample> weather;  ///< empty: `synthetic_weather` of the seed
  std::vector<ScheduledJob> schedule;  ///< empty: `default_schedule`
  std::vector<FacilityFault> faults;
  std::vector<HarmlessEvent> harmless;
  WallTime start{1'777'248'000'000'000'000};  ///< 2026-04-27T00:00:00Z, of the schedule and the samples
  Seconds length{30 * 86400.0};               ///< of weather and schedule where they are made up
  std::uint64_t seed = 1;
};
/// Parameters as given, the trial's faults, events, seed and times.
FacilitySetup setup_for(const FaultTrial& trial, FacilityParameters parameters = {});

/// What is, not what meters show: means over the last step. For tests and accounts of simulated runs.
struct FacilityTruth {
  WallTime at;  ///< end of the step
  Watts utility, discharged, transformer_loss, ups_in, ups_out, ups_loss, pdu_loss;
  Watts it;           ///< racks, network and storage; air and liquid together
  Watts supply_loss;  ///< inside the racks: part of `it`
  Watts gpus;         ///< all boards: part of `it`
  Watts chillers, pumps, fans, tower_fans,
      other;                    ///< all that is not IT; tower_fans: part of `fans`; other: light, offices
  Watts heat_air, heat_liquid;  ///< of the racks
  Watts rejected;               ///< to the outside, all ways together
  Joules stored;                ///< heat in air, racks and water, against the start
  Celsius room_supply, room_back, water_supply, water_back, tower_water, dry_bulb, wet_bulb;
  double economiser_fraction = 0;  ///< of the chilled water's heat
  std::uint32_t chillers_on = 0;
  double tokens = 0;  ///< since the start, all jobs

  Watts total() const { return utility + discharged; }
  double pue() const { return total() / it; }
};

class Facility {
 public:
  static Result<Facility> make(FacilitySetup setup);
  Facility(Facility&&) noexcept;
  Facility& operator=(Facility&&) noexcept;
  ~Facility();

  /// Goes on by `parameters.period` (10 s). The sample is valid until the next step; one that the collector lost has
  /// nothing but its time. Stamps rise from sample to sample, but their distance is not always the period.
  const FacilitySample& step();
  const FacilityTruth& truth() const;
  /// Steps that fit into the length of the setup.
  std::uint64_t steps() const;

 private:
  struct State;
  explicit Facility(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// What a watt saved in the GPUs saves again before the utility's meter, from a run and its counterfactual that share
/// everything but the GPUs' power (`parameters.it.gpu_power_scale`).
struct CoolingRelief {
  Joules gpus, delivery, cooling;                      ///< saved; delivery: losses of supplies, PDU, UPS, transformer
  double delivery_fraction = 0, cooling_fraction = 0;  ///< of what the GPUs save
};
Result<CoolingRelief> cooling_relief(const FacilitySetup& setup, double gpu_power_scale);

}  // namespace flyball::twin
