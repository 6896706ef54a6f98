#pragma once
#include <string>

#include "base/descriptor.h"
#include "base/result.h"

namespace flyball {

/// What is said where there is no lock.
struct LockWords {
  const char* held;     ///< "another guard runs with this journal"
  const char* end_it;   ///< remedy for that
  const char* no_file;  ///< remedy where the file cannot be made
};

/// A lock that one process holds. The kernel drops it with the process, however that ends; the file stays.
class LockFile {
 public:
  LockFile() = default;
  /// Error `refused`, with the other's process number, while another one holds it.
  static Result<LockFile> take(const std::string& path, const LockWords& words);

 private:
  explicit LockFile(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

}  // namespace flyball
