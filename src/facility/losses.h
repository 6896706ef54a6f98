#pragma once
// What a stage of power delivery (transformer, UPS, PDU) loses at a load, fitted within what physics allows.

#include <span>
#include <string>

#include "base/result.h"
#include "base/units.h"

namespace flyball::facility {

/// Loss = idle + proportional × output + square × output² / rating: magnetising and electronics, voltage drops of
/// junctions, resistance. None of the three can be negative.
struct StageLoss {
  Watts rating;
  Watts idle;
  double proportional_fraction = 0;
  double square_fraction = 0;

  Watts of(Watts output) const;
  double efficiency(Watts output) const { return output / (output + of(output)); }
};

/// A stage's two sides at one time.
struct StageSample {
  Watts input, output;
  bool on_battery = false;  ///< the input does not feed the output then: known, and left out
};

struct StageFit {
  StageLoss loss;
  std::size_t used = 0, on_battery = 0;
  Watts rms_error;
  std::string note;  ///< what the data do not tell ("the load moved by 3 % of the rating")
};

/// Least squares under those bounds. Refused: fewer than ten samples, an output above its input beyond what two class 1
/// meters may differ by, or a loss above a fifth of the rating at full load: then it is the meters, or not one stage.
Result<StageFit> fit_stage(std::span<const StageSample> samples, Watts rating);

}  // namespace flyball::facility
