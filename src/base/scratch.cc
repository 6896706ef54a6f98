#include "base/scratch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace flyball {
namespace {

std::string folder() {
  const char* named = ::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/var/tmp";
}

tl::unexpected<Error> failed(const std::string& what) {
  return fail(ErrorCode::failed, what + ": " + std::strerror(errno), folder(),
              "make room, or set TMPDIR to a folder that has it");
}

}  // namespace

Scratch::Scratch(Scratch&& other) noexcept
    : in_memory_(other.in_memory_),
      memory_(std::move(other.memory_)),
      size_(other.size_),
      file_(std::exchange(other.file_, -1)) {}

Scratch::~Scratch() {
  if (file_ >= 0) ::close(file_);
}

Result<> Scratch::to_file() {
  std::string name = folder() + "/flyball-XXXXXX";
  file_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) return failed("no temporary file can be made");
  (void)::unlink(name.c_str());
  FLYBALL_TRY(write(memory_));
  memory_ = std::string();
  return {};
}

Result<> Scratch::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(file_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return failed("the temporary file cannot be written");
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return {};
}

Result<std::uint64_t> Scratch::append(std::string_view bytes) {
  if (file_ < 0 && memory_.size() + bytes.size() > in_memory_) FLYBALL_TRY(to_file());
  if (file_ >= 0) {
    FLYBALL_TRY(write(bytes));
  } else {
    memory_ += bytes;
  }
  const std::uint64_t at = size_;
  size_ += bytes.size();
  return at;
}

Result<> Scratch::read(std::uint64_t at, char* to, std::size_t size) const {
  if (at + size > size_) return fail(ErrorCode::failed, "a read beyond the temporary file's end");
  if (file_ < 0) {
    std::memcpy(to, memory_.data() + at, size);
    return {};
  }
  while (size > 0) {
    const ssize_t got = ::pread(file_, to, size, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return failed("the temporary file cannot be read");
    to += got;
    at += static_cast<std::uint64_t>(got);
    size -= static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace flyball
