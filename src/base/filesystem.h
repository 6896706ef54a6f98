#pragma once
// The only door to files that must survive a crash. Injected, so that tests fill disks and cut power.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flyball {

/// A file that only grows.
class AppendFile {
 public:
  virtual ~AppendFile() = default;
  /// All of `bytes` or an error; after an error the tail of the file is unspecified and the caller must expect a torn
  /// record.
  virtual Result<> append(std::string_view bytes) = 0;
  /// Returns when the bytes appended so far survive a power cut.
  virtual Result<> sync() = 0;
};

class Filesystem {
 public:
  virtual ~Filesystem() = default;
  /// Whole content; an absent file is an error with code `unsupported`, so that callers can tell it from a failed read.
  virtual Result<std::string> read(const std::string& path, std::size_t limit_bytes) = 0;
  /// The first `bytes` of a file, fewer if it is shorter; to see what a file of any size is.
  virtual Result<std::string> read_head(const std::string& path, std::size_t bytes) = 0;
  virtual bool exists(const std::string& path) = 0;
  virtual Result<std::unique_ptr<AppendFile>> open_append(const std::string& path) = 0;
  /// Replaces the file as a whole: temporary file, fsync, rename, fsync. An absent folder: `input`, as in open_append.
  virtual Result<> write_atomically(const std::string& path, std::string_view bytes) = 0;
  /// Gives a file that is complete and synced its name, in the place of what had it. Lasts when it returns.
  virtual Result<> rename(const std::string& from, const std::string& to) = 0;
  virtual Result<> remove(const std::string& path) = 0;
  virtual Result<> make_folders(const std::string& path) = 0;
  /// Names (not paths) in a folder, sorted.
  virtual Result<std::vector<std::string>> list(const std::string& folder) = 0;
};

/// The machine's own.
Filesystem& system_filesystem();

}  // namespace flyball
