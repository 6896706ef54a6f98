#pragma once
// What `flyball calibrate explain` and `watch` say of a building: text, flyball.explain/1, a page, Prometheus.

#include <string>
#include <vector>

#include "control/facility_watch.h"
#include "facility/cause_watch.h"
#include "report/json.h"

namespace flyball::cli {

/// What the findings were made of.
struct ExplainInput {
  std::string source;  ///< the file, or the simulated building
  WallTime first, last;
  std::uint64_t samples = 0, blocks = 0;
  Seconds reference;
  std::vector<std::string> warnings;
};

/// "2 cells of the cooling: …" as a person reads it: what is found, by what, since when.
std::string explain_text(const ExplainInput& input, const facility::CauseWatch& watch);
report::Json explain_json(const ExplainInput& input, const facility::CauseWatch& watch);
std::string explain_html(const ExplainInput& input, const facility::CauseWatch& watch);

report::Json finding_json(const facility::CauseFinding& finding);
/// One line of a stream, flyball.finding/1.
std::string event_line(const control::FacilityEvent& event);
std::string event_text(const control::FacilityEvent& event);
/// Prometheus text format 0.0.4, base units.
std::string cause_metrics(const control::FacilityWatch& watch);

}  // namespace flyball::cli
