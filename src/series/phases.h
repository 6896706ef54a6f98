#pragma once
// Phases of a training job, from power alone: of a node, or better of the sum of its nodes.
//
// Two kinds of structure are looked for, both by what a training step itself says and not by watts of a machine:
// 1. Rest: power well below the busy level for longer than the dips inside steps. At the start it is start-up, in
//    between a checkpoint or a stall, for long or at the end idle.
// 2. A level of its own (an evaluation: forward passes only): inside each step power swings between a busy level and a
//    dip. A morphological closing over at most one step (Serra, 1982) fills the dips and leaves the upper envelope; an
//    opening leaves the lower one; the mean over one step removes the swing. In each of the three a phase without the
//    step's swing stands apart. The one that stands apart most clearly is used, if the empty band between the two
//    levels is at least as wide as the spread of training's own envelope; else the answer is "not identifiable".

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/workload.h"
#include "series/samples.h"
#include "series/series.h"
#include "series/step_period.h"

namespace flyball::series {

struct PhaseOptions {
  /// Below this share of the busy level a node rests: an idle accelerator node draws about a third to 45 % of its busy
  /// power (measured: 2.6 of 7.1 kW, 165 of 385 kW), forward passes alone more than four fifths.
  double rest_fraction = 0.6;
  /// Rest shorter than this is part of the work. Also at least three samples, so that one bad reading is no phase.
  Seconds min_rest = Seconds(5);
  /// Rest longer than this is idleness and no checkpoint.
  Seconds longest_checkpoint = Seconds(300);
  /// The empty band between training's envelope and the other level, in spreads of that envelope.
  double min_separation = 1;
  /// A level of its own must last this many steps: a dip inside a step never lasts as long.
  double min_steps = 0.8;
  /// Share of a recording that phases other than training may fill; above it nobody can say which is which.
  double max_minority_fraction = 0.4;
  GapRule gap;
};

struct PhaseReport {
  std::vector<PhaseSpan> spans;  ///< in order; all `inferred`; holes of the recording are in no span
  StepPeriod step;               ///< with the found phases taken out
  bool identifiable = false;     ///< a second level inside the work was told apart
  double separation = 0;         ///< of the best view, see min_separation
  std::string view;              ///< "closing over 10.0 s", "mean over 10.8 s", …
  std::string note;              ///< why not identifiable, or what was set aside
};

/// `power` in W. Boundaries are as sharp as the sampling period; a sample is taken as the mean since the one before.
PhaseReport find_phases(std::span<const Point> power, const PhaseOptions& options = {});

/// One end of a phase, as a job tells it: NAME_start or NAME_stop, NAME as core/workload.h prints a phase, or eval,
/// init.
struct PhaseEdge {
  Phase phase = Phase::unknown;
  bool starts = false;
};
std::optional<PhaseEdge> phase_edge(const Event& event);

/// Spans from a job's own events, by pairs of edges.
std::vector<PhaseSpan> phases_from_events(std::span<const Event> events);

}  // namespace flyball::series
