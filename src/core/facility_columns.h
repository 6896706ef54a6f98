#pragma once
// The numbers of a FacilitySample by name: one table for files, reports and whoever walks over all of them.

#include <optional>
#include <span>
#include <string_view>

#include "core/facility.h"

namespace flyball {

/// Racks, jobs and the software's label are no numbers of the whole and not among them.
struct FacilityColumn {
  std::string_view name;  ///< "utility_w": ends in its unit; counts and flags have none
  std::string_view unit;  ///< "W", "C", "Hz", "V", "1"
  std::optional<double> (*get)(const FacilitySample&);
  void (*set)(FacilitySample&, std::optional<double>);
};
/// In the order of the sample's fields, always the same.
std::span<const FacilityColumn> facility_columns();
/// Null where there is none by that name.
const FacilityColumn* find_facility_column(std::string_view name);

}  // namespace flyball
