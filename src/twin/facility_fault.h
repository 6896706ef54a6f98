#pragma once
// What goes wrong in a building, and what merely happens there. A trial is drawn from a seed before anything that
// judges it exists; its record of truth reaches tests and figures, never a method.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "base/units.h"
#include "core/facility.h"
#include "twin/facility_schedule.h"
#include "twin/facility_weather.h"

namespace flyball::twin {

/// How a cause shows. What `size` means stands behind each.
enum class FaultForm : std::uint8_t {
  // cooling_strategy
  economiser_closed,  ///< free cooling is not used; size 1
  extra_chillers,     ///< so many more run than the load needs
  // set_point
  set_point_shift,  ///< K of the cold side, up or down
  // fouling
  fouled_tower,      ///< approach of the towers times 1 + size
  fouled_condenser,  ///< resistance of the chillers' heat exchangers times 1 + size
  fouled_filter,     ///< pressure that the air handlers must give, times 1 + size
  fouled_coil,       ///< water that the coils need for the same heat, times 1 + size
  // fan_or_pump
  worn_fan,    ///< air handlers draw 1 + size times as much at the same speed and flow
  worn_pump,   ///< pumps likewise
  fixed_fan,   ///< air handlers run at no less than this speed fraction: a drive that no longer follows
  fixed_pump,  ///< secondary pumps likewise
  // ups_mode
  ups_eco,              ///< UPS bypass their converters, or, where they did, convert again; size 1
  ups_redundancy_lost,  ///< one string of several carries nothing; size 1
  // rack_heat
  recirculation,  ///< K by which the inlets of the racks `first` … `first + count − 1` are warmer at full load
  // voltage_sag
  sag,  ///< fraction by which the voltage at the racks is lower
  // gpu_ageing
  ageing,  ///< fraction more power at equal phase; a third of it off clock and pace; errors grow with it
  // firmware: a step, and the software's label changes with it
  firmware_power,  ///< fraction more (or less) power at equal phase and clock
  firmware_clock,  ///< fraction off the clock, and pace and power with it
  // scheduling_mix
  co_scheduled,  ///< a batch job is put onto this fraction of all GPUs, shared with the jobs that run there
  // model_behaviour
  plateau,          ///< loss stands still; utilisation falls by this fraction in the mean and fluctuates by half of it
  short_sequences,  ///< fraction off power and utilisation of training, steady, and tokens per step
  restarts,         ///< this many a day: the job falls back to startup at no scheduled time
  // meter_fault; `where` names the column of the meter ("it_w", "utility_w", "ups_in_w", "chillers_w", …)
  meter_scale,  ///< readings times 1 + size
  meter_drift,  ///< the same, growing over the ramp
  meter_stuck,  ///< one value, again and again; size 1
  meter_deci,   ///< readings ×10 (size 10) or ×0.1 (size 0.1)
  meter_late,   ///< seconds by which readings are old
  meter_noisy,  ///< sd as a fraction of the reading
};
std::string_view to_string(FaultForm form);
Result<FaultForm> parse_fault_form(std::string_view text);
Cause cause_of(FaultForm form);
std::vector<FaultForm> fault_forms();

struct FacilityFault {
  FaultForm form = FaultForm::ups_eco;
  WallTime onset;
  Seconds ramp;             ///< from nothing to the whole size, linear; 0 = a step
  Seconds duration;         ///< since the onset, ramp included; then it is gone
  double size = 1;          ///< see FaultForm
  std::string where;        ///< column of the meter, type of the job, or which part; empty: all
  std::uint32_t first = 0;  ///< of the racks
  std::uint32_t count = 0;

  // The record of truth.
  double strength = 1;       ///< size in units of the least that can be told from noise (`least_size`)
  bool identifiable = true;  ///< in principle, by somebody who sees all samples of the trial
  std::string why;           ///< where it is not

  Cause cause() const { return cause_of(form); }
  /// 0 … 1 at a time: how much of the size holds.
  double share_at(WallTime t) const;
  WallTime end() const { return onset + duration; }
};
/// "fouled_tower 0.85 from 2026-03-07T04:10:00.000Z over 3 d, ramp 12 h"
std::string to_string(const FacilityFault& fault);

/// What a detector must not take for a fault.
enum class HarmlessKind : std::uint8_t {
  software_update,   ///< the label of the software changes and nothing else
  weather_front,     ///< air warmer or colder by `size` K for a time, within hours
  chiller_rotation,  ///< another chiller leads
  rack_drained,      ///< the GPUs of some racks leave the schedule: idle for a time
  ups_test,          ///< the UPS feed from their batteries for minutes, and charge again
  missing_samples,   ///< the collector has nothing for a time
  late_clock,        ///< stamps are off by `size` s for a time
  job_swapped,       ///< a job ends before its time and another type goes on in its place, as the schedule says
};
std::string_view to_string(HarmlessKind kind);

struct HarmlessEvent {
  HarmlessKind kind = HarmlessKind::software_update;
  WallTime onset;
  Seconds duration;
  double size = 0;
  std::uint32_t first = 0, count = 0;  ///< racks, or the number of the job
};

struct FaultTrial {
  std::uint64_t number = 0;
  std::uint64_t seed = 0;  ///< of the simulation that it is for
  WallTime start;
  Seconds length;
  std::vector<WeatherSample> weather;  ///< as the options give them; empty: made up from seed and length
  std::vector<ScheduledJob> schedule;
  std::vector<FacilityFault> faults;  ///< none, one, or two
  std::vector<HarmlessEvent> harmless;
};

struct FaultOptions {
  WallTime start{1'777'248'000'000'000'000};  ///< 2026-04-27T00:00:00Z, a Monday
  Seconds length{30 * 86400.0};
  Seconds quiet{10 * 86400.0};       ///< at the beginning nothing is wrong: there baselines are learned
  Seconds tail{2 * 86400.0};         ///< no onset so late
  double none_fraction = 0.1;        ///< trials without a fault
  double pair_fraction = 0.25;       ///< trials with two
  double too_small_fraction = 0.08;  ///< of faults that are drawn below what can be told
  double harmless_per_day = 0.5;
  std::uint32_t racks = 32;
  std::vector<WeatherSample> weather;  ///< empty: that which the trial's seed makes up
  std::vector<ScheduledJob> schedule;  ///< empty: the default one
};

/// Trial i depends on seed and i alone.
class FaultGenerator {
 public:
  explicit FaultGenerator(std::uint64_t seed, FaultOptions options = {});
  FaultTrial trial(std::uint64_t number) const;
  FaultTrial next() { return trial(next_++); }

 private:
  std::uint64_t seed_;
  FaultOptions options_;
  std::uint64_t next_ = 0;
};

/// The least size that can be told from noise in the default building when it lasts a day. Sources: doc/twin.md.
double least_size(FaultForm form);
/// Finite, above 0 (of some forms below as well), and at most ten times the largest that trials draw.
Result<> check_fault_size(FaultForm form, double size);
/// The record, one line a fault and event, in one fixed form.
std::string to_text(const FaultTrial& trial);

}  // namespace flyball::twin
