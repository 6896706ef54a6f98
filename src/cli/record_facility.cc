#include "cli/record_facility.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "report/json.h"
#include "series/facility_rows.h"
#include "twin/facility.h"

namespace flyball::cli {
namespace {

/// Jobs that run at one time in a simulated building.
constexpr std::size_t kJobs = 8;

/// A file that has another name until it is complete; one that is not is removed.
class PartFile {
 public:
  PartFile(Filesystem& files, std::string path)
      : files_(files), path_(std::move(path)), part_(fmt::format("{}.{}.part", path_, ::getpid())) {}
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile() {
    file_.reset();
    if (files_.exists(part_)) (void)files_.remove(part_);
  }
  Result<> open() {
    auto file = files_.open_append(part_);
    if (!file) return said(fail(std::move(file.error())));
    file_ = *std::move(file);
    return {};
  }
  Result<> append(const std::string& text) { return said(file_->append(text)); }
  Result<> finish() {
    FLYBALL_TRY(said(file_->sync()));
    return files_.rename(part_, path_);
  }

 private:
  /// Of the name that the user gave.
  Result<> said(Result<> done) const {
    if (done) return done;
    done.error().where = path_;
    done.error().what += "; nothing was written";
    return done;
  }

  Filesystem& files_;
  std::string path_, part_;
  std::unique_ptr<AppendFile> file_;
};

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
  PartFile file(context.files, path);
  FLYBALL_TRY(file.open());
  const StopSignal stop;
  std::string text = series::facility_line(series::facility_header(racks, kJobs));
  Progress progress(context.options, context.clock);
  constexpr std::size_t kAtOnce = std::size_t{1} << 20;
  for (std::uint64_t i = 0; i < building.steps(); ++i) {
    const FacilitySample& sample = building.step();
    text += series::facility_line(series::facility_cells(sample, racks, kJobs));
    if (text.size() < kAtOnce) continue;
    if (stop.received()) return {};  // half a building is nothing to compare with
    FLYBALL_TRY(file.append(text));
    text.clear();
    progress.show(fmt::format("simulating: {} of {}", format(sample.at - setup.start), format(setup.length)));
  }
  FLYBALL_TRY(file.append(text));
  FLYBALL_TRY(file.finish());
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
