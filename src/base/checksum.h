#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace flyball {

/// CRC-32 (IEEE 802.3), for torn and flipped bytes in our own files.
std::uint32_t crc32(std::string_view bytes);
/// SHA-256 in lower-case hexadecimal, for identity and hash chains.
std::string sha256_hex(std::string_view bytes);

}  // namespace flyball
