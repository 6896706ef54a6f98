#pragma once
// The table that a watch follows, as it is open now: it may grow, be cut, or be renamed with another in its place.

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"

namespace flyball::control {

/// Of a file without a whole first row.
inline const std::string kNoFingerprint = "00000000";

class WatchInput {
 public:
  /// Closes the one before; after an error that is still open.
  Result<> open(const std::string& path);
  /// As it was opened; it may have another name by now.
  const std::string& path() const { return path_; }
  std::uint64_t size() const;
  /// Another file has the name `path` by now and holds something: whoever writes has gone over to it.
  bool replaced_by(const std::string& path) const;
  /// How many line ends there are before `place`.
  Result<std::uint64_t> lines_before(std::uint64_t place) const;
  Result<std::string> read(std::uint64_t at, std::size_t most) const;
  /// Its header and first row, which tell it from the one before; kNoFingerprint where they are not whole yet.
  Result<std::string> fingerprint() const;

 private:
  Descriptor file_;
  std::string path_;
};

/// What `path` was rotated to since a file of this fingerprint had the name, that file first, newest last: files beside
/// it whose names begin as its does, with the same header. Empty where that file is not there, or is shorter than it
/// was read (`place`), as one that was compressed.
std::vector<std::string> rotated_from(const std::string& path, const std::string& fingerprint, std::uint64_t place);

}  // namespace flyball::control
