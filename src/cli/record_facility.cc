#include "cli/record_facility.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/progress.h"
#include "report/json.h"
#include "series/facility_rows.h"
#include "twin/facility.h"

namespace flyball::cli {
namespace {

/// Jobs that run at one time in a simulated building.
constexpr std::size_t kJobs = 8;

}  // namespace

Result<> record_facility(const FacilityTwinOptions& options, Seconds interval, const std::string& path,
                         Context& context) {
  FLYBALL_ASSIGN(twin::FacilitySetup setup, facility_setup(options, context));
  setup.parameters.period = interval;
  const std::string source = fmt::format("{} seed {}", options.scenario, options.seed);
  if (context.options.dry_run)
    return say_plan(context, "record",
                    {{"Source", source},
                     {"Interval", format(interval)},
                     {"Duration", format(setup.length)},
                     {"Samples", "would be written: " + path}});
  if (context.files.exists(path))
    return fail(ErrorCode::input, "exists already, and simulated time would begin in it again", path,
                "name another file");
  FLYBALL_ASSIGN(twin::Facility building, twin::Facility::make(setup));
  const std::size_t racks = setup.parameters.racks();
  FLYBALL_ASSIGN(const auto file, context.files.open_append(path));
  std::string text = series::facility_line(series::facility_header(racks, kJobs));
  Progress progress(context.options, context.clock);
  constexpr std::size_t kAtOnce = std::size_t{1} << 20;
  for (std::uint64_t i = 0; i < building.steps(); ++i) {
    const FacilitySample& sample = building.step();
    text += series::facility_line(series::facility_cells(sample, racks, kJobs));
    if (text.size() < kAtOnce) continue;
    FLYBALL_TRY(file->append(text));
    text.clear();
    progress.show(fmt::format("simulating: {} of {}", format(sample.at - setup.start), format(setup.length)));
  }
  FLYBALL_TRY(file->append(text));
  FLYBALL_TRY(file->sync());
  progress.clear();
  if (!context.options.json)
    return context.out.write(fmt::format("{}: {} samples of {}, every {} over {}\n", path, building.steps(), source,
                                         format(interval), format(setup.length)));
  report::Json made = report::document("record");
  made["file"] = report::text(path);
  made["source"] = report::text(source);
  made["duration_s"] = setup.length.value();
  made["interval_s"] = interval.value();
  made["rounds"] = building.steps();
  return context.out.write(report::dump(made));
}

}  // namespace flyball::cli
