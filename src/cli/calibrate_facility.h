#pragma once
// What `flyball calibrate fit` says of a building, and its three faces.

#include <optional>
#include <string>
#include <vector>

#include "cli/calibrate.h"
#include "core/result_types.h"
#include "facility/building.h"
#include "facility/phase_accuracy.h"
#include "facility/relief.h"

namespace flyball::cli {

struct FacilityCalibration {
  WallTime first, last;  ///< of all that was read
  std::size_t train_points = 0, test_points = 0;
  Seconds delay;
  bool on_training = false;  ///< no other data were given: the second half is foretold from the first
  double level = 0.9;        ///< of the intervals of points
  double train_pue = 0;      ///< what a static PUE would be
  std::optional<facility::StageFit> ups;
  std::string ups_note;
  facility::Lags lags;
  std::vector<facility::PhaseAccuracy> rows;  ///< all together first
  std::size_t left_out = 0;                   ///< points of phases that were not learned yet
  facility::PueReport pue;                    ///< hours of all that was read
  facility::NonCompute apart;                 ///< of all that was read
  std::vector<facility::Relief> relief;       ///< of all that was read
  std::optional<facility::HeadRoom> head_room;
  Celsius design_air;

  struct Hour {
    WallTime start;
    Watts measured;
    Estimate expected_w;  ///< mean of the points' intervals
    double carbon_g = 0;
  };
  std::vector<Hour> hours;  ///< of what was foretold
  std::optional<Account> account;

  /// The last hours of what was foretold, point by point.
  struct Shown {
    WallTime at;
    Watts measured, it, expected, low, high;
    Phase phase;
  };
  std::vector<Shown> shown;
  std::optional<KeptVersion> version;
  std::vector<std::string> warnings;
};

/// "pretrain-large training"; "all phases".
std::string name_of(const std::optional<facility::PhaseKey>& key);
std::string facility_text(const FacilityMap& map, const FacilityCalibration& made);
std::string facility_json(const CalibrateOptions& options, const FacilityMap& map, const FacilityCalibration& made);
std::string facility_page(const CalibrateOptions& options, const FacilityMap& map, const FacilityCalibration& made);

}  // namespace flyball::cli
