#pragma once
// What a building's meters show of the truth: each is off by a constant, rounds, sometimes has nothing, and may be
// broken.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "core/facility.h"
#include "core/facility_columns.h"
#include "twin/facility_effects.h"
#include "twin/facility_parameters.h"

namespace flyball::twin {

class FacilityMeters {
 public:
  FacilityMeters(const FacilityParameters& parameters, std::uint64_t seed);

  /// From what is to what is shown, in place.
  void read(FacilitySample& sample, const FacilityEffects& effects);

 private:
  struct Meter {
    Random random{0};
    double gain = 1, offset = 0, noise = 0, noise_fraction = 0, resolution = 0;
    bool real = true;  ///< false: a state that is told as it is
    std::optional<double> held;
    std::array<double, 64> ring{};  ///< what it showed, or would have
    std::size_t at = 0;
  };
  Meter meter_for(const FacilityColumn& column, Random random) const;
  std::optional<double> show(Meter& meter, double value) const;
  void break_meter(Meter& meter, const FacilityColumn& column, const FacilityEffects& effects,
                   std::optional<double>& shown) const;

  const FacilityParameters& p_;
  std::vector<Meter> meters_;       ///< in the order of the columns
  std::vector<Meter> rack_meters_;  ///< power and inlet of each rack, in turn
};

}  // namespace flyball::twin
