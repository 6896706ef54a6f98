#pragma once
// What the four `flyball analyze` commands share: their options, and recordings as runs of a job.

#include <functional>
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
#include "series/counter.h"
#include "series/samples.h"
#include "series/series.h"
#include "series/spool.h"

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

/// One meter of a run: a series that may have come in several files. Its points stay in the input's spool.
struct Meter {
  DeviceId device;
  Signal signal = Signal::power_average;
  Scope scope = Scope::unknown;
  std::vector<std::size_t> parts;          ///< of the spool
  std::vector<std::size_t> counter_parts;  ///< its energy counter's, where it has one; `parts` if that is all it has
  bool counter = false;                    ///< an energy counter, where there is no reading of power
  std::uint64_t points = 0;                ///< good ones
  std::uint64_t not_ok = 0;
  Seconds period;
  series::Interval all;  ///< first to last good point
};

/// One run of a job: its meters, all of one scope, and what happened in it.
struct AnalyzedRun {
  std::string name;  ///< empty when the files name none
  std::vector<Meter> meters;
  std::vector<series::Event> events;
  series::Interval interval;  ///< run_start to run_stop, or all that was recorded
  series::Interval recorded;  ///< all of it
  bool bounded_by_events = false;
  double tokens = 0;  ///< 0 = not known
};

struct AnalyzeInput {
  series::Spool spool;
  std::vector<AnalyzedRun> runs;
  Scope scope = Scope::unknown;
  Watts extra;  ///< declared constant draw beside the meters
  series::Tariff tariff;
  series::GapRule gap;
  std::vector<std::string> warnings;
  std::uint64_t points = 0;
  std::uint64_t not_ok = 0;
  std::uint64_t quarantined = 0;
  std::string unusable;                ///< why values could not be used, by file
  std::vector<std::string> set_aside;  ///< the first rows, "FILE line N: reason"
};

Result<AnalyzeInput> read_analyze_input(const AnalyzeOptions& options, Filesystem& files);

/// Long recordings are looked at in chapters, so that memory does not grow with them. A short one is one chapter.
std::vector<series::Interval> chapters_of(const AnalyzedRun& run, series::Interval whole);
/// The meter's power in that time, and a few points on either side of it.
Result<std::vector<series::Point>> load_meter(const AnalyzeInput& input, const Meter& meter, series::Interval time);
/// The reads of its energy counter, likewise; empty where it has none.
Result<std::vector<series::Point>> load_counter(const AnalyzeInput& input, const Meter& meter, series::Interval time);
/// What a counter of that scope can be told to be wrong by.
series::CounterOptions counter_options(Scope scope);
/// The power of the whole run, chapter by chapter in order of time: of its one meter, or the sum of its meters on a
/// common grid, plus what was declared. Each point comes once.
Result<> each_chapter(const AnalyzeInput& input, const AnalyzedRun& run,
                      const std::function<void(const series::Series& chapter)>& look);
/// The run's power for a figure, fed chapter by chapter: as it is, or where there is more of it than a screen can show
/// the mean of each column with the range around it.
class PowerLine {
 public:
  explicit PowerLine(const AnalyzedRun& run);
  void add(const series::Series& chapter);
  void draw(report::Plot& plot) const;

 private:
  struct Column {
    double sum_x = 0, sum = 0, low = 0, high = 0;
    std::uint64_t count = 0;
    bool behind_gap = false;
  };

  const AnalyzedRun& run_;
  bool dense_ = false;
  bool gap_ = false;
  report::PlotLine line_;
  std::vector<Column> columns_;
};

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
