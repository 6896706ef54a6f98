#pragma once
// A meter's profile as commands name it.

#include <string>

#include "base/result.h"
#include "cli/app.h"
#include "meter/profile.h"

namespace flyball::cli {

/// A file, or the name of one in presets/meters.
Result<meter::Profile> load_meter_profile(const std::string& name, Context& context);

}  // namespace flyball::cli
