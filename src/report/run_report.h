#pragma once
// What `flyball run` shows of a run: text, JSON (flyball.run/1) and a page. Filled by the caller; nothing is computed
// here but what an Account derives.

#include <optional>
#include <string>
#include <vector>

#include "core/control.h"
#include "core/result_types.h"
#include "core/workload.h"
#include "report/json.h"
#include "series/series.h"

namespace flyball::report {

/// What a watt saved in the IT saves again in cooling and delivery.
struct CoolingRelief {
  Estimate fraction;
  std::string basis;  ///< "as stated", "facility north, version 12ab…, at 11.0 °C wet bulb"
};
/// Of an energy saved: both ends with both ends.
Estimate saved_again(const Estimate& energy, const Estimate& fraction);

struct RunReport {
  RunResult result;
  std::vector<series::Series> series;  ///< power and limits are drawn
  std::vector<PhaseSpan> phases;
  std::optional<Budget> budget;
  Rates rates;                               ///< by which the accounts' costs and the worth were made
  std::optional<CoolingRelief> relief = {};  ///< of the building; empty: not known, and nothing is said of it
};

std::string run_text(const RunReport& report);
Json run_json(const RunReport& report);
std::string run_html(const RunReport& report);

}  // namespace flyball::report
