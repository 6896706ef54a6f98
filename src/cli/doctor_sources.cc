#include <unistd.h>

#include <array>

#include "base/memory_filesystem.h"
#include "base/presets.h"
#include "cli/doctor.h"
#include "cli/doctor_gpu.h"
#include "device/twin/twin_driver.h"
#include "device/worker/worker_driver.h"
#include "twin/scenario.h"

namespace flyball::cli {
namespace {

std::vector<Finding> check_nvml(Context& context, const std::string& nvml_library) {
  // A call that hangs is a finding here, not the end of the examination; and whoever waits for it wants to know soon:
  // after 15 s at most boards that do not open are named, however many they are.
  worker::WorkerOptions how;
  how.list_patience = Seconds(3);
  how.settle = Seconds(12);
  how.start_deadline = Seconds(15);
  const auto driver = worker::make_nvml_in_workers(nvml_library, context.clock, how);
  const GpuDoctorPlace place{*driver, context.clock, context.files, ::geteuid() == 0};
  std::vector<Finding> found = doctor_gpus(place);
  const std::vector<Finding> writers = doctor_limit_writers(place);
  found.insert(found.end(), writers.begin(), writers.end());
  return found;
}

/// The built-in twin needs no machine: its files, and that its boards answer.
std::vector<Finding> check_twin(Context& context, const std::string&) {
  constexpr const char* kScenario = "v100-bert";
  Finding broken;
  broken.severity = Severity::alarm;
  broken.code = "twin";
  const auto presets = presets_folder();
  auto scenario =
      presets ? twin::load_scenario(context.files, *presets, kScenario) : Result<twin::Scenario>(fail(presets.error()));
  auto machine = scenario ? scenario->build() : Result<twin::Machine>(fail(scenario.error()));
  if (!machine) {
    broken.what = machine.error().message();
    broken.remedy = machine.error().remedy;
    return {broken};
  }
  VirtualClock clock;
  MemoryFilesystem nothing;
  device::TwinDriver driver(*machine, clock);
  clock.advance(Seconds(5));  // sensors have an average to show
  std::vector<Finding> found = doctor_gpus({driver, clock, nothing, true});
  for (Finding& finding : found) finding.since = context.clock.wall();
  return found;
}

}  // namespace

std::span<const GpuDoctor> gpu_doctors() {
  static constexpr std::array doctors = {GpuDoctor{"nvml", check_nvml}, GpuDoctor{"twin", check_twin}};
  return doctors;
}

}  // namespace flyball::cli
