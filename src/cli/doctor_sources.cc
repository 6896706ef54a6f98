#include <unistd.h>

#include <array>

#include "cli/doctor.h"
#include "cli/doctor_gpu.h"
#include "device/nvml/nvml_driver.h"

namespace flyball::cli {
namespace {

std::vector<Finding> check_nvml(Context& context) {
  const auto driver = nvml::make_nvml_driver({}, context.clock);
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
