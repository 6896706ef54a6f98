#pragma once
// Bytes that are put aside and read again in any order: in memory while they are few, then in a file without a name,
// which is gone when the program is.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flyball {

class Scratch {
 public:
  static constexpr std::size_t kInMemory = 8 << 20;

  explicit Scratch(std::size_t in_memory = kInMemory) : in_memory_(in_memory) {}
  ~Scratch();
  Scratch(Scratch&& other) noexcept;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  Scratch& operator=(Scratch&&) = delete;

  /// The place of the first byte. A full disk is an error; the folder is $TMPDIR, or /var/tmp.
  Result<std::uint64_t> append(std::string_view bytes);
  /// Exactly `size` bytes that were appended.
  Result<> read(std::uint64_t at, char* to, std::size_t size) const;
  std::uint64_t size() const { return size_; }

 private:
  Result<> to_file();
  Result<> write(std::string_view bytes);

  std::size_t in_memory_;
  std::string memory_;
  std::uint64_t size_ = 0;
  int file_ = -1;
};

}  // namespace flyball
