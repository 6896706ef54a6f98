#include "base/csv.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace flyball {
namespace {

constexpr std::size_t kBlockBytes = 1 << 18;
constexpr std::size_t kShownBytes = 120;
// Words are read whole, so the buffer has room behind its last byte.
constexpr std::size_t kPadding = 17;  // a separator and 16 bytes
constexpr std::string_view kTooLong = "the line is longer than the limit";
constexpr std::string_view kOpenQuote = "a quote is not closed";
constexpr std::string_view kBehindQuote = "text follows a closing quote";
constexpr std::string_view kTooManyCells = "the row has too many cells";

std::uint64_t load_word(const char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

/// 0x80 in each byte of `word` that equals the byte repeated in `pattern` (exact, unlike the common short form).
std::uint64_t equal_bytes(std::uint64_t word, std::uint64_t pattern) {
  constexpr std::uint64_t kLow = 0x7f7f7f7f7f7f7f7fULL;
  const std::uint64_t difference = word ^ pattern;
  return ~(((difference & kLow) + kLow) | difference | kLow);
}

bool blank(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == ' ' || c == '\t'; });
}

}  // namespace

LineReader::LineReader(ByteSource& source, std::size_t max_line_bytes)
    : source_(source), max_line_(max_line_bytes), buffer_(std::max(kBlockBytes, 2 * max_line_bytes) + kPadding) {}

/// Moves what is left from the current line on to the front and reads on behind it. False when nothing came.
Result<bool> LineReader::refill() {
  if (exhausted_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    at_ -= begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  FLYBALL_ASSIGN(const std::size_t got, source_.read(buffer_.data() + end_, buffer_.size() - kPadding - end_));
  exhausted_ = got == 0;
  bytes_ += got;
  end_ += got;
  quotes_ = std::memchr(buffer_.data(), '"', end_) != nullptr;
  nuls_ = std::memchr(buffer_.data(), '\0', end_) != nullptr;
  return got > 0;
}

Result<> LineReader::first_bytes() {
  started_ = true;
  while (end_ < 3) {
    FLYBALL_ASSIGN(const bool more, refill());
    if (!more) break;
  }
  const std::string_view head(buffer_.data(), std::min<std::size_t>(end_, 3));
  if (head == "\xef\xbb\xbf") begin_ = at_ = 3;
  if (head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff")) {
    return fail(ErrorCode::input, "the text is UTF-16", {}, "convert it: iconv -f UTF-16 -t UTF-8");
  }
  return {};
}

void LineReader::give(Line& line, std::size_t end, bool ended) {
  at_ = std::min(end + 1, end_);
  if (ended && end > begin_ && buffer_[end - 1] == '\r') --end;
  line.text = std::string_view(buffer_.data() + begin_, end - begin_);
  line.ended = ended;
  line.defect = {};
  if (nuls_ && std::memchr(line.text.data(), '\0', line.text.size()) != nullptr)
    line.defect = "the line holds NUL bytes";
}

Result<bool> LineReader::next(Line& line) {
  if (!started_) FLYBALL_TRY(first_bytes());
  begin_ = at_;
  std::size_t scanned = 0;  // bytes of the line known to hold no line end
  for (;;) {
    const std::size_t from = begin_ + scanned;
    const auto* found = static_cast<const char*>(std::memchr(buffer_.data() + from, '\n', end_ - from));
    const std::size_t length = (found != nullptr ? static_cast<std::size_t>(found - buffer_.data()) : end_) - begin_;
    if (length > max_line_) {
      line.number = ++number_;
      return skip_long_line(line);
    }
    if (found != nullptr) {
      line.number = ++number_;
      give(line, begin_ + length, true);
      return true;
    }
    scanned = length;
    FLYBALL_ASSIGN(const bool more, refill());
    if (more) continue;
    if (begin_ == end_) return false;
    line.number = ++number_;
    give(line, end_, false);
    return true;
  }
}

Result<bool> LineReader::skip_long_line(Line& line) {
  long_line_.assign(buffer_.data() + begin_, kShownBytes).append(kPadding, ' ');
  line.text = std::string_view(long_line_).substr(0, kShownBytes);
  line.defect = kTooLong;
  line.ended = true;
  for (;;) {
    const auto* found = static_cast<const char*>(std::memchr(buffer_.data() + begin_, '\n', end_ - begin_));
    if (found != nullptr) {
      at_ = static_cast<std::size_t>(found - buffer_.data()) + 1;
      return true;
    }
    begin_ = at_ = end_;
    FLYBALL_ASSIGN(const bool more, refill());
    if (!more) {
      line.ended = false;
      return true;
    }
  }
}

Result<bool> LineReader::extend(Line& line) {
  const std::size_t length = line.text.size();
  std::size_t scanned = at_ - begin_;
  const std::size_t start = scanned;
  for (;;) {
    const std::size_t from = begin_ + scanned;
    const auto* found = static_cast<const char*>(std::memchr(buffer_.data() + from, '\n', end_ - from));
    const std::size_t whole = (found != nullptr ? static_cast<std::size_t>(found - buffer_.data()) : end_) - begin_;
    bool more = false;
    if (found == nullptr && whole <= max_line_) {
      FLYBALL_ASSIGN(more, refill());
      if (more) {
        scanned = whole;
        continue;
      }
    }
    if (whole > max_line_ || (found == nullptr && whole <= start)) {  // too long, or nothing there: as it was
      line.text = std::string_view(buffer_.data() + begin_, length);
      return false;
    }
    ++number_;
    give(line, begin_ + whole, found != nullptr);
    return true;
  }
}

void LineReader::retract(Line& line, std::size_t length) {
  const char* text = buffer_.data() + begin_;
  number_ = line.number;
  const auto* found = static_cast<const char*>(std::memchr(text + length, '\n', end_ - begin_ - length));
  give(line, found != nullptr ? static_cast<std::size_t>(found - buffer_.data()) : end_, found != nullptr);
}

CsvReader::CsvReader(ByteSource& source, CsvOptions options)
    : lines_(source, options.max_line_bytes), options_(options) {
  set_separator(options.separator);
  cells_.reserve(64);
}

void CsvReader::set_separator(char separator) {
  options_.separator = separator;
  pattern_ = 0x0101010101010101ULL * static_cast<unsigned char>(separator);
}

/// Cells of a line without quotes. Returns the defect.
std::string_view CsvReader::split_plain(std::string_view text) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const char* cell = begin;
  for (const char* at = begin; at < end; at += 8) {
    std::uint64_t hits = equal_bytes(load_word(at), pattern_);
    for (; hits != 0; hits &= hits - 1) {
      const char* const separator = at + std::countr_zero(hits) / 8;
      if (separator >= end) break;  // the word reaches over the line's end
      if (cells_.size() == kMaxCells) return kTooManyCells;
      cells_.emplace_back(cell, static_cast<std::size_t>(separator - cell));
      cell = separator + 1;
    }
  }
  if (cells_.size() == kMaxCells) return kTooManyCells;
  cells_.emplace_back(cell, static_cast<std::size_t>(end - cell));
  return {};
}

/// Cells of a line with quotes somewhere. A quote opens a cell only as its first byte that is not blank.
std::string_view CsvReader::split_quoted(std::string_view text) {
  std::size_t at = 0;
  cells_.clear();
  doubled_.clear();
  for (;;) {
    if (cells_.size() == kMaxCells) return kTooManyCells;
    const std::size_t word = std::min(text.find_first_not_of(' ', at), text.size());
    if (word == text.size() || text[word] != '"') {
      const std::size_t stop = std::min(text.find(options_.separator, at), text.size());
      cells_.push_back(text.substr(at, stop - at));
      at = stop;
    } else {
      std::size_t close = text.find('"', word + 1);
      bool doubled = false;
      while (close != std::string_view::npos && close + 1 < text.size() && text[close + 1] == '"') {
        doubled = true;
        close = text.find('"', close + 2);
      }
      if (close == std::string_view::npos) return kOpenQuote;
      cells_.push_back(text.substr(word + 1, close - word - 1));
      if (doubled) doubled_.push_back(cells_.size() - 1);
      at = std::min(text.find_first_not_of(' ', close + 1), text.size());
      if (at < text.size() && text[at] != options_.separator) return kBehindQuote;
    }
    if (at == text.size()) return {};
    ++at;
  }
}

/// A cell whose quote is open at the line's end may go on in the next ones; if it does not close in them, the quote
/// was a stray one and only its own line is lost. Returns the defect.
Result<std::string_view> CsvReader::split_over_lines(Line& line) {
  const std::size_t first_length = line.text.size();
  std::string_view defect = split_quoted(line.text);
  for (std::size_t lines = 1; defect == kOpenQuote && lines < options_.max_lines_in_quotes; ++lines) {
    FLYBALL_ASSIGN(const bool longer, lines_.extend(line));
    if (!longer) break;
    defect = split_quoted(line.text);
  }
  if (!defect.empty() && line.text.size() != first_length) {
    lines_.retract(line, first_length);
    defect = kOpenQuote;
  }
  return defect;
}

void CsvReader::undouble_quotes() {
  for (const std::size_t index : doubled_) {
    const std::string_view cell = cells_[index];
    char* const text = lines_.writable(cell);
    std::size_t length = 0;
    for (std::size_t i = 0; i < cell.size(); ++i) {
      text[length++] = cell[i];
      if (cell[i] == '"') ++i;
    }
    cells_[index] = std::string_view(text, length);
  }
}

Result<bool> CsvReader::next(CsvRow& row) {
  Line line;
  do {
    FLYBALL_ASSIGN(const bool more, lines_.next(line));
    if (!more) return false;
  } while (line.defect.empty() && blank(line.text));
  cells_.clear();
  std::string_view defect = line.defect;
  if (defect.empty()) {
    if (lines_.may_hold_quotes() && line.text.find('"') != std::string_view::npos) {
      FLYBALL_ASSIGN(defect, split_over_lines(line));
      if (defect.empty()) undouble_quotes();
    } else {
      defect = split_plain(line.text);
    }
  }
  if (!defect.empty()) cells_.clear();
  row = CsvRow{cells_, line.text, line.number, line.ended, defect};
  return true;
}

char guess_separator(std::string_view header) {
  std::size_t commas = 0;
  std::size_t semicolons = 0;
  std::size_t tabs = 0;
  bool quoted = false;
  for (const char c : header) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    commas += c == ',' ? 1 : 0;
    semicolons += c == ';' ? 1 : 0;
    tabs += c == '\t' ? 1 : 0;
  }
  if (semicolons > commas && semicolons >= tabs) return ';';
  return tabs > commas ? '\t' : ',';
}

std::string csv_cell(std::string_view text) {
  const bool outer_blank = !text.empty() && (text.front() == ' ' || text.back() == ' ');
  if (!outer_blank && text.find_first_of(",;\t\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace flyball
