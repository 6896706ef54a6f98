#include "cli/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace flyball::cli {

namespace {

Result<> write_all(int descriptor, const std::string& name, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(ErrorCode::failed, fmt::format("cannot write: {}", std::strerror(errno)), name);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace

Output::Output(Filesystem& files, std::string_view path) : files_(files), path_(path == "-" ? "" : path) {}

Result<> Output::write(std::string_view text) {
  if (to_stdout()) return write_all(STDOUT_FILENO, "stdout", text);
  collected_ += text;
  return {};
}

std::string Output::take_path() { return std::exchange(path_, {}); }

Result<> Output::commit() {
  if (to_stdout() || committed_) return {};
  committed_ = true;
  struct stat info {};
  if (::stat(path_.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return write_to_device();
  return files_.write_atomically(path_, collected_);
}

/// A pipe or a device is written to; only files are replaced.
Result<> Output::write_to_device() {
  const int descriptor = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return fail(ErrorCode::failed, fmt::format("cannot open: {}", std::strerror(errno)), path_);
  auto written = write_all(descriptor, path_, collected_);
  ::close(descriptor);
  return written;
}

}  // namespace flyball::cli
