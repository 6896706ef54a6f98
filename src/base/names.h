#pragma once
// Names that someone typed, and those that there are.

#include <string>
#include <string_view>
#include <vector>

#include "base/filesystem.h"
#include "base/result.h"

namespace flyball {

/// The known name that was probably meant: a third of its letters may be wrong, and two always, but not
/// all. Empty: none is near.
std::string nearest_name(std::string_view said, const std::vector<std::string>& known);
/// A remedy: "did you mean 'x'? There are x, y". The first 50 of `known`.
std::string names_in_words(std::string_view said, const std::vector<std::string>& known);
/// Of the files NAME`ending` in a folder, sorted.
Result<std::vector<std::string>> names_of_files(Filesystem& files, const std::string& folder, std::string_view ending);

}  // namespace flyball
