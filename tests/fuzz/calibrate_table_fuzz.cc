// Columns of anyone's CSV: every row has all values, those of needed columns within their range, and times rise.
#include "cli/calibrate_table.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flyball;
  if (size == 0) return 0;
  const auto bytes = bytes_in_memory(std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  const cli::StampRule stamp = {"time", (data[0] & 4) != 0 ? "Europe/Berlin" : "",
                                (data[0] & 8) != 0 ? Fold::earlier : Fold::refuse};
  const auto table = cli::read_table(*bytes, ",;\t"[data[0] % 3], "x.csv", stamp,
                                     {{"load", 0, 1e6}, {"#3", -50, 60, true}, {"word", 0, 0, false, true}});
  if (!table) {
    check(!table.error().what.empty());
    return 0;
  }
  for (std::size_t i = 0; i < table->rows.size(); ++i) {
    const cli::TableRow& row = table->rows[i];
    check(row.values.size() == 3 && row.line > 1);
    check(row.values[0] >= 0 && row.values[0] <= 1e6);
    check(std::isnan(row.values[1]) || (row.values[1] >= -50 && row.values[1] <= 60));
    check(row.values[2] >= 0 && row.values[2] < static_cast<double>(table->words.size()));
    if (i > 0) check(table->rows[i - 1].at < row.at);
  }
  return 0;
}
