#include "control/watch_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace flyball::control {
namespace {

constexpr std::size_t kMostText = std::size_t{1} << 22;

}  // namespace

Result<guard::Descriptor> lock_watch_folder(const std::string& folder) {
  const std::string path = folder + "/lock";
  guard::Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  if (!file.ok())
    return fail(ErrorCode::failed, fmt::format("cannot open: {}", std::strerror(errno)), path,
                "name a folder that can be written with --state-dir");
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK)
      return fail(ErrorCode::failed, fmt::format("cannot lock: {}", std::strerror(errno)), path);
    std::array<char, 32> other{};
    const ssize_t length = ::pread(file.get(), other.data(), other.size(), 0);
    const std::string_view pid =
        trim(std::string_view(other.data(), length > 0 ? static_cast<std::size_t>(length) : 0));
    return fail(ErrorCode::refused, fmt::format("another watch uses this folder, process {}", pid), folder,
                "end that one first, or name another folder with --state-dir");
  }
  // Only for that message: without it the lock holds all the same.
  const std::string mine = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file.get(), 0) != 0 || ::pwrite(file.get(), mine.data(), mine.size(), 0) < 0) return file;
  return file;
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
