#pragma once
#include "base/result.h"
#include "cli/app.h"
#include "twin/scenario.h"

namespace flyball::cli {

/// Both meters of every node of the twin, as node power CSV (run, node, time_ms, ac_w, dc_w) in `path` and its events
/// in `path`.events.csv, as `analyze` reads them; shows how the nodes move.
Result<> record_nodes(twin::Scenario scenario, Seconds duration, const std::string& path, Context& context);

}  // namespace flyball::cli
