#pragma once
// Text of any size, line by line and cell by cell, in bounded memory: views into one buffer, nothing allocated per row.
// Damage never ends the reading: a defective row says what is wrong with it and the next one is read.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"

namespace flyball {

/// Valid until the next call of the reader that gave it; the 16 bytes behind it may be read.
struct Line {
  std::string_view text;     ///< without its end (LF or CR LF); the first 120 bytes of a line that is too long
  std::uint64_t number = 0;  ///< from 1
  bool ended = true;         ///< false: the input stops inside this line, so its last value may be cut
  std::string_view defect;   ///< "" or why the line cannot be used ("longer than the limit", "holds NUL bytes")
};

class LineReader {
 public:
  static constexpr std::size_t kDefaultMaxLine = 1 << 16;

  explicit LineReader(ByteSource& source, std::size_t max_line_bytes = kDefaultMaxLine);
  /// False at the end. A byte-order mark is skipped; UTF-16 is an error.
  Result<bool> next(Line& line);
  /// Makes the line that was read last longer by the one behind it, the line end included. False, and nothing
  /// changed, where there is none or the limit would be broken.
  Result<bool> extend(Line& line);
  /// Takes `extend` back: the line is again the first `length` bytes of text.
  void retract(Line& line, std::size_t length);

  std::uint64_t bytes() const { return bytes_; }
  /// Some byte in the buffer is a quote: without, nobody needs to look.
  bool may_hold_quotes() const { return quotes_; }
  char* writable(std::string_view view) { return buffer_.data() + (view.data() - buffer_.data()); }

 private:
  Result<bool> refill();
  Result<> first_bytes();
  Result<bool> skip_long_line(Line& line);
  void give(Line& line, std::size_t end, bool ended);

  ByteSource& source_;
  std::size_t max_line_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  ///< of the current line
  std::size_t at_ = 0;     ///< behind the current line
  std::size_t end_ = 0;    ///< of the bytes in the buffer
  std::uint64_t bytes_ = 0;
  std::uint64_t number_ = 0;
  bool started_ = false;
  bool exhausted_ = false;
  bool quotes_ = false;
  bool nuls_ = false;
  std::string long_line_;
};

struct CsvOptions {
  char separator = ',';
  std::size_t max_line_bytes = LineReader::kDefaultMaxLine;
  /// A quoted cell may run over this many lines; a quote that is not closed within them spoils its own line only.
  std::size_t max_lines_in_quotes = 16;
};

/// Valid until the next call; the 16 bytes behind a cell may be read. Quoted cells come without their quotes, all
/// others as they are, blanks included.
struct CsvRow {
  std::span<const std::string_view> cells;
  std::string_view text;
  std::uint64_t line = 0;  ///< the row's first
  bool ended = true;       ///< false: the last cell may be cut
  std::string_view defect;
};

class CsvReader {
 public:
  static constexpr std::size_t kMaxCells = 4096;

  explicit CsvReader(ByteSource& source, CsvOptions options = {});
  /// False at the end. Lines without any text are skipped.
  Result<bool> next(CsvRow& row);
  void set_separator(char separator);
  std::uint64_t bytes() const { return lines_.bytes(); }

 private:
  std::string_view split_plain(std::string_view text);
  std::string_view split_quoted(std::string_view text);
  Result<std::string_view> split_over_lines(Line& line);
  void undouble_quotes();

  LineReader lines_;
  CsvOptions options_;
  std::uint64_t pattern_ = 0;
  std::vector<std::string_view> cells_;
  std::vector<std::size_t> doubled_;  ///< cells with quotes doubled inside
};

/// The separator of a header line: comma, semicolon or tab, whichever stands in it most often outside quotes.
char guess_separator(std::string_view header);
/// A cell for a CSV file: quoted where it has to be.
std::string csv_cell(std::string_view text);

}  // namespace flyball
