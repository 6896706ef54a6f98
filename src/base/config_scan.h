#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flyball {

/// What config.h says is refused before the parser of TOML sees it. At most `most` errors.
std::vector<Error> scan_config(std::string_view text, const std::string& name, std::size_t most);

}  // namespace flyball
