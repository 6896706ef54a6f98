#pragma once
// One table, three faces: terminal, markdown, HTML.

#include <string>
#include <string_view>
#include <vector>

#include "base/stats.h"

namespace flyball::report {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;  ///< numbers: right
};

struct Table {
  std::string caption;  ///< may be empty
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  ///< short rows are filled up with empty cells
};

/// Columns two blanks apart, no blanks at line ends. Rows beyond `most_rows` are counted in a last line.
std::string to_text(const Table& table, std::size_t most_rows = 100'000);
std::string to_markdown(const Table& table);
/// <table> with a caption and scoped headers; the first column heads its row.
std::string to_html(const Table& table);

/// "1,732,045": whole, with separators. "–" if it is not finite.
std::string format_count(double count);
/// "3.42 % (3.10 to 3.74 at 95 %)"
std::string format_percent(const Estimate& fraction, int decimals = 2);

}  // namespace flyball::report
