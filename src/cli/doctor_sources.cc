#include "cli/doctor.h"

namespace flyball::cli {

std::span<const GpuDoctor> gpu_doctors() { return {}; }

}  // namespace flyball::cli
