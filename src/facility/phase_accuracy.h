#pragma once
// How well the facility's power is foretold in each phase of the job, beside what one constant PUE would have said.

#include <map>
#include <optional>
#include <vector>

#include "base/units.h"
#include "facility/phase_library.h"

namespace flyball::facility {

struct PhaseAccuracy {
  std::optional<PhaseKey> key;  ///< nothing: all together
  std::size_t points = 0, transients = 0;
  double p50_fraction = 0, p95_fraction = 0;  ///< of |expected − measured| / measured
  double nmbe_fraction = 0;                   ///< sum of (expected − measured) / sum of measured
  double coverage_fraction = 0;               ///< measured inside the interval
  double half_width_fraction = 0;             ///< of the interval, its mean, of what was expected
  double frozen_p95_fraction = 0;             ///< by what was known at the end of the training; NaN: not foretold
  double static_p50_fraction = 0, static_p95_fraction = 0;  ///< by one PUE, that of the training
};

class PhaseScores {
 public:
  /// `pue`: energy of the facility by that of the IT, of the training.
  explicit PhaseScores(double pue) : pue_(pue) {}

  /// A point whose phase was not learned yet is left out; so is a measured value that is not positive.
  void take(const PhaseKey& key, const FacilityPoint& point, const Expectation& expected,
            const Expectation* frozen = nullptr);
  /// All together first.
  std::vector<PhaseAccuracy> rows() const;
  std::size_t left_out() const { return left_out_; }

 private:
  struct Errors {
    std::vector<float> error, frozen, by_pue;
    std::size_t inside = 0, transients = 0;
    double expected = 0, measured = 0, width = 0;
  };
  static PhaseAccuracy row(const Errors& errors);

  double pue_;
  std::size_t left_out_ = 0;
  Errors all_;
  std::map<PhaseKey, Errors> by_phase_;
};

}  // namespace flyball::facility
