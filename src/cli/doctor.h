#pragma once
// `flyball doctor`: what is here, what is wrong, how to mend it. Reads only. Each check is a Finding: info = in order,
// warning = works with less, alarm = does not work.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "cli/app.h"
#include "core/result_types.h"

namespace flyball::cli {

/// Checks of the GPUs behind one kind of driver; most urgent first.
struct GpuDoctor {
  std::string_view source;  ///< "nvml", as --source takes it
  std::vector<Finding> (*check)(Context& context, const std::string& nvml_library);
};
/// In the order in which `--source auto` would take them: the first is taken. Filled in doctor_sources.cc.
std::span<const GpuDoctor> gpu_doctors();

// The machine without its GPUs, check by check.
Finding check_kernel(Filesystem& files);
Finding check_container(Filesystem& files);
Finding check_user();
Finding check_state_dir(const std::string& folder);
Finding check_disk_space(const std::string& folder);
/// What the guard says of itself: whether it answers, what it holds, what it could not do.
std::vector<Finding> check_guard(const std::string& path);
/// From its status document, which comes from another process.
std::vector<Finding> guard_findings(const std::string& status, const std::string& path);
Finding check_clock(const Clock& clock);
Finding check_config(const std::string& path, Filesystem& files);

}  // namespace flyball::cli
