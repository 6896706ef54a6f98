#pragma once
// Files of "key = value" lines that come with the program; '#' begins a comment, which after a value is its source.

#include <string>
#include <string_view>
#include <vector>

#include "base/filesystem.h"
#include "base/result.h"

namespace flyball::twin {

struct ConfEntry {
  std::string key, value, comment;
  std::size_t line = 0;
};

struct Conf {
  std::string path;
  std::vector<ConfEntry> entries;

  /// Of the first entry of that key; empty where there is none.
  std::string value(std::string_view key) const;
};

/// `kind` is for messages: "there is no scenario 'x'; there are …".
Result<Conf> read_conf(Filesystem& files, const std::string& folder, std::string_view kind, const std::string& name);
/// Of the files NAME.conf in a folder.
Result<std::vector<std::string>> conf_names(Filesystem& files, const std::string& folder);
/// The same result, said of that line.
Result<> located(Result<> result, const std::string& path, std::size_t line);

}  // namespace flyball::twin
