#pragma once
// What `flyball doctor` says of the GPUs: what is here, what is wrong with it, and how to mend it. Reads only.

#include <vector>

#include "base/clock.h"
#include "base/filesystem.h"
#include "core/driver.h"
#include "core/result_types.h"

namespace flyball::cli {

/// Where the machine is looked at, so that tests describe one.
struct GpuDoctorPlace {
  Driver& driver;
  Clock& clock;
  Filesystem& files;
  bool is_root = false;
};

/// Most urgent first. Without a usable driver, one finding that says why.
std::vector<Finding> doctor_gpus(const GpuDoctorPlace& place);

/// Programs and units on this machine that set, or may set, the limits of GPUs.
std::vector<Finding> doctor_limit_writers(const GpuDoctorPlace& place);

}  // namespace flyball::cli
