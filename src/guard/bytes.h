#pragma once
// Little-endian bytes for the journal. Reading never goes past the end: after a short read `ok()` is false and all
// further values are zero.

#include <cstdint>
#include <string>
#include <string_view>

namespace flyball::guard {

constexpr std::size_t kLongestText = 1024;

class ByteWriter {
 public:
  void u8(std::uint8_t v) { bytes_.push_back(static_cast<char>(v)); }
  void u16(std::uint16_t v) { number(v, 2); }
  void u32(std::uint32_t v) { number(v, 4); }
  void u64(std::uint64_t v) { number(v, 8); }
  void i64(std::int64_t v) { u64(static_cast<std::uint64_t>(v)); }
  /// u16 length, then the bytes; longer texts are cut at 1,024.
  void text(std::string_view v) {
    v = v.substr(0, kLongestText);
    u16(static_cast<std::uint16_t>(v.size()));
    bytes_.append(v);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void number(std::uint64_t v, int size) {
    for (int i = 0; i < size; ++i) bytes_.push_back(static_cast<char>((v >> (8 * i)) & 0xff));
  }
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  bool at_end() const { return bytes_.empty(); }
  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  std::int64_t i64() { return static_cast<std::int64_t>(number(8)); }
  std::string text() {
    const std::uint16_t size = u16();
    if (size > kLongestText) ok_ = false;
    return std::string(take(size));
  }

 private:
  std::string_view take(std::size_t size) {
    if (size > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  std::uint64_t number(std::size_t size) {
    std::uint64_t v = 0;
    int shift = 0;
    for (const char c : take(size)) {
      v |= static_cast<std::uint64_t>(static_cast<unsigned char>(c)) << shift;
      shift += 8;
    }
    return v;
  }
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace flyball::guard
