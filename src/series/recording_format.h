#pragma once
// The bytes of a recording, as doc/format-recording.md lays them down. Private to its writer and reader.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/units.h"

namespace flyball::series::fbr {

// As in PNG: a byte above 127, line ends of both kinds and a DOS end of file show what mangled the file.
constexpr std::string_view kMagic(
    "\x89"
    "FBR\r\n\x1a\n",
    8);
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kFileHeaderBytes = 16;

constexpr std::string_view kSync(
    "\xfb"
    "BLK",
    4);
constexpr std::size_t kBlockHeaderBytes = 24;
constexpr std::uint32_t kMaxPayloadBytes = 4 << 20;  ///< stored and decompressed
constexpr std::size_t kMaxTextBytes = 4096;
constexpr std::uint64_t kMaxPointsPerBlock = 1 << 18;

enum class BlockType : std::uint8_t { session = 1, series = 2, points = 3, events = 4, end = 5 };
enum class Codec : std::uint8_t { raw = 0, zstd = 1 };
enum class ValueCoding : std::uint8_t { float64 = 0, thousandths = 1 };

/// Little endian whatever the machine.
class Bytes {
 public:
  void u8(std::uint8_t v) { text_ += static_cast<char>(v); }
  void u32(std::uint32_t v) { fixed(v, 4); }
  void u64(std::uint64_t v) { fixed(v, 8); }
  void i64(std::int64_t v) { fixed(static_cast<std::uint64_t>(v), 8); }
  void f64(double v) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &v, sizeof bits);
    fixed(bits, 8);
  }
  void varint(std::uint64_t v) {
    for (; v >= 0x80; v >>= 7) u8(static_cast<std::uint8_t>(v | 0x80));
    u8(static_cast<std::uint8_t>(v));
  }
  /// Zigzag: small numbers of either sign are short.
  void signed_varint(std::int64_t v) {
    varint((static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63));
  }
  void text(std::string_view v) {
    v = v.substr(0, kMaxTextBytes);
    varint(v.size());
    text_ += v;
  }
  const std::string& str() const { return text_; }

 private:
  void fixed(std::uint64_t v, int bytes) {
    for (int i = 0; i < bytes; ++i) text_ += static_cast<char>(v >> (8 * i));
  }
  std::string text_;
};

/// Reads what Bytes wrote. After a read beyond the end or a malformed number it is not `ok` and gives zeros.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : left_(bytes) {}
  bool ok() const { return ok_; }
  std::size_t left() const { return left_.size(); }
  std::uint8_t u8() { return static_cast<std::uint8_t>(fixed(1)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(fixed(4)); }
  std::uint64_t u64() { return fixed(8); }
  std::int64_t i64() { return static_cast<std::int64_t>(fixed(8)); }
  double f64() {
    const std::uint64_t bits = fixed(8);
    double v = 0;
    std::memcpy(&v, &bits, sizeof v);
    return v;
  }
  std::uint64_t varint() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint64_t byte = fixed(1);
      v |= (byte & 0x7f) << shift;
      if (byte < 0x80) return shift == 63 && byte > 1 ? broken() : v;
    }
    return broken();
  }
  std::int64_t signed_varint() {
    const std::uint64_t v = varint();
    return static_cast<std::int64_t>((v >> 1) ^ (0 - (v & 1)));
  }
  std::string_view text() {
    const std::uint64_t size = varint();
    if (size > kMaxTextBytes || size > left_.size()) return broken(), std::string_view();
    const auto v = left_.substr(0, size);
    left_.remove_prefix(size);
    return v;
  }

 private:
  std::uint64_t broken() {
    ok_ = false;
    left_ = {};
    return 0;
  }
  std::uint64_t fixed(std::size_t bytes) {
    if (left_.size() < bytes) return broken();
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      v |= static_cast<std::uint64_t>(static_cast<unsigned char>(left_[i])) << (8 * i);
    }
    left_.remove_prefix(bytes);
    return v;
  }
  std::string_view left_;
  bool ok_ = true;
};

}  // namespace flyball::series::fbr
