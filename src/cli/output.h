#pragma once
// Where results go: stdout, or a file that appears whole or not at all. Never progress, never logs.

#include <string>
#include <string_view>

#include "base/filesystem.h"
#include "base/result.h"

namespace flyball::cli {

class Output {
 public:
  /// `path` "-" or empty is stdout.
  Output(Filesystem& files, std::string_view path);

  /// To stdout at once; to a file only with `commit`. A closed pipe or a full disk is an error.
  Result<> write(std::string_view text);
  /// The result is complete. Called by the program after a command that succeeded; a command that ends with an error
  /// but has a complete result to show (a failed check, say) calls it itself. A second call does nothing.
  Result<> commit();

  /// For a command that makes the file itself, as it grows: the path, empty for stdout. What is written from then on
  /// goes to stdout.
  std::string take_path();

  bool to_stdout() const { return path_.empty(); }

 private:
  Result<> write_to_device();

  Filesystem& files_;
  std::string path_;
  std::string collected_;
  bool committed_ = false;
};

}  // namespace flyball::cli
