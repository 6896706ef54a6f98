#include "base/lock_file.h"

#include <fmt/format.h>
#include <sys/file.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace flyball {

Result<LockFile> LockFile::take(const std::string& path, const LockWords& words) {
  Descriptor file = open_descriptor(path, O_RDWR | O_CREAT, 0640);
  if (!file.ok())
    return fail(ErrorCode::failed, fmt::format("cannot open: {}", std::strerror(errno)), path, words.no_file);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK)
      return fail(ErrorCode::failed, fmt::format("cannot lock: {}", std::strerror(errno)), path);
    std::array<char, 32> other{};
    const ssize_t length = ::pread(file.get(), other.data(), other.size(), 0);
    const auto pid = parse_int({other.data(), length > 0 ? static_cast<std::size_t>(length) : 0});
    return fail(ErrorCode::refused, words.held + (pid ? fmt::format(", process {}", *pid) : ""), path, words.end_it);
  }
  // Only for that message: without it the lock holds all the same.
  const std::string mine = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file.get(), 0) == 0) (void)!::pwrite(file.get(), mine.data(), mine.size(), 0);
  return LockFile(std::move(file));
}

}  // namespace flyball
