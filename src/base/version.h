#pragma once
#include <string_view>

namespace flyball {

/// "0.1.0", as the build was told.
std::string_view version();

}  // namespace flyball
