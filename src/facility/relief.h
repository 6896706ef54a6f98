#pragma once
// What a lasting watt less of IT saves again in delivery and cooling, over days as they were.
//
// The response that foretells is no answer here: it knows how many chillers run and what each phase draws, and both
// answer the load themselves. What follows from the load alone is learned apart, of all that was recorded at once.

#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/stats.h"
#include "base/units.h"
#include "facility/building.h"

namespace flyball::facility {

struct Relief {
  Watts it;                    ///< mean of the moments that it is of
  std::optional<Celsius> air;  ///< theirs, mean; nothing: not metered
  /// Of a watt of IT. The interval holds what the days do not tell (each tenth of them left out in turn; the jackknife,
  /// Quenouille, 1949, Tukey, 1958) and class 1 meters of the whole and of the IT.
  Estimate fraction;
};

/// A tenth less of what the IT draws above its least, in every record; of all of them first, then, where the air is
/// metered, of the coldest, the middle and the warmest third. Refused: what `ResponseModel::make` refuses, or an IT
/// that never moves.
Result<std::vector<Relief>> relief_of(const Building& building, std::span<const FacilityRecord> records,
                                      double level = 0.95);

}  // namespace flyball::facility
