#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace flyball::cli {

Output::Output(Filesystem& files, std::string path) : files_(files), path_(path == "-" ? std::string() : path) {}

Result<> Output::write(std::string_view text) {
  if (!to_stdout()) {
    collected_ += text;
    return {};
  }
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(ErrorCode::failed, fmt::format("cannot write: {}", std::strerror(errno)), "stdout");
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

Result<> Output::commit() {
  if (to_stdout() || committed_) return {};
  committed_ = true;
  return files_.write_atomically(path_, collected_);
}

}  // namespace flyball::cli
