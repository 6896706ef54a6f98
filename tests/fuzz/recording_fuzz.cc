// The recording's reader. The first byte says whether the bytes are taken as they are, or as payloads of blocks that
// are sealed here with right checksums, for no fuzzer finds a checksum.
#include "series/recording_reader.h"

#include <algorithm>

#include "base/checksum.h"
#include "series/recording_format.h"
#include "telemetry_fuzz.h"

namespace {

using namespace flyball;
using namespace flyball::series;

std::string sealed(std::uint8_t type, std::uint8_t codec, std::uint32_t raw_bytes, std::string_view payload) {
  fbr::Bytes header;
  header.u8(type);
  header.u8(codec);
  header.u8(0);
  header.u8(0);
  header.u32(static_cast<std::uint32_t>(payload.size()));
  header.u32(raw_bytes);
  header.u32(crc32(payload));
  const std::string unsealed = std::string(fbr::kSync) + header.str();
  fbr::Bytes crc;
  crc.u32(crc32(unsealed));
  return unsealed + crc.str() + std::string(payload);
}

std::string file_header() {
  fbr::Bytes version;
  version.u32(fbr::kVersion);
  const std::string unsealed = std::string(fbr::kMagic) + version.str();
  fbr::Bytes crc;
  crc.u32(crc32(unsealed));
  return unsealed + crc.str();
}

/// Type, codec, length, payload, and so on until the bytes end.
std::string as_blocks(std::string_view bytes) {
  std::string file = file_header();
  while (bytes.size() >= 3) {
    const auto type = static_cast<std::uint8_t>(static_cast<unsigned char>(bytes[0]) % 7);
    const auto codec = static_cast<std::uint8_t>(static_cast<unsigned char>(bytes[1]) & 1);
    const std::size_t length = std::min<std::size_t>(static_cast<unsigned char>(bytes[2]) * 4U, bytes.size() - 3);
    const auto payload = bytes.substr(3, length);
    const std::uint32_t raw =
        codec == 0 ? static_cast<std::uint32_t>(length) : static_cast<unsigned char>(bytes[1]) * 64U;
    file += sealed(type, codec, raw, payload);
    bytes.remove_prefix(3 + length);
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string file;
  switch (data[0] % 3) {
    case 0:
      file = bytes;
      break;
    case 1:
      file = file_header() + std::string(bytes);
      break;
    default:
      file = as_blocks(bytes);
  }
  const auto source = raw_bytes_in_memory(file);
  CheckingSink sink;
  RecordingDetails details;
  const auto summary = read_recording(*source, "fuzz", sink, details);
  if (summary && details.lost_bytes > file.size()) std::abort();
  return 0;
}
