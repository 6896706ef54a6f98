// The CSV reader, and with it the decompressors: bytes of any kind in pieces of any size. Cells must lie in their row
// and rows must count upwards.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/csv.h"
#include "base/decimal.h"

namespace {

using namespace flyball;

class Pieces final : public ByteSource {
 public:
  Pieces(ByteSource& whole, std::size_t most) : whole_(whole), most_(most) {}
  Result<std::size_t> read(char* to, std::size_t size) override { return whole_.read(to, std::min(size, most_)); }

 private:
  ByteSource& whole_;
  std::size_t most_;
};

void check(bool holds) {
  if (!holds) std::abort();
}

std::uint64_t read_all(std::string_view bytes, std::size_t most, char separator) {
  const auto whole = bytes_in_memory(bytes);
  Pieces pieces(*whole, most);
  CsvReader reader(pieces, {separator, 4096, 8});
  CsvRow row;
  std::uint64_t hash = 0;
  std::uint64_t last = 0;
  for (;;) {
    const auto more = reader.next(row);
    // What a damaged stream gives before its damage depends on the size of the pieces.
    if (!more || !*more) return whole->damage().empty() ? hash : 0;
    check(row.line > last);
    last = row.line;
    check(row.defect.empty() ? !row.cells.empty() : row.cells.empty());
    for (const auto cell : row.cells) {
      check(cell.data() >= row.text.data() && cell.data() + cell.size() <= row.text.data() + row.text.size());
      double value = 0;
      const char* at = cell.data();
      if (parse_decimal(cell, value)) check(std::isfinite(value));
      (void)take_padded_decimal(at, cell.data() + cell.size(), value);
      for (const char c : cell) hash = hash * 31 + static_cast<unsigned char>(c);
    }
    hash = hash * 31 + row.line + row.cells.size();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const char separator = ",;\t"[data[0] % 3];
  check(read_all(bytes, 1 + data[0] / 3, separator) == read_all(bytes, 1 << 20, separator));
  return 0;
}
