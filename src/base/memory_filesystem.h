#pragma once
// A disk in memory for tests and simulations: it can be full, refuse syncs, tear the last write and lose power.

#include <map>

#include "base/filesystem.h"

namespace flyball {

class MemoryFilesystem final : public Filesystem {
 public:
  Result<std::string> read(const std::string& path, std::size_t limit_bytes) override;
  Result<std::string> read_head(const std::string& path, std::size_t bytes) override;
  bool exists(const std::string& path) override { return files_.contains(path); }
  Result<std::unique_ptr<AppendFile>> open_append(const std::string& path) override;
  Result<> write_atomically(const std::string& path, std::string_view bytes) override;
  Result<> rename(const std::string& from, const std::string& to) override;
  Result<> remove(const std::string& path) override;
  Result<> make_folders(const std::string&) override { return {}; }
  Result<std::vector<std::string>> list(const std::string& folder) override;

  /// From now on at most this many more bytes fit; the write that does not fit is torn where the space ends.
  void set_space_left(std::size_t bytes) { space_left_ = bytes; }
  void set_sync_fails(bool fails) { sync_fails_ = fails; }
  /// What was not synced is cut to `keep_unsynced` bytes of it per file (a torn tail).
  void lose_power(std::size_t keep_unsynced = 0);
  /// For tests that damage files on purpose.
  std::string& content(const std::string& path) { return files_[path].bytes; }

 private:
  friend class MemoryAppendFile;
  struct File {
    std::string bytes;
    std::size_t synced = 0;
  };
  Result<> append(const std::string& path, std::string_view bytes);
  Result<> sync(const std::string& path);

  std::map<std::string, File> files_;
  std::size_t space_left_ = static_cast<std::size_t>(-1);
  bool sync_fails_ = false;
};

}  // namespace flyball
