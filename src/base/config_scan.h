#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flyball {

/// What config.h says is refused before the parser of TOML sees it. At most `most` errors.
std::vector<Error> scan_config(std::string_view text, const std::string& name, std::size_t most);

/// Whether the line (from 1 on) begins within brackets that an earlier one opened.
bool begins_in_brackets(std::string_view text, std::size_t line);

}  // namespace flyball
