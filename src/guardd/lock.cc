#include "guardd/lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

namespace flyball::guardd {

Result<guard::Descriptor> take_lock(const std::string& journal) {
  const std::string path = journal + ".lock";
  guard::Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  if (!file.ok()) {
    const bool denied = errno == EACCES || errno == EPERM || errno == EROFS;
    return fail(ErrorCode::failed, fmt::format("cannot open: {}", std::strerror(errno)), path,
                denied ? "run as root: `sudo flyball-guard …`" : "create its folder");
  }
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) {
    return fail(ErrorCode::refused, "another guard runs with this journal", path, "stop that one first");
  }
  return fail(ErrorCode::failed, fmt::format("cannot lock: {}", std::strerror(errno)), path);
}

}  // namespace flyball::guardd
