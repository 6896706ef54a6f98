#include "control/watch_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/checksum.h"
#include "base/csv.h"

namespace flyball::control {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;
/// Of rotated files: a folder holds weeks or months of them.
constexpr std::size_t kMostRotated = 1000;

std::string header_of(const std::string& path) {
  WatchInput file;
  if (!file.open(path)) return {};
  const std::string head = file.read(0, LineReader::kDefaultMaxLine).value_or("");
  const std::size_t end = head.find('\n');
  return end == head.npos ? std::string() : head.substr(0, end);
}

}  // namespace

Result<> WatchInput::open(const std::string& path) {
  Descriptor file = open_descriptor(path, O_RDONLY);
  if (!file.ok())
    return fail(errno == ENOENT ? ErrorCode::input : ErrorCode::failed, std::strerror(errno), path,
                "name the file that is written");
  file_ = std::move(file);
  path_ = path;
  return {};
}

std::uint64_t WatchInput::size() const {
  struct stat now {};
  return ::fstat(file_.get(), &now) == 0 ? static_cast<std::uint64_t>(now.st_size) : 0;
}

bool WatchInput::replaced_by(const std::string& path) const {
  struct stat mine {
  }, named{};
  if (::fstat(file_.get(), &mine) != 0 || ::stat(path.c_str(), &named) != 0) return false;
  return (mine.st_ino != named.st_ino || mine.st_dev != named.st_dev) && named.st_size > 0;
}

Result<std::uint64_t> WatchInput::lines_before(std::uint64_t place) const {
  std::uint64_t lines = 0;
  for (std::uint64_t at = 0; at < place;) {
    FLYBALL_ASSIGN(const std::string part, read(at, std::min<std::uint64_t>(kChunk, place - at)));
    if (part.empty()) break;
    lines += static_cast<std::uint64_t>(std::count(part.begin(), part.end(), '\n'));
    at += part.size();
  }
  return lines;
}

Result<std::string> WatchInput::read(std::uint64_t at, std::size_t most) const {
  std::string made(most, '\0');
  const ssize_t n = ::pread(file_.get(), made.data(), most, static_cast<off_t>(at));
  if (n < 0) return fail(ErrorCode::failed, std::strerror(errno), path_);
  made.resize(static_cast<std::size_t>(n));
  return made;
}

Result<std::string> WatchInput::fingerprint() const {
  FLYBALL_ASSIGN(const std::string head, read(0, 2 * LineReader::kDefaultMaxLine));
  const std::size_t header = head.find('\n');
  const std::size_t end = header == head.npos ? head.npos : head.find('\n', header + 1);
  return end == head.npos ? kNoFingerprint : fmt::format("{:08x}", crc32(head.substr(0, end)));
}

std::vector<std::string> rotated_from(const std::string& path, const std::string& fingerprint, std::uint64_t place) {
  namespace fs = std::filesystem;
  if (fingerprint == kNoFingerprint) return {};
  const fs::path named(path);
  const std::string name = named.filename().string();
  const fs::path folder = named.has_parent_path() ? named.parent_path() : fs::path(".");
  std::vector<std::pair<fs::file_time_type, std::string>> beside;
  std::error_code wrong;
  for (fs::directory_iterator entry(folder, wrong), end; !wrong && entry != end; entry.increment(wrong)) {
    const std::string other = entry->path().filename().string();
    std::error_code unknown;
    if (other == name || !other.starts_with(name) || !entry->is_regular_file(unknown)) continue;
    const fs::file_time_type written = entry->last_write_time(unknown);
    if (!unknown) beside.emplace_back(written, entry->path().string());
    if (beside.size() == kMostRotated) break;
  }
  std::sort(beside.begin(), beside.end());
  std::vector<std::string> made;
  std::string header;
  for (const auto& [written, other] : beside) {
    if (made.empty()) {
      WatchInput file;
      if (!file.open(other) || file.fingerprint().value_or("") != fingerprint || file.size() < place) continue;
      header = header_of(other);
      made.push_back(other);
    } else if (header_of(other) == header) {
      made.push_back(other);
    }
  }
  return made;
}

}  // namespace flyball::control
