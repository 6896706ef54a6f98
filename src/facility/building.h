#pragma once
// A whole building from its samples: stages, lags, what all phases share and what each has of its own, learned in order
// of time; and what can be said with it: energy that is no computing, and how much more IT the building carries.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stats.h"
#include "base/units.h"
#include "core/facility.h"
#include "facility/lag.h"
#include "facility/losses.h"
#include "facility/phase_library.h"
#include "facility/pue.h"
#include "facility/response.h"

namespace flyball::facility {

/// What of a sample the building's baseline needs.
struct FacilityRecord {
  FacilityPoint point;
  PhaseKey key;
  std::optional<Watts> utility, ups_in, ups_out;
  std::optional<Watts> cooling;  ///< chillers, pumps and fans together, where they are metered
  std::optional<Watts> generated, discharged;
};
/// Nothing where the IT's or the utility's power is missing. The key is that of the job with the most GPUs; without
/// any it is unknown. On battery the UPS's output counts as discharged where nobody meters that.
std::optional<FacilityRecord> record_of(const FacilitySample& sample);

/// Where jobs are told at all, a record without any is idle.
void name_idle(std::vector<FacilityRecord>& records);

struct BuildingOptions {
  Seconds delay = Seconds(6 * 3600.0);  ///< a point teaches only after so long
  double level = 0.9;
  Watts it_rating;    ///< 0: the greatest load of the training
  Watts ups_rating;   ///< 0: the greatest output of the training
  bool means = true;  ///< powers are means since the sample before
};

struct Building {
  std::optional<StageFit> ups;
  std::string ups_note;  ///< why there is none
  Lags lags;
  Seconds step;  ///< usual distance of samples
  PhaseLibrary library;
};
/// Learns of all of `train` that is `delay` old at its end; the rest waits for `take`. Refused: fewer than 100 records.
Result<Building> learn_building(std::span<const FacilityRecord> train, const BuildingOptions& options);

/// What is drawn and computes nothing, or more than it would have to, over the records. Energies [J].
struct NonCompute {
  Joules facility, it;                           ///< measured, of all
  Joules idle, idle_it;                          ///< measured while the job idles: facility, and IT of it
  Joules checkpoint, checkpoint_it;              ///< measured while it writes
  Estimate over_cooling_j;                       ///< more than when settled, while less heat goes in than is felt
  Estimate checkpoint_over_cooling_j;            ///< of it, while it writes
  Estimate ripple_j;                             ///< of swings within ten minutes of one phase, against their mean
  std::optional<Estimate> staging_hysteresis_j;  ///< chillers beyond those that carried as much at other times
};
NonCompute non_compute(const Building& building, std::span<const FacilityRecord> records, double level = 0.95);

struct HeadRoom {
  Estimate it_w;             ///< what the building carries
  std::string limited_by;    ///< "feed", "cooling"
  bool beyond_seen = false;  ///< by more than a tenth of what was ever seen: an extrapolation
};
/// The greatest IT load whose facility power stays below `feed` and whose heat below `cooling` (0: no limit), settled,
/// in that air.
Result<HeadRoom> head_room(const ResponseModel& response, Watts feed, Watts cooling, Celsius air, WallTime at,
                           double level = 0.9);

/// Hours of the clock, for `pue_over_time`; an hour with less than four fifths of its samples has no reading.
std::vector<EnergyInterval> hourly_energy(std::span<const FacilityRecord> records, Seconds step);

/// SHA-256 of all that the records hold.
std::string hash_of(std::span<const FacilityRecord> records);

}  // namespace flyball::facility
