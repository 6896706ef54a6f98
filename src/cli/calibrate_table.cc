#include "cli/calibrate_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "base/byte_source.h"
#include "base/csv.h"
#include "base/text.h"
#include "series/decimal_mark.h"
#include "series/reader_stamp.h"

namespace flyball::cli {
namespace {

constexpr std::size_t kMostRows = 20'000'000;
constexpr std::size_t kShown = 5;

std::string trimmed(std::string_view cell) { return std::string(trim(cell)); }

bool says_nothing(std::string_view cell) {
  static constexpr std::array<std::string_view, 12> kWords = {
      "", "-", "na", "n/a", "nan", "null", "none", "[n/a]", "err", "err!", "[not supported]", "#n/a"};
  const std::string word = to_lower(trim(cell));
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

std::string names_of(const std::vector<std::string>& header) {
  std::string text;
  for (const std::string& name : header) text += (text.empty() ? "" : ", ") + name;
  constexpr std::size_t kLongest = 400;
  return text.size() > kLongest ? text.substr(0, kLongest) + ", …" : text;
}

Result<std::size_t> find_column(const std::vector<std::string>& header, const std::string& name,
                                const std::string& path) {
  if (name.size() > 1 && name[0] == '#') {
    const auto number = parse_int(name.substr(1));
    if (number && *number >= 1 && static_cast<std::size_t>(*number) <= header.size())
      return static_cast<std::size_t>(*number - 1);
  }
  const auto found = std::find(header.begin(), header.end(), trimmed(name));
  if (found == header.end())
    return fail(ErrorCode::input, fmt::format("there is no column '{}'; there are: {}", name, names_of(header)),
                path + ":1", "name the columns in a map, --map FILE (flyball calibrate fit --help)");
  if (std::find(found + 1, header.end(), *found) != header.end())
    return fail(ErrorCode::input, fmt::format("there are two columns '{}'", name), path + ":1",
                "name one by its number in the map, \"#3\"");
  return static_cast<std::size_t>(found - header.begin());
}

std::string shown(std::string_view cell) {
  constexpr std::size_t kLongest = 40;
  return std::string(cell.substr(0, kLongest)) + (cell.size() > kLongest ? "…" : "");
}

class Reader {
 public:
  Reader(std::string path, const std::vector<WantedColumn>& wanted, series::StampReader stamps, char separator)
      : path_(std::move(path)), wanted_(wanted), stamps_(std::move(stamps)), numbers_(separator) {}

  Result<> find_columns(const CsvRow& row, const StampRule& rule) {
    for (const std::string_view cell : row.cells) header_.push_back(trimmed(cell));
    FLYBALL_ASSIGN(time_, find_column(header_, rule.column, path_));
    stamp_unit_ = series::stamp_unit_of(to_lower(header_[time_]));
    for (const WantedColumn& column : wanted_) {
      FLYBALL_ASSIGN(const std::size_t at, find_column(header_, column.name, path_));
      columns_.push_back(at);
    }
    return {};
  }

  Result<> take(const CsvRow& row) {
    if (!row.defect.empty() || row.cells.size() != header_.size()) {
      if (!row.ended) return {};  // the last line is cut
      return fail(ErrorCode::input,
                  row.defect.empty()
                      ? fmt::format("the row has {} cells and the header {}", row.cells.size(), header_.size())
                      : fmt::format("the row cannot be used: {}", row.defect),
                  fmt::format("{}:{}", path_, row.line), series::row_remedy(row.cells.size(), header_.size()));
    }
    TableRow made{{}, row.line, {}};
    const std::string_view stamp = trim(row.cells[time_]);
    if (stamp == header_[time_]) return {};  // the header once more
    if (says_nothing(stamp)) return leave_out(table.no_value, row, time_);
    if (const char* wrong = stamps_.read(stamp, stamp_unit_, made.at); wrong != nullptr) {
      const std::string_view why = wrong;
      if (why.find("in the hour that the zone") != why.npos) return leave_out(table.unsure_stamps, row, time_);
      return wrong_cell(row, time_, std::string(why), "write 2024-05-17T15:38:28Z, or seconds since 1970");
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string_view cell = trim(row.cells[columns_[i]]);
      double value = 0;
      if (wanted_[i].text) {
        made.values.push_back(static_cast<double>(word(cell)));
        continue;
      }
      if (wanted_[i].optional && says_nothing(cell)) {
        made.values.push_back(no_value());
        continue;
      }
      if (says_nothing(cell)) return leave_out(table.no_value, row, columns_[i]);
      if (const auto wrong = numbers_.read(cell, row.line, value))
        return wrong_cell(row, columns_[i], wrong->what, wrong->remedy);
      const bool possible = value >= wanted_[i].low && value <= wanted_[i].high;
      if (!possible && wanted_[i].optional) value = no_value();
      if (!possible && !wanted_[i].optional) return leave_out(table.impossible, row, columns_[i]);
      made.values.push_back(value);
    }
    if (table.rows.size() >= kMostRows)
      return fail(ErrorCode::input, fmt::format("more than {} rows", kMostRows), path_, "give coarser intervals");
    table.rows.push_back(std::move(made));
    return {};
  }

  void finish() {
    table.zone_assumed = stamps_.assumed_utc();
    std::stable_sort(table.rows.begin(), table.rows.end(),
                     [](const TableRow& a, const TableRow& b) { return a.at < b.at; });
    const auto end = std::unique(table.rows.begin(), table.rows.end(),
                                 [](const TableRow& a, const TableRow& b) { return a.at == b.at; });
    table.repeated = static_cast<std::uint64_t>(table.rows.end() - end);
    table.rows.erase(end, table.rows.end());
  }

  Table table;

 private:
  double no_value() {
    ++table.empty_cells;
    return std::numeric_limits<double>::quiet_NaN();
  }
  std::size_t word(std::string_view cell) {
    if (!table.words.empty() && table.words[last_word_] == cell) return last_word_;
    const auto found = std::find(table.words.begin(), table.words.end(), cell);
    last_word_ = static_cast<std::size_t>(found - table.words.begin());
    if (found == table.words.end()) table.words.emplace_back(cell);
    return last_word_;
  }
  Result<> leave_out(std::uint64_t& count, const CsvRow& row, std::size_t column) {
    ++count;
    if (table.left_out.size() < kShown)
      table.left_out.push_back(
          fmt::format("{}:{}: column '{}' is '{}'", path_, row.line, header_[column], shown(trim(row.cells[column]))));
    return {};
  }
  Result<> wrong_cell(const CsvRow& row, std::size_t column, const std::string& what, const std::string& remedy) {
    return fail(ErrorCode::input,
                fmt::format("column '{}' is '{}': {}", header_[column], shown(trim(row.cells[column])), what),
                fmt::format("{}:{}", path_, row.line), remedy);
  }

  std::string path_;
  const std::vector<WantedColumn>& wanted_;
  series::StampReader stamps_;
  series::DecimalMark numbers_;
  series::StampUnit stamp_unit_ = series::StampUnit::by_size;
  std::vector<std::string> header_;
  std::vector<std::size_t> columns_;
  std::size_t time_ = 0;
  std::size_t last_word_ = 0;
};

/// The first row, with the separator that it shows.
Result<bool> first_row(CsvReader& reader, CsvRow& row) {
  FLYBALL_ASSIGN(const bool there, reader.next(row));
  return there;
}

}  // namespace

char separator_of(const std::string& path) {
  auto bytes = open_bytes(path);
  if (!bytes) return ',';
  LineReader lines(**bytes);
  Line line;
  const auto there = lines.next(line);
  return there && *there ? guess_separator(line.text) : ',';
}

Result<std::vector<std::string>> read_header(const std::string& path) {
  FLYBALL_ASSIGN(const auto bytes, open_bytes(path));
  CsvReader reader(*bytes, {.separator = separator_of(path)});
  CsvRow row;
  FLYBALL_ASSIGN(const bool there, first_row(reader, row));
  std::vector<std::string> header;
  if (there)
    for (const std::string_view cell : row.cells) header.push_back(trimmed(cell));
  if (header.empty()) return fail(ErrorCode::input, "the file is empty", path, "give a CSV file with a header");
  return header;
}

Result<Table> read_table(const std::string& path, const StampRule& stamp, const std::vector<WantedColumn>& wanted) {
  FLYBALL_ASSIGN(const auto bytes, open_bytes(path));
  return read_table(*bytes, separator_of(path), path, stamp, wanted);
}

Result<Table> read_table(ByteSource& bytes, char separator, const std::string& path, const StampRule& stamp,
                         const std::vector<WantedColumn>& wanted) {
  series::ReadOptions options;
  options.zone = stamp.zone;
  options.fold = stamp.fold;
  FLYBALL_ASSIGN(series::StampReader stamps, series::StampReader::make(options));
  CsvReader csv(bytes, {.separator = separator});
  Reader reader(path, wanted, std::move(stamps), separator);
  CsvRow row;
  bool header = true;
  while (true) {
    FLYBALL_ASSIGN(const bool there, csv.next(row));
    if (!there) break;
    if (header) {
      FLYBALL_TRY(reader.find_columns(row, stamp));
    } else {
      FLYBALL_TRY(reader.take(row));
    }
    header = false;
  }
  if (header) return fail(ErrorCode::input, "the file is empty", path, "give a CSV file with a header");
  if (const std::string damage = bytes.damage(); !damage.empty())
    return fail(ErrorCode::input, "the file is damaged: " + damage, path, "copy it again");
  reader.finish();
  return std::move(reader.table);
}

}  // namespace flyball::cli
