#include "base/memory_filesystem.h"

#include <algorithm>

namespace flyball {

class MemoryAppendFile final : public AppendFile {
 public:
  MemoryAppendFile(MemoryFilesystem& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
  Result<> append(std::string_view bytes) override { return disk_.append(path_, bytes); }
  Result<> sync() override { return disk_.sync(path_); }

 private:
  MemoryFilesystem& disk_;
  std::string path_;
};

Result<std::string> MemoryFilesystem::read(const std::string& path, std::size_t limit_bytes) {
  const auto found = files_.find(path);
  if (found == files_.end()) return fail(ErrorCode::unsupported, "cannot open: no such file", path);
  if (found->second.bytes.size() > limit_bytes) {
    return fail(ErrorCode::input, "file is larger than " + std::to_string(limit_bytes) + " bytes", path);
  }
  return found->second.bytes;
}

Result<std::string> MemoryFilesystem::read_head(const std::string& path, std::size_t bytes) {
  const auto found = files_.find(path);
  if (found == files_.end()) return fail(ErrorCode::unsupported, "cannot open: no such file", path);
  return found->second.bytes.substr(0, bytes);
}

Result<std::unique_ptr<AppendFile>> MemoryFilesystem::open_append(const std::string& path) {
  files_[path];
  return std::make_unique<MemoryAppendFile>(*this, path);
}

Result<> MemoryFilesystem::append(const std::string& path, std::string_view bytes) {
  const std::size_t fits = std::min(bytes.size(), space_left_);
  files_[path].bytes.append(bytes.substr(0, fits));
  if (space_left_ != static_cast<std::size_t>(-1)) space_left_ -= fits;
  if (fits < bytes.size()) return fail(ErrorCode::failed, "cannot append: no space left", path, "free some space");
  return {};
}

Result<> MemoryFilesystem::sync(const std::string& path) {
  if (sync_fails_) return fail(ErrorCode::failed, "cannot sync: input/output error", path);
  files_[path].synced = files_[path].bytes.size();
  return {};
}

Result<> MemoryFilesystem::write_atomically(const std::string& path, std::string_view bytes) {
  if (sync_fails_) return fail(ErrorCode::failed, "cannot sync: input/output error", path);
  if (bytes.size() > space_left_)
    return fail(ErrorCode::failed, "cannot write: no space left", path, "free some space");
  files_[path] = File{std::string(bytes), bytes.size()};
  return {};
}

Result<> MemoryFilesystem::rename(const std::string& from, const std::string& to) {
  if (sync_fails_) return fail(ErrorCode::failed, "cannot sync: input/output error", to);
  auto found = files_.extract(from);
  if (found.empty()) return fail(ErrorCode::unsupported, "cannot rename: no such file", from);
  files_[to] = std::move(found.mapped());
  return {};
}

Result<> MemoryFilesystem::remove(const std::string& path) {
  if (files_.erase(path) == 0) return fail(ErrorCode::unsupported, "cannot remove: no such file", path);
  return {};
}

Result<std::vector<std::string>> MemoryFilesystem::list(const std::string& folder) {
  std::vector<std::string> names;
  const std::string prefix = folder.ends_with('/') ? folder : folder + '/';
  for (const auto& [path, file] : files_) {
    if (path.starts_with(prefix) && path.find('/', prefix.size()) == std::string::npos) {
      names.push_back(path.substr(prefix.size()));
    }
  }
  return names;
}

void MemoryFilesystem::lose_power(std::size_t keep_unsynced) {
  for (auto& [path, file] : files_) {
    file.bytes.resize(std::min(file.bytes.size(), file.synced + keep_unsynced));
    file.synced = file.bytes.size();
  }
}

}  // namespace flyball
