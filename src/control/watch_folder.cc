#include "control/watch_folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace flyball::control {
namespace {

constexpr std::size_t kMostText = std::size_t{1} << 22;

}  // namespace

Result<LockFile> lock_watch_folder(const std::string& folder) {
  return LockFile::take(folder + "/lock", {"another watch uses this folder",
                                           "end that one first, or name another folder with --state-dir",
                                           "name a folder that can be written with --state-dir"});
}

Result<> keep_watch_options(const std::string& folder, const std::vector<std::pair<std::string, std::string>>& options,
                            Filesystem& files) {
  const std::string path = folder + "/options";
  std::string text;
  for (const auto& [name, value] : options) text += fmt::format("{} {}\n", name, value);
  if (!files.exists(path)) return files.write_atomically(path, text);
  FLYBALL_ASSIGN(const std::string kept, files.read(path, kMostText));
  for (const std::string_view line : split(kept, '\n')) {
    const std::size_t space = line.find(' ');
    if (space == line.npos) continue;
    const std::string_view name = line.substr(0, space), before = line.substr(space + 1);
    const auto given = std::find_if(options.begin(), options.end(), [&](const auto& one) { return one.first == name; });
    if (given == options.end() || given->second == before) continue;
    return fail(ErrorCode::input,
                fmt::format("{} is {} now, and was {} when this state began", name, given->second, before), folder,
                fmt::format("give {} as before, or begin anew in another folder with --state-dir", name));
  }
  return {};
}

Result<std::vector<std::string>> lost_columns(const std::string& folder, const std::vector<std::string>& now,
                                              Filesystem& files) {
  const std::string path = folder + "/columns";
  std::vector<std::string> lost;
  std::string kept, text;
  for (const std::string& name : now) text += name + '\n';
  if (files.exists(path)) {
    FLYBALL_ASSIGN(kept, files.read(path, kMostText));
  }
  for (const std::string_view name : split(kept, '\n'))
    if (!name.empty() && std::find(now.begin(), now.end(), name) == now.end()) lost.emplace_back(name);
  if (text != kept) FLYBALL_TRY(files.write_atomically(path, text));
  return lost;
}

}  // namespace flyball::control
