#pragma once
// Columns of anyone's CSV, found by name, with the line of each row. What cannot be read ends it with line, column,
// value and remedy; a cell that says it has no value takes its row out and is counted.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/zone.h"

namespace flyball::cli {

/// A column that is wanted: its name as the header has it, or "#3" for the third.
struct WantedColumn {
  std::string name;
  double low = 0, high = 0;  ///< a value outside cannot be what the column is meant to be
  bool optional = false;     ///< a cell without a value, or with an impossible one, is NaN and takes no row out
  bool text = false;         ///< the value is the place of the cell's text in `Table::words`
};

struct TableRow {
  WallTime at;
  std::uint64_t line = 0;
  std::vector<double> values;  ///< one a wanted column
};

struct Table {
  std::vector<TableRow> rows;         ///< in order of time, no time twice
  std::vector<std::string> words;     ///< of text columns, each once
  std::uint64_t empty_cells = 0;      ///< of optional columns: without a value, or an impossible one
  std::uint64_t no_value = 0;         ///< rows left out: a cell says that it has none
  std::uint64_t impossible = 0;       ///< rows left out: a value outside its column's range
  std::uint64_t repeated = 0;         ///< rows left out: a time that was already there
  std::uint64_t unsure_stamps = 0;    ///< rows left out: a local time that is ambiguous or does not exist
  bool zone_assumed = false;          ///< stamps without zone were read as UTC
  std::vector<std::string> left_out;  ///< the first, "FILE:12: column 'RT' is 'N/A'"
};

struct StampRule {
  std::string column;
  std::string zone;  ///< of stamps that carry none; empty: UTC
  Fold fold = Fold::refuse;
};

/// What the first line of a file is split by; a comma where nothing tells.
char separator_of(const std::string& path);
/// The header's cells, for finding out what a file is.
Result<std::vector<std::string>> read_header(const std::string& path);
Result<Table> read_table(const std::string& path, const StampRule& stamp, const std::vector<WantedColumn>& wanted);
/// The same of bytes; `path` is for messages.
Result<Table> read_table(ByteSource& bytes, char separator, const std::string& path, const StampRule& stamp,
                         const std::vector<WantedColumn>& wanted);

}  // namespace flyball::cli
