#pragma once
// Bytes of a file or of memory, block by block, decompressed on the way. Compression is known by its first bytes,
// never by the name.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flyball {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Up to `size` bytes; 0 at the end. An error means that the bytes could not be got at all.
  virtual Result<std::size_t> read(char* to, std::size_t size) = 0;
  /// Where a compressed stream ended before its end or could not be decoded any further: what was lost, in words.
  /// Empty after a sound end. Meaningful once `read` has returned 0.
  virtual std::string damage() const { return {}; }
};

/// gzip (several members too) and zstd (several frames, windows up to 32 MiB) are decompressed, all else is passed on.
Result<std::unique_ptr<ByteSource>> open_bytes(const std::string& path);
/// As they lie in the file.
Result<std::unique_ptr<ByteSource>> open_raw_bytes(const std::string& path);
/// `bytes` must outlive the source.
std::unique_ptr<ByteSource> bytes_in_memory(std::string_view bytes);
std::unique_ptr<ByteSource> raw_bytes_in_memory(std::string_view bytes);
/// `head`, then the rest: for bytes that were read ahead to see what they are.
std::unique_ptr<ByteSource> bytes_with_head(std::string head, std::unique_ptr<ByteSource> rest);

}  // namespace flyball
