#pragma once
// What is known of each form of a fault before any is drawn. For facility_fault.cc and facility_generator.cc alone.

#include <string_view>

#include "twin/facility_fault.h"

namespace flyball::twin {

/// Where a form shows first. Two faults that show in one place at one time pass for one.
enum class Trace : std::uint8_t { chillers, towers, fans, pumps, ups, racks, voltage, gpus, jobs, meter };

struct FormRow {
  FaultForm form;
  std::string_view name;
  Cause cause;
  Trace trace;
  double least;      ///< size that can be told from noise
  double low, high;  ///< of sizes that are drawn, evenly in the logarithm
  bool either_sign;
  double shortest_ramp_s, longest_ramp_s;
  double shortest_s, longest_s;  ///< duration; 30 days or more: to the end
};
const FormRow& form_row(FaultForm form);

}  // namespace flyball::twin
