#pragma once
// What the four `flyball analyze` commands share: their options, and recordings as runs of a job.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "cli/app.h"
#include "core/reading.h"
#include "report/html.h"
#include "report/json.h"
#include "report/plot.h"
#include "series/accounting.h"
#include "series/samples.h"
#include "series/series.h"

namespace flyball::cli {

/// As they stand on the command line; empty = not given.
struct AnalyzeOptions {
  std::vector<std::string> files;
  std::string events;
  std::string meter;
  std::string extra;
  std::vector<std::string> budgets;
  std::vector<std::string> windows;
  std::string price = "0";
  std::string carbon = "0";
  std::string currency = "EUR";
  std::string report;
  double tokens = 0;
  double gap_periods = 3.5;
  bool bridge = false;
};

/// One run of a job: its meters, all of one scope, and what happened in it.
struct AnalyzedRun {
  std::string name;  ///< empty when the files name none
  std::vector<series::Series> meters;
  std::vector<series::Event> events;
  series::Interval interval;  ///< run_start to run_stop, or all that was recorded
  bool bounded_by_events = false;
  double tokens = 0;  ///< 0 = not known
};

struct AnalyzeInput {
  std::vector<AnalyzedRun> runs;
  Scope scope = Scope::unknown;
  Watts extra;  ///< declared constant draw beside the meters
  series::Tariff tariff;
  series::GapRule gap;
  std::vector<std::string> warnings;
  std::uint64_t points = 0;
  std::uint64_t not_ok = 0;
  std::uint64_t quarantined = 0;
};

Result<AnalyzeInput> read_analyze_input(const AnalyzeOptions& options, Filesystem& files);

/// The power of the whole run: of its one meter, or the sum of its meters on a common grid, plus `extra`.
series::Series total_power(const AnalyzedRun& run, Watts extra, const series::GapRule& gap);

/// "run-1", or "the recording" when it has no name.
std::string title_of(const AnalyzedRun& run);
/// {"schema", "meter", "points", …, "warnings"}: how each of the four documents begins.
report::Json analyze_document(const std::string& name, const AnalyzeInput& input);
/// Text to stdout or one JSON document, and the page if one is asked for.
Result<> give_results(Context& context, const AnalyzeOptions& options, const AnalyzeInput& input,
                      const std::string& text, const report::Json& json, const report::HtmlPage& page);

// The four, one in each analyze_NAME.cc.
Result<> analyze_energy(const AnalyzeOptions& options, Context& context);
Result<> analyze_windows(const AnalyzeOptions& options, Context& context);
Result<> analyze_phases(const AnalyzeOptions& options, Context& context);
Result<> analyze_ramps(const AnalyzeOptions& options, Context& context);

}  // namespace flyball::cli
