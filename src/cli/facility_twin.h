#pragma once
// The simulated building, as commands name it.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/app.h"
#include "twin/facility.h"

namespace CLI {
class App;
}

namespace flyball::cli {

struct FacilityTwinOptions {
  std::string scenario;
  std::vector<std::string> set;
  std::uint64_t seed = 1;
  std::string duration;   ///< empty: the scenario's
  std::string fault;      ///< a form ("ups_eco") or a cause ("ups_mode"); empty: none
  double fault_size = 0;  ///< 0: four times the least that can be told
  std::string fault_at = "12d", fault_ramp, fault_for;
};

/// --fault and what belongs to it.
void add_fault(CLI::App& command, FacilityTwinOptions& options);
/// The name is that of a building among the presets.
bool is_facility(Context& context, const std::string& scenario);
Result<twin::FacilitySetup> facility_setup(const FacilityTwinOptions& options, Context& context);

}  // namespace flyball::cli
