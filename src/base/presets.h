#pragma once
#include <string>

#include "base/result.h"

namespace flyball {

/// The folder of fitted curves and scenarios that come with the program: $FLYBALL_PRESETS, else share/flyball/presets
/// beside an installed program, else presets/ of the checkout that it was built in.
Result<std::string> presets_folder();

}  // namespace flyball
