#include <unistd.h>

#include <array>

#include "cli/doctor.h"
#include "cli/doctor_gpu.h"
#include "device/worker/worker_driver.h"

namespace flyball::cli {
namespace {

std::vector<Finding> check_nvml(Context& context, const std::string& nvml_library) {
  // A call that hangs is a finding here, not the end of the examination.
  const auto driver = worker::make_nvml_in_workers(nvml_library, context.clock);
  const GpuDoctorPlace place{*driver, context.clock, context.files, ::geteuid() == 0};
  std::vector<Finding> found = doctor_gpus(place);
  const std::vector<Finding> writers = doctor_limit_writers(place);
  found.insert(found.end(), writers.begin(), writers.end());
  return found;
}

}  // namespace

std::span<const GpuDoctor> gpu_doctors() {
  static constexpr std::array doctors = {GpuDoctor{"nvml", check_nvml}};
  return doctors;
}

}  // namespace flyball::cli
