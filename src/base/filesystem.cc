#include "base/filesystem.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/descriptor.h"

namespace flyball {
namespace {

auto system_error(std::string_view verb, const std::string& path, int error) {
  const ErrorCode code = error == ENOENT ? ErrorCode::unsupported : ErrorCode::failed;
  std::string remedy;
  if (error == EACCES || error == EPERM || error == EROFS) remedy = "check its owner and mode";
  if (error == ENOSPC || error == EDQUOT) remedy = "free some space on that disk";
  return fail(code, fmt::format("cannot {}: {}", verb, std::strerror(error)), path, remedy);
}

/// Of a file that cannot be made or grown, by the name that its owner gave. Where its folder is missing that name is
/// wrong, and nothing that this machine lacks.
auto write_error(const std::string& path, int error) {
  if (error != ENOENT && error != ENOTDIR) return system_error("write", path, error);
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  return fail(ErrorCode::input, fmt::format("cannot write: {} is no folder", folder), path,
              "make the folder first, or name another");
}

/// 0 or errno.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

class SystemAppendFile final : public AppendFile {
 public:
  explicit SystemAppendFile(std::string path)
      : path_(std::move(path)), file_(open_descriptor(path_, O_WRONLY | O_CREAT | O_APPEND, 0640)) {}
  bool ok() const { return file_.ok(); }
  Result<> append(std::string_view bytes) override {
    if (const int error = write_all(file_.get(), bytes)) return write_error(path_, error);
    return {};
  }
  Result<> sync() override {
    if (::fdatasync(file_.get()) != 0) return system_error("sync", path_, errno);
    return {};
  }

 private:
  std::string path_;
  Descriptor file_;
};

Result<> sync_folder_of(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  const Descriptor handle = open_descriptor(folder, O_RDONLY | O_DIRECTORY);
  if (!handle.ok() || ::fsync(handle.get()) != 0) return system_error("sync", folder, errno);
  return {};
}

class SystemFilesystem final : public Filesystem {
 public:
  Result<std::string> read(const std::string& path, std::size_t limit_bytes) override {
    const Descriptor file = open_descriptor(path, O_RDONLY);
    if (!file.ok()) return system_error("open", path, errno);
    std::string content;
    char block[1 << 16];
    for (;;) {
      const ssize_t n = ::read(file.get(), block, sizeof block);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return system_error("read", path, errno);
      if (n == 0) return content;
      content.append(block, static_cast<std::size_t>(n));
      if (content.size() > limit_bytes) {
        return fail(ErrorCode::input, fmt::format("file is larger than {} bytes", limit_bytes), path);
      }
    }
  }

  Result<std::string> read_head(const std::string& path, std::size_t bytes) override {
    const Descriptor file = open_descriptor(path, O_RDONLY);
    if (!file.ok()) return system_error("open", path, errno);
    std::string head(bytes, '\0');
    std::size_t have = 0;
    while (have < bytes) {
      const ssize_t n = ::read(file.get(), head.data() + have, bytes - have);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return system_error("read", path, errno);
      if (n == 0) break;
      have += static_cast<std::size_t>(n);
    }
    head.resize(have);
    return head;
  }

  bool exists(const std::string& path) override { return ::access(path.c_str(), F_OK) == 0; }

  Result<std::unique_ptr<AppendFile>> open_append(const std::string& path) override {
    const bool is_new = !exists(path);
    auto file = std::make_unique<SystemAppendFile>(path);
    if (!file->ok()) return write_error(path, errno);
    if (is_new) FLYBALL_TRY(sync_folder_of(path));
    return file;
  }

  Result<> write_atomically(const std::string& path, std::string_view bytes) override {
    // A rename would put a file in the place of /dev/null.
    struct stat old {};
    if (::stat(path.c_str(), &old) == 0 && !S_ISREG(old.st_mode)) {
      return fail(ErrorCode::input, "cannot replace: it is not a regular file", path);
    }
    const std::string temporary = fmt::format("{}.{}.new", path, ::getpid());
    {
      const Descriptor file = open_descriptor(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0640);
      if (!file.ok()) return write_error(path, errno);
      int error = write_all(file.get(), bytes);
      if (error == 0 && ::fsync(file.get()) != 0) error = errno;
      if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
      if (error != 0) {
        ::unlink(temporary.c_str());
        return write_error(path, error);
      }
    }
    return sync_folder_of(path);
  }

  Result<> rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return write_error(to, errno);
    return sync_folder_of(to);
  }

  Result<> remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return system_error("remove", path, errno);
    return {};
  }

  Result<> make_folders(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return system_error("create folder", path, error.value());
    return {};
  }

  Result<std::vector<std::string>> list(const std::string& folder) override {
    std::error_code error;
    std::vector<std::string> names;
    std::filesystem::directory_iterator entry(folder, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    if (error) return system_error("list", folder, error.value());
    std::sort(names.begin(), names.end());
    return names;
  }
};

}  // namespace

Filesystem& system_filesystem() {
  static SystemFilesystem filesystem;
  return filesystem;
}

}  // namespace flyball
