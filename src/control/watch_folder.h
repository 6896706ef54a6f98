#pragma once
// The folder of a watch: one process at a time, one meaning. What a watch was told is kept beside its state, for events
// that were numbered under another reference or map cannot be gone on with.

#include <string>
#include <utility>
#include <vector>

#include "base/filesystem.h"
#include "base/lock_file.h"
#include "base/result.h"

namespace flyball::control {

/// Error `refused`, with the other's process number, while another watch has this folder.
Result<LockFile> lock_watch_folder(const std::string& folder);

/// Name of the option and what it was. Error `input` where the folder was made with another value; a folder of before
/// this was kept takes the given ones.
Result<> keep_watch_options(const std::string& folder, const std::vector<std::pair<std::string, std::string>>& options,
                            Filesystem& files);

/// Those that the file had when this was last called, and has no more.
Result<std::vector<std::string>> lost_columns(const std::string& folder, const std::vector<std::string>& now,
                                              Filesystem& files);

}  // namespace flyball::control
